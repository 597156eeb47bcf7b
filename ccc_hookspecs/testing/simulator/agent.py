"""One simulated `claude`: what it knows, what it waits for, and how it begins and ends."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ccc_hookspecs.testing.simulator import branch
from ccc_hookspecs.testing.simulator.inbox import Inbox, deadline, left
from ccc_hookspecs.testing.simulator.journal import Journal
from ccc_hookspecs.testing.simulator.lines import new_id
from ccc_hookspecs.testing.simulator.registry import Registry
from ccc_hookspecs.testing.simulator.settings import Settings
from ccc_hookspecs.testing.simulator.shapes import Situation
from ccc_hookspecs.testing.simulator.stream import Stream
from ccc_hookspecs.testing.simulator.tools import Command, Subagent

POLL = 0.02
"""Seconds between two looks at a running command."""


class Interrupted(Exception):
    """The running turn was interrupted; raised at a wait within it."""


class NoConversation(Exception):
    """`--resume` named a session that has no transcript here."""


@dataclass(frozen=True, slots=True)
class FedAnswer:
    """An answer that a host fed. `parent`: the record that it hangs on; None for the leaf when it is written."""

    message: dict[str, Any]
    record_id: str
    parent: str | None


@dataclass(slots=True)
class Input:
    """One thing that begins or joins a turn. `source`: `sdk`, `typed`, `queued` or `system`; `input_id` is the FIFO line's `uuid`.

    `query`: it shall be answered, and is not history alone. `synthetic`: the line says that nobody typed it.
    """

    content: Any
    input_id: str | None = None
    source: str = "sdk"
    origin: dict[str, Any] | None = None
    query: bool = True
    synthetic: bool = False
    at: float = field(default_factory=time.time)


class Agent:
    """The state of one process. `on_line` takes each line of standard input, `ask` a permission question.

    `waiting`: whether its front holds input that it has not begun with.
    """

    def __init__(self, settings: Settings, inbox: Inbox, *, entrypoint: str) -> None:
        self.settings = settings
        self.release = settings.release
        self.inbox = inbox
        self.entrypoint = entrypoint
        session_id = settings.resume or settings.session_id or new_id()
        self.journal = self._new_journal(session_id)
        quiet = settings.mode != "headless" and settings.output_format != "stream-json"
        self.stream = Stream(self.release, session_id, str(settings.cwd), quiet=quiet, states=settings.states)
        self.registry = Registry(self.release, settings.config_dir, settings.cwd, entrypoint=entrypoint)
        self.memory: list[str] = []
        self.known: set[str] = set()
        self.loaded: frozenset[str] = frozenset()
        self.fed: list[FedAnswer] = []
        self.queue: list[Input] = []
        self.background: list[Command | Subagent] = []
        self.foreground: list[Command] = []
        self.wakeups: list[tuple[float, str]] = []
        self.open_turn = False
        self._names_mode = False
        self.in_turn = False
        self.shape: Situation = "begin"
        self.skills = False
        self.subagents = False
        self.progress: list[str] = []
        self._flush_at: float | None = None
        self._busy = True
        self._taken = 0
        self.on_line: Callable[[str], None] = lambda line: None
        self.ask: Callable[[str, dict[str, Any], str], str | None] = lambda name, given, call: None
        self.waiting: Callable[[], bool] = lambda: False
        self.on_task_end: Callable[[Command | Subagent], None] = lambda task: None

    def _new_journal(self, session_id: str) -> Journal:
        settings = self.settings
        return Journal(
            self.release,
            settings.config_dir,
            settings.cwd,
            session_id,
            entrypoint=self.entrypoint,
            permission_mode=settings.permission_mode,
        )

    # --- beginning and end ----------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read the branch that this release would choose, once; nothing is read again. Raises NoConversation."""
        if self.settings.resume is None:
            return
        try:
            loaded = branch.load(self.journal.path, self.release)
        except FileNotFoundError as error:
            raise NoConversation(self.settings.resume) from error
        self.journal.leaf = loaded.leaf
        self.journal.length = loaded.length
        self.journal.last_prompt = loaded.last_prompt if self.release.has("loads_last_prompt") else ""
        self.memory = list(loaded.memory)
        self.loaded = loaded.known
        self.open_turn = loaded.open_turn
        self._names_mode = not loaded.mode and self.entrypoint != "cli"
        self.shape = "terminal" if self.entrypoint == "cli" else "later"

    def move(self, session_id: str) -> None:
        """Go on under another session id, with an empty memory (`/clear`)."""
        self.flush()
        self.known |= self.journal.written
        self.journal = self._new_journal(session_id)
        self.stream.session_id = session_id
        self.memory = []
        self.shape = "begin"
        self.registry.write(session_id, "busy")

    def has_seen(self, record_id: str) -> bool:
        """True for the id of an input so far, and of a record that this process loaded or wrote; not of what others wrote since."""
        return record_id in self.known or record_id in self.loaded or record_id in self.journal.written

    def end(self) -> None:
        """What a clean exit leaves: trailers in the transcript, no running command where the release ends these, no live-session record.

        An answer that was fed and not written yet is lost.
        """
        self.flush()
        for command in self.foreground + (self.background if self.release.has("kills_background_at_exit") else []):
            command.kill()
        if self.journal.prompted:
            self._trailers()
        self.registry.remove()

    def _trailers(self) -> None:
        if self.release.has("last_prompt"):
            self.journal.last_prompt_trailer()
        if self._names_mode and self.release.has("mode_record"):
            self.journal.named("-mode")
        if self.release.has("cost_state" if self.entrypoint == "cli" else "headless_cost_state"):
            self.journal.named("-cost-state")

    def status(self, status: str) -> None:
        """`idle` or `busy`, for the live-session record and the stream."""
        self.registry.write(self.journal.session_id, status)
        if status == "busy":
            self.stream.session_state("running")
        elif not self.background or self.release.has("idle_beside_background"):
            self.stream.session_state("idle")
        self._busy = status == "busy"
        self.tell()

    def took(self) -> None:
        """One more line of standard input was taken, be it answered, queued or dropped."""
        self._taken += 1
        self.tell()

    def tell(self) -> None:
        """Say anew whether it is busy. What was typed and not begun with yet counts as work."""
        path = self.settings.status_file
        if path is not None:
            part = path.with_name(path.name + ".tmp")
            part.write_text(json.dumps({"busy": self._busy or self.in_turn or bool(self.queue) or self.waiting(), "taken": self._taken}))
            part.replace(path)

    # --- waiting --------------------------------------------------------------------------------------------------------

    def listen(self, seconds: float | None) -> None:
        """Wait for input or a timer, at most `seconds` (None: until something happens), and take what came."""
        lines = self.inbox.wait(self._timeout(seconds))
        while lines:
            self.on_line(lines.pop(0))
            self.took()
            if self.queue and not self.in_turn:
                # What begins a turn begins it at once; the rest comes in while it runs.
                self.inbox.put_back(lines)
                break
        self._timers()

    def pause(self, seconds: float) -> None:
        """Let time pass within a turn. Raises Interrupted."""
        until = deadline(seconds)
        while True:
            self.listen(left(until))
            self.check_interrupt()
            if left(until) <= 0:
                return

    def check_interrupt(self) -> None:
        if self.inbox.interrupted:
            self.inbox.interrupted = False
            raise Interrupted

    def _timeout(self, seconds: float | None) -> float | None:
        waits = [] if seconds is None else [seconds]
        waits += [left(at) for at, _ in self.wakeups]
        waits += [left(self._flush_at)] if self._flush_at is not None else []
        waits += [POLL] if self.background or self.foreground else []
        return min(waits) if waits else None

    def _timers(self) -> None:
        if self._flush_at is not None and left(self._flush_at) <= 0:
            self.flush()
        for wakeup in [wakeup for wakeup in self.wakeups if left(wakeup[0]) <= 0]:
            self.wakeups.remove(wakeup)
            self.push(Input(content=wakeup[1], source="system"))
        for task in [task for task in self.background if isinstance(task, Command) and task.done()]:
            self._task_ends(task)
        if not self.in_turn:
            self.end_subagents()

    def end_subagents(self) -> None:
        """Let subagents that are done report."""
        for task in [task for task in self.background if isinstance(task, Subagent) and task.done()]:
            self._task_ends(task)

    def _task_ends(self, task: Command | Subagent) -> None:
        self.background.remove(task)
        self.on_task_end(task)

    def push(self, given: Input) -> None:
        """Queue an input, and note it in the transcript."""
        if not self.in_turn and not self.queue:
            self.stream.session_state("running")
        self.stream.lifecycle(given.input_id, "queued")
        self.journal.queue("enqueue", given.content if isinstance(given.content, str) else None, system=given.source == "system")
        self.queue.append(given)

    # --- late records ---------------------------------------------------------------------------------------------------

    def hold(self) -> None:
        self.journal.hold()

    def flush_in(self, seconds: float) -> None:
        """Let the held records reach the transcript in so many seconds."""
        self._flush_at = deadline(seconds)

    def flush(self) -> None:
        self._flush_at = None
        self.journal.flush()
