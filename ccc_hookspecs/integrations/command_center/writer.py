"""CCC's one way of writing to a headless, with the plugins asked first.

CCC makes the message id inside its writer, so the plugins are asked where the finished line passes, just before its
first byte. An answer other than `Deliver` makes the writer report failure, which CCC's callers know how to handle.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from ccc_hookspecs.errors import SessionLockTimeout
from ccc_hookspecs.integrations.command_center.adapter import CommandCenterHost
from ccc_hookspecs.integrations.command_center.attempts import Attempt, Attempts, Blocked, Entry
from ccc_hookspecs.integrations.command_center.judge import Judge
from ccc_hookspecs.integrations.command_center.lines import parsed, patience, with_catch_up
from ccc_hookspecs.integrations.command_center.patches import Function
from ccc_hookspecs.integrations.command_center.queue import Queue
from ccc_hookspecs.integrations.command_center.spawns import engine_of, pid_of, resumed
from ccc_hookspecs.outcomes import Respawned
from ccc_hookspecs.processes import start_time
from ccc_hookspecs.signals import emit, headless_respawned
from ccc_hookspecs.values import Decision, Deliver, Headless, Hold, Respawn, SentInput

log = logging.getLogger(__name__)

LOCK_SECONDS: Final = 10.0
"""How long a text waits for its session's lock, in seconds; a retirement under way takes less."""


@dataclass(slots=True)
class _Line:
    """One text on its way through CCC's writer."""

    entry: Entry
    session_id: str | None
    attempt: Attempt
    fresh: bool
    text: str = ""
    message_id: str | None = None
    decision: Decision | None = None

    @property
    def catch_up(self) -> str | None:
        """What goes in front of it."""
        return self.decision.catch_up if isinstance(self.decision, Deliver) else None


class _Current(threading.local):
    line: _Line | None = None


class Writer:
    """Takes the place of CCC's writer and of the two functions it hands the finished line to."""

    def __init__(self, server: ModuleType, host: CommandCenterHost, judge: Judge, queue: Queue, attempts: Attempts) -> None:
        self._server = server
        self._host = host
        self._judge = judge
        self._queue = queue
        self._attempts = attempts
        self._current = _Current()
        self._stale_by_ccc: Function = server._headless_spawn_is_stale

    # --- in CCC's place -------------------------------------------------------------------------------------------------

    def write(self, original: Function, target: Any, text: str, timeout: float = 0.25) -> bool:
        """`_write_stream_json_user_message`: as it, but False without a byte written when the plugins hold or refuse the text."""
        if not isinstance(target, dict) or engine_of(target) != "claude" or pid_of(target) is None:
            return bool(original(target, text, timeout=timeout))
        line = self._prepared(target)
        if line is None:
            return bool(original(target, text, timeout=timeout))
        with contextlib.ExitStack() as lock:
            written = self._lock(lock, line, text) and self._pass(line, original, text, timeout)
        if not written and line.session_id is not None and isinstance(line.decision, Hold | Respawn):
            line.attempt.blocked.append(Blocked(target, line.session_id, text, line.decision))
        return written

    def through_fd(self, original: Function, target: Any, line: bytes, timeout: float = 0.25) -> bool:
        """`_write_via_spawn_fd`. Lines that are no text, such as an interrupt, pass as they are."""
        passing = self._current.line
        if passing is None or passing.entry is not target:
            return bool(original(target, line, timeout=timeout))
        if not self._allowed(passing, line):
            return False
        return bool(original(target, with_catch_up(line, passing.catch_up), timeout=max(timeout, patience(passing.catch_up))))

    def through_pipe(self, original: Function, proc: Any, line_bytes: bytes) -> bool:
        """`_write_via_pipe`: the way for a spawn that has no FIFO, and tried in vain after a FIFO that failed."""
        passing = self._current.line
        if passing is None or passing.entry.get("proc") is not proc:
            return bool(original(proc, line_bytes))
        return self._allowed(passing, line_bytes) and bool(original(proc, with_catch_up(line_bytes, passing.catch_up)))

    def stale(self, original: Function, entry: Any, session_id: str | None = None) -> bool:
        """`_headless_spawn_is_stale`: put off until the plugins were asked, which is when the line passes."""
        attempt = self._attempts.current
        if attempt is None or not isinstance(entry, dict) or engine_of(entry) != "claude":
            return bool(original(entry, session_id))
        attempt.unchecked.append(entry)
        return False

    # --- inside ---------------------------------------------------------------------------------------------------------

    def _prepared(self, target: Entry) -> _Line | None:
        fresh = not self._host.listed(target) and not self._host.gone(target)
        line = _Line(target, None, self._attempts.current or Attempt(), fresh=fresh)
        try:
            if fresh:
                self._host.note(target, start_time(target["pid"]), line.attempt.transcript_size)
            line.session_id = self._host.session_of(target)
        except Exception:
            # As below: without us, the text would be written.
            log.exception("process %s could not be looked at", target.get("pid"))
            return None
        return line

    def _lock(self, stack: contextlib.ExitStack, line: _Line, text: str) -> bool:
        """Take the session's lock until `stack` is closed; False when it is not to be had, and the text is held."""
        try:
            if line.session_id is not None:
                stack.enter_context(self._host.session_lock(line.session_id, LOCK_SECONDS))
        except OSError as error:  # the timeout is one
            if not isinstance(error, SessionLockTimeout):
                log.exception("session %s cannot be locked", line.session_id)
            line.decision = self._judge.wait_for_lock(line.entry, text, error)
            return False
        return True

    def _pass(self, line: _Line, original: Function, text: str, timeout: float) -> bool:
        with self._passing(line):
            written = bool(original(line.entry, text, timeout=timeout))
        if written:
            self._written(line)
        return written

    @contextlib.contextmanager
    def _passing(self, line: _Line) -> Iterator[None]:
        outer, self._current.line = self._current.line, line
        try:
            yield
        finally:
            self._current.line = outer

    def _allowed(self, line: _Line, raw: bytes) -> bool:
        if line.decision is None:
            try:
                line.decision = self._judged(line, raw)
            except Exception:
                # A fault of ours must not stop CCC's messages; without us, this one would be written.
                log.exception("a text for process %d was not judged", line.entry["pid"])
                line.decision = Deliver()
        return isinstance(line.decision, Deliver)

    def _judged(self, line: _Line, raw: bytes) -> Decision:
        line.message_id, line.text = parsed(raw)
        if self._host.gone(line.entry):
            return Respawn(reason=f"process {line.entry['pid']} was retired in the meantime")
        if line.session_id is None or line.message_id is None:
            return Deliver()
        if line.fresh:
            return self._first(line, line.message_id)
        decision = self._judge.ask(line.entry, line.text, line.message_id, from_queue=line.attempt.from_queue)
        unchecked = any(entry is line.entry for entry in line.attempt.unchecked)
        if isinstance(decision, Deliver) and unchecked and self._stale_by_ccc(line.entry, line.session_id):
            line.attempt.stale_by_ccc = line.entry
            return Respawn(reason="CCC's own check found the transcript advanced")
        return decision

    def _first(self, line: _Line, message_id: str) -> Decision:
        """The first text of a process that CCC has just started: of interest is what a resumed one lacks."""
        if not resumed(line.entry):
            return Deliver()
        with self._host.starting(line.entry):
            return self._judge.ask(line.entry, line.text, message_id, from_queue=True)

    def _written(self, line: _Line) -> None:
        try:
            if line.message_id is not None:
                self._host.records.sent(line.entry["pid"], SentInput(message_id=line.message_id, sent_at=time.time()))
            if line.session_id is not None:
                self._settle(line, line.session_id)
        except Exception:
            # It was written, and CCC must hear so, or it would be sent again.
            log.exception("what process %d was sent could not be noted", line.entry["pid"])

    def _settle(self, line: _Line, session_id: str) -> None:
        """Strike out what this text paid; the rest is owed on while texts wait for it."""
        debt = self._host.debts.get(session_id)
        if debt is None:
            return
        headless = self._host.headless(line.entry) if line.fresh else None
        if headless is not None and debt.retired_pid is not None:
            retired = Headless(session_id=session_id, pid=debt.retired_pid, start_time=debt.retired_start)
            event = Respawned(headless=headless, retired=retired, reason=debt.reason, message_id=line.message_id)
            emit(headless_respawned, debt.mechanism, event)
        if not self._queue.pending(session_id):
            self._host.debts.paid(session_id)
        elif headless is not None:
            self._host.debts.put(session_id, debt.respawned())
