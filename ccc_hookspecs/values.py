"""The value objects that hooks take and return.

All are frozen, made with keywords, and refuse a value that cannot be right where it is made. None holds conversation
text except `Injection.text` and the `catch_up` of a decision, which are hidden from `repr` so that neither reaches a log.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from ccc_hookspecs.checks import (
    check_count,
    check_flag,
    check_hidden_text,
    check_kind,
    check_optional_flag,
    check_optional_text,
    check_path,
    check_seconds,
    check_text,
    check_texts,
    check_tuple,
    check_uuid,
    is_uuid,
    require,
)
from ccc_hookspecs.errors import InvalidValueError

Engine: TypeAlias = str
"""`claude`, or the name of another engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentInput:
    """One input that was written to a headless's FIFO.

    `message_id` is the `uuid` of the FIFO line, which Claude Code makes the `uuid` of the transcript record (measured
    on eight releases from 2.0.42 to 2.1.332). `sent_at` is seconds since the epoch, or None when the host does not know.
    `history`: it tells what was said before, and asks for no answer (see `Host.write`).
    """

    message_id: str
    sent_at: float | None = None
    history: bool = False

    def __post_init__(self) -> None:
        check_uuid(self, "message_id")
        check_seconds(self, "sent_at")
        check_flag(self, "history")

    @classmethod
    def of_line(cls, line: bytes, sent_at: float) -> SentInput | None:
        """The input that a FIFO line is, written at `sent_at`; None for a line that is none, such as a control request.

        Raises ValueError when the line is no JSON object.
        """
        said = json.loads(line)
        if not isinstance(said, dict):
            raise ValueError("a FIFO line is a JSON object")
        kind, message_id = said.get("type"), said.get("uuid")
        if kind not in ("user", "assistant") or not is_uuid(message_id):
            return None
        return cls(message_id=str(message_id), sent_at=sent_at, history=kind == "assistant" or said.get("shouldQuery") is False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Headless:
    """A `claude -p` process that a host spawned and feeds through a FIFO.

    `session_id`: the session it is registered under in the host.
    `pid`: > 0. `start_time`: what `ccc_hookspecs.processes.start_time(pid)` gave right after the spawn; with `pid` it is
    the process's identity. None means that the host cannot tell, and then the process is never signalled.
    `engine`: `claude`, or another engine's name, of which nothing is changed.
    `fifo`, `stdout_log`, `cwd`: absolute paths, or None when the host does not know.
    `sent`: the inputs written to it, oldest first; at least those that it may not have acknowledged yet. None when the host does
    not know them all: then the process never counts as idle.
    `spawned_at`: seconds since the epoch, by the host's clock at the spawn.
    `resumed`: True when it was started with `--resume`, False when it began the session, None when unknown.
    `transcript_size`: bytes the transcript had right before the spawn, when the host noted it.
    `config_dir`: the `CLAUDE_CONFIG_DIR` it was started with, when it was set to something.
    `owned`: False when another process of the host is responsible for it; such a headless is only looked at.
    """

    session_id: str
    pid: int
    start_time: float | None
    engine: Engine = "claude"
    fifo: Path | None = None
    stdout_log: Path | None = None
    cwd: Path | None = None
    sent: tuple[SentInput, ...] | None = None
    spawned_at: float | None = None
    resumed: bool | None = None
    transcript_size: int | None = None
    config_dir: Path | None = None
    owned: bool = True

    def __post_init__(self) -> None:
        check_uuid(self, "session_id")
        require(isinstance(self.pid, int) and not isinstance(self.pid, bool) and self.pid > 0, self, "pid", "a process id above 0")
        check_seconds(self, "start_time", "spawned_at")
        check_text(self, "engine")
        check_path(self, "fifo", "stdout_log", "cwd", "config_dir")
        check_tuple(self, "sent", SentInput)
        check_optional_flag(self, "resumed")
        check_count(self, "transcript_size")
        check_flag(self, "owned")


def _check_session(owner: Injection | TerminalLaunch, headless: Headless) -> None:
    check_kind(owner, "headless", Headless)
    require(headless.session_id == owner.session_id, owner, "session_id", f"the headless's own session id {headless.session_id}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """A text about to go into a headless. `message_id` becomes the FIFO line's `uuid`.

    `overrule`: a person, told what it costs, wants the work ended that a `Hold` waits for. Nothing else may set it.
    """

    session_id: str
    text: str = field(repr=False)
    message_id: str
    headless: Headless
    overrule: bool = False

    def __post_init__(self) -> None:
        check_uuid(self, "session_id", "message_id")
        if not isinstance(self.text, str):
            # Only its type: whatever else it is, it may hold conversation text, and errors reach logs.
            raise InvalidValueError("Injection", "text", type(self.text), "a str")
        _check_session(self, self.headless)
        check_flag(self, "overrule")


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalLaunch:
    """A terminal about to be opened on a session. `headless` is the session's headless, or None when it has none."""

    session_id: str
    headless: Headless | None = None
    cwd: Path | None = None

    def __post_init__(self) -> None:
        check_uuid(self, "session_id")
        check_path(self, "cwd")
        if self.headless is not None:
            _check_session(self, self.headless)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One beat of the host's ticker. `number` counts from 1; `monotonic` is `time.monotonic()` at its start; `interval` is in seconds."""

    number: int
    monotonic: float
    interval: float

    def __post_init__(self) -> None:
        require(isinstance(self.number, int) and not isinstance(self.number, bool) and self.number >= 1, self, "number", "a count from 1")
        check_seconds(self, "monotonic", "interval")


# --- what `pre_inject` may answer ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliver:
    """Write the text to this headless. The same as answering None, but it ends the search for an answer.

    `catch_up`: turns that a fresh process lacks and cannot be given as history (`Host.write`), as one text ready for the model. The host
    puts it as the first text block of the same message, before the person's own text. It never hears of one for a slash command, which
    must come first.
    """

    catch_up: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_hidden_text(self, "catch_up")


@dataclass(frozen=True, slots=True, kw_only=True)
class Respawn:
    """The headless is gone and `released`: start a fresh `claude --resume`, and ask about the text again, for that one."""

    reason: str

    def __post_init__(self) -> None:
        check_text(self, "reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Keep the text, in order and durably, and ask again on the next tick.

    `signs`: what the hold waits for. `lingering`: True when only work that may never end is left (a background server,
    an armed wake-up), so that a person may want to overrule. `cost`: what is lost when a person overrules.
    """

    reason: str
    signs: tuple[str, ...] = ()
    lingering: bool = False
    cost: str | None = None

    def __post_init__(self) -> None:
        check_text(self, "reason")
        check_texts(self, "signs")
        check_flag(self, "lingering")
        check_optional_text(self, "cost")


Decision: TypeAlias = Deliver | Respawn | Hold
"""Everything `pre_inject` may answer besides None."""
