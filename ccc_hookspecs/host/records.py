"""What the host keeps, one frozen value a row. `session_id` and `message_id` are UUIDs, times are seconds since the epoch."""

from __future__ import annotations

import json
import math
import sqlite3
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from ccc_hookspecs.claude.text import is_command
from ccc_hookspecs.values import Headless, Hold, SentInput

MessageState: TypeAlias = Literal["queued", "held", "written", "delivered", "failed"]
"""`queued`: waits for its turn. `held`: waits for what `hold` says. `written`: given to a process, not proven yet.
`delivered`: proven. `failed`: not tried again until somebody asks for it."""

STUCK_SECONDS: Final = 30.0
"""How long a process may take to take a message before a person may give up on it."""

LONGEST_PAUSE: Final = 30.0
"""Seconds until it is tried again, at most, to start a process that could not be started."""

OPEN_STATES: tuple[MessageState, ...] = ("queued", "held", "written", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session the host drives. `arguments`: what `claude` gets besides the host's own. `config_dir`: its `CLAUDE_CONFIG_DIR`, or None."""

    session_id: str
    cwd: Path
    claude: str
    arguments: tuple[str, ...] = ()
    config_dir: Path | None = None
    created_at: float = 0.0

    @classmethod
    def of(cls, row: sqlite3.Row) -> Session:
        """From a row of `sessions`."""
        return cls(
            session_id=row["session_id"],
            cwd=Path(row["cwd"]),
            claude=row["claude"],
            arguments=tuple(json.loads(row["arguments"])),
            config_dir=_path(row["config_dir"]),
            created_at=row["created_at"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A headless as the host spawned it. `pid` is None while the spawn is under way, `ended_at` None while it is believed alive.

    `mark`: a text that stands in the environment of this process and of no other. `jammed`: half a line may be in its FIFO, so
    that it can take no other; `jammed_by`: the id of that line's input, None when it is not known. `release`: of Claude Code, once it
    said so. `boot`, `namespace`: the boot of the machine and the pid namespace that the pid is of, None where the system tells none.
    """

    id: int
    session_id: str
    pid: int | None
    start_time: float | None
    fifo: Path
    log: Path
    cwd: Path
    config_dir: Path | None
    spawned_at: float
    transcript_size: int
    resumed: bool
    mark: str
    jammed: bool = False
    jammed_by: str | None = None
    release: str | None = None
    boot: str | None = None
    namespace: int | None = None
    ended_at: float | None = None

    @classmethod
    def of(cls, row: sqlite3.Row) -> Head:
        """From a row of `headless`."""
        values = dict(row)
        paths = {name: Path(values[name]) for name in ("fifo", "log", "cwd")}
        flags = {name: bool(values[name]) for name in ("resumed", "jammed")}
        return cls(**{**values, **paths, **flags, "config_dir": _path(values["config_dir"])})

    def headless(self, sent: tuple[SentInput, ...]) -> Headless:
        """The value that plugins get. Raises ValueError while the spawn is under way."""
        if self.pid is None:
            raise ValueError(f"headless {self.id} has no process yet")
        return Headless(
            session_id=self.session_id,
            pid=self.pid,
            start_time=self.start_time,
            fifo=self.fifo,
            stdout_log=self.log,
            cwd=self.cwd,
            sent=sent,
            spawned_at=self.spawned_at,
            resumed=self.resumed,
            transcript_size=self.transcript_size,
            config_dir=self.config_dir,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A text on its way to a session. `seq` orders the messages of all sessions.

    `head_id`, `terminal`: whom it was last given to, a headless or a terminal's process, at `written_at`. `wrote`: the write is known to
    have ended.
    `log_offset`, `transcript_offset`: bytes that the log had at the last write, and the transcript at the first one, so that
    whatever proves the delivery stands behind them. `attempts`: how often it was given to a process that did not take it.
    `hold`, `held_since`: why and since when it waits. `own_hold`: it waits for the host's own reasons, not for a plugin's.
    `unstarted_since`, `retry_at`: since when no process could be started for it, and when that is due again.
    """

    seq: int
    message_id: str
    session_id: str
    text: str = field(repr=False)
    state: MessageState
    created_at: float
    head_id: int | None = None
    terminal: str | None = None
    wrote: bool = False
    written_at: float | None = None
    log_offset: int = 0
    transcript_offset: int = 0
    attempts: int = 0
    hold: Hold | None = None
    held_since: float | None = None
    own_hold: bool = False
    error: str | None = None
    unstarted_since: float | None = None
    retry_at: float | None = None
    proof: str | None = None
    delivered_at: float | None = None

    @property
    def seconds_given(self) -> float:
        """How long ago it was given to a process: for ever, when the clock was set back since."""
        given = time.time() - (self.written_at or 0.0)
        return given if given >= 0 else math.inf

    @property
    def is_stuck(self) -> bool:
        """Whether a process has it that had time enough to take it."""
        return self.state == "written" and self.seconds_given >= STUCK_SECONDS

    @property
    def may_go_on(self) -> bool:
        """Whether it may be written or proven at any time: it waits for nothing, or for what the host sees by itself and what soon ends."""
        soon = self.state == "held" and self.own_hold and self.hold is not None and not self.hold.lingering
        return soon or self.state in ("queued", "written")

    @property
    def rests(self) -> bool:
        """Whether it is too early to try again to start a process for it."""
        return self.retry_at is not None and 0 < self.retry_at - time.time() <= LONGEST_PAUSE

    @property
    def is_command(self) -> bool:
        """Whether Claude Code takes the text for a slash command."""
        return is_command(self.text)

    @classmethod
    def of(cls, row: sqlite3.Row) -> Message:
        """From a row of `outbox`."""
        values = dict(row)
        hold = json.loads(values.pop("hold") or "null")
        values |= {"text": to_text(values["text"]), "wrote": bool(values["wrote"])}
        return cls(**values, hold=None if hold is None else _hold(hold), own_hold=hold is not None and hold.get("own", False))


def from_text(text: str) -> bytes:
    """A text as it is stored: SQLite refuses lone surrogates in a text, and people's texts may hold them."""
    return text.encode("utf-8", "surrogatepass")


def to_text(stored: bytes) -> str:
    """The text that `from_text` stored."""
    return stored.decode("utf-8", "surrogatepass")


def hold_json(hold: Hold, *, own: bool) -> str:
    """A hold as it is stored; `own`: it is one of the host's own."""
    return json.dumps({"reason": hold.reason, "signs": list(hold.signs), "lingering": hold.lingering, "cost": hold.cost, "own": own})


def _hold(stored: dict[str, Any]) -> Hold:
    return Hold(reason=stored["reason"], signs=tuple(stored["signs"]), lingering=stored["lingering"], cost=stored["cost"])


def _path(value: str | None) -> Path | None:
    return None if value is None else Path(value)
