"""CCC's callers of the writer, where a failed write would lose the text or end a process that is busy.

`_inject_text_into_session` and the steering in it need nothing here but to be told apart: they queue when the busy checks
say running, and resume when those say idle. The others report the failure and drop the text.
"""

from __future__ import annotations

import logging
import time
from types import ModuleType
from typing import Any, Final

from ccc_hookspecs.integrations.command_center.adapter import CommandCenterHost
from ccc_hookspecs.integrations.command_center.attempts import Attempt, Attempts, Blocked
from ccc_hookspecs.integrations.command_center.holds import Holds, why
from ccc_hookspecs.integrations.command_center.judge import OVERTAKES, Judge
from ccc_hookspecs.integrations.command_center.patches import Function
from ccc_hookspecs.integrations.command_center.queue import Queue
from ccc_hookspecs.values import Hold

log = logging.getLogger(__name__)

Answer = dict[str, Any]
ASK_AGAIN_SECONDS: Final = 1.0
RESUMES: Final = 3
"""How often a resume is tried when the fresh process, too, turns out to be stale before it got the text."""


class Routes:
    """Takes the place of the functions that bring texts to the writer. All of them answer in CCC's own shapes."""

    def __init__(self, server: ModuleType, host: CommandCenterHost, judge: Judge, queue: Queue, holds: Holds, attempts: Attempts) -> None:
        self._server = server
        self._host = host
        self._judge = judge
        self._queue = queue
        self._holds = holds
        self._attempts = attempts

    def inject(self, original: Function, session_id: str, text: str, **options: Any) -> Answer:
        """`_inject_text_into_session`: as it; what it calls is told whether the queue delivers."""
        with self._attempts.begin(from_queue=bool(options.get("_from_terminal_queue"))):
            return answer_of(original(session_id, text, **options))

    def by_pid(self, original: Function, pid: int, text: str) -> Answer:
        """`inject_into_spawned`: a held text is queued, a refused one goes to a fresh resume."""
        with self._attempts.begin() as attempt:
            answer = answer_of(original(pid, text))
        return self._taken_up(attempt, answer)

    def resume(self, original: Function, session_id: str, text: str, **options: Any) -> Answer:
        """`resume_session_headless`: a text that is held, is refused again and again, or would overtake queued ones, is queued."""
        outer = self._attempts.current or Attempt()
        if not outer.from_queue and (reason := self._overtakes(session_id)) is not None:
            outer.queued = self._queue.put(session_id, text, None, reason)
            return outer.queued
        for _ in range(RESUMES):
            with self._attempts.begin(transcript_size=self._host.transcript_size(session_id)) as attempt:
                answer = answer_of(original(session_id, text, **options))
            if not attempt.blocked or answer.get("ok"):
                return answer
            if isinstance(attempt.blocked[-1].decision, Hold):
                break
        if outer.from_queue:
            return answer
        outer.queued = self._queued(attempt.blocked[-1])
        return outer.queued

    def ask(self, original: Function, session_id: str, text: str, timeout_ms: int = 30000, cwd: str | None = None) -> Answer:
        """`ask_session_and_wait`: waits for a hold to end, within its time; then the text is queued, and it says so."""
        deadline = time.monotonic() + timeout_ms / 1000
        while True:
            waits_for = self._overtakes(session_id)
            answer = self._asked(original, session_id, text, deadline, cwd) if waits_for is None else None
            if answer is not None:
                return answer
            if time.monotonic() + ASK_AGAIN_SECONDS > deadline:
                return _unanswered(self._queue.put(session_id, text, None, waits_for or self._holding(session_id)))
            time.sleep(ASK_AGAIN_SECONDS)

    def _asked(self, original: Function, session_id: str, text: str, deadline: float, cwd: str | None) -> Answer | None:
        """CCC's answer; None when the text was not written. A process that was retired is replaced by asking CCC once more."""
        for _ in range(2):
            left = max(500, int((deadline - time.monotonic()) * 1000))
            with self._attempts.begin() as attempt:
                answer = answer_of(original(session_id, text, timeout_ms=left, cwd=cwd))
            if attempt.queued is not None:
                return _unanswered(attempt.queued)
            if not attempt.blocked or answer.get("ok"):
                return answer
            if isinstance(attempt.blocked[-1].decision, Hold):
                break
        return None

    def compact(self, original: Function, session_id: str, **options: Any) -> Answer:
        """`compact_session_context`: a held command is queued; a refused one goes the way of a session without a process."""
        with self._attempts.begin(from_queue=bool(options.get("_from_terminal_queue"))) as attempt:
            answer = answer_of(original(session_id, **options))
        return self._taken_up(attempt, answer)

    def clear(self, original: Function, session_id: str, **options: Any) -> Answer:
        """`clear_session_context`: CCC does not look whether the first text of the new session was written; we do.

        When the command itself was not, CCC says so, and the text is the caller's to send again.
        """
        with self._attempts.begin() as attempt:
            answer = answer_of(original(session_id, **options))
        for blocked in attempt.blocked if answer.get("ok") else ():
            self._owed(blocked)
        return answer

    def _owed(self, blocked: Blocked) -> None:
        """Bring a text on its way, of which CCC has said already that it is: it is queued when nothing else succeeds."""
        try:
            taken = self._taken_up(Attempt(blocked=[blocked]), {})
        except Exception:
            log.exception("session %s could not be resumed", blocked.session_id)
            taken = {}
        if not taken.get("ok"):
            self._queued(blocked)

    def _overtakes(self, session_id: str) -> str | None:
        """Why a text must wait behind others of its session; None when it need not, or another process decides."""
        if self._server._control_plane_routes_engines() or not self._judge.must_wait(session_id):
            return None
        return OVERTAKES

    def _holding(self, session_id: str) -> str:
        held = self._holds.of_session(session_id)
        return why(held.hold) if held is not None else "the session is busy"

    def _taken_up(self, attempt: Attempt, answer: Answer) -> Answer:
        """What becomes of a text that a route without a queue could not write: CCC's queue or its resume."""
        if not attempt.blocked or answer.get("ok") or attempt.from_queue:
            return answer
        blocked = attempt.blocked[-1]
        if isinstance(blocked.decision, Hold):
            return self._queued(blocked)
        return answer_of(self._server.resume_session_headless(blocked.session_id, blocked.text))

    def _queued(self, blocked: Blocked) -> Answer:
        status = {"pid": blocked.entry.get("pid"), "status": "headless"}
        reason = why(blocked.decision) if isinstance(blocked.decision, Hold) else blocked.decision.reason
        return self._queue.put(blocked.session_id, blocked.text, status, reason)


def answer_of(given: Any) -> Answer:
    """What CCC answered, in a shape that can be looked into."""
    return given if isinstance(given, dict) else {"ok": False, "error": "CCC gave no answer"}


def _unanswered(queued: Answer) -> Answer:
    error = f"no answer yet, the text is queued: {queued.get('queued_reason')}"
    return {**queued, "ok": False, "error": error, "source": "resume-headless"}
