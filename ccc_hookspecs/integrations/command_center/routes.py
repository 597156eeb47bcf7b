"""CCC's callers of the writer, where a failed write would lose the text or end a process that is busy.

`_inject_text_into_session` and the steering in it need nothing here but to be told apart: they queue when the busy checks
say running, and resume when those say idle. The others report the failure and drop the text.
"""

from __future__ import annotations

import time
from types import ModuleType
from typing import Any, Final

from ccc_hookspecs.integrations.command_center.adapter import CommandCenterHost
from ccc_hookspecs.integrations.command_center.attempts import Attempt, Attempts, Blocked
from ccc_hookspecs.integrations.command_center.holds import Holds, why
from ccc_hookspecs.integrations.command_center.judge import Judge
from ccc_hookspecs.integrations.command_center.patches import Function
from ccc_hookspecs.integrations.command_center.queue import Queue
from ccc_hookspecs.values import Hold

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
            return _answer(original(session_id, text, **options))

    def by_pid(self, original: Function, pid: int, text: str) -> Answer:
        """`inject_into_spawned`: a held text is queued, a refused one goes to a fresh resume."""
        with self._attempts.begin() as attempt:
            answer = _answer(original(pid, text))
        return self._taken_up(attempt, answer)

    def resume(self, original: Function, session_id: str, text: str, **options: Any) -> Answer:
        """`resume_session_headless`: a text that is held, or would overtake queued ones, is queued."""
        outer = self._attempts.current
        from_queue = outer is not None and outer.from_queue
        if not from_queue and (reason := self._overtakes(session_id)) is not None:
            return self._queue.put(session_id, text, None, reason)
        for _ in range(RESUMES):
            with self._attempts.begin(transcript_size=self._host.transcript_size(session_id)) as attempt:
                answer = _answer(original(session_id, text, **options))
            if not attempt.blocked or answer.get("ok"):
                return answer
            if isinstance(attempt.blocked[-1].decision, Hold):
                return answer if from_queue else self._queued(attempt.blocked[-1])
        return answer

    def ask(self, original: Function, session_id: str, text: str, timeout_ms: int = 30000, cwd: str | None = None) -> Answer:
        """`ask_session_and_wait`: waits for a hold to end, within its time; then the text is queued, and it says so."""
        deadline = time.monotonic() + timeout_ms / 1000
        while True:
            waits_for = self._overtakes(session_id)
            answer = self._asked(original, session_id, text, deadline, cwd) if waits_for is None else None
            if answer is not None:
                return answer
            if time.monotonic() + ASK_AGAIN_SECONDS > deadline:
                return self._unanswered(session_id, text, waits_for or self._holding(session_id))
            time.sleep(ASK_AGAIN_SECONDS)

    def _asked(self, original: Function, session_id: str, text: str, deadline: float, cwd: str | None) -> Answer | None:
        """CCC's answer; None when the text is held. A process that was retired is replaced by asking CCC once more."""
        for _ in range(2):
            left = max(500, int((deadline - time.monotonic()) * 1000))
            with self._attempts.begin() as attempt:
                answer = _answer(original(session_id, text, timeout_ms=left, cwd=cwd))
            if not attempt.blocked or answer.get("ok"):
                return answer
            if isinstance(attempt.blocked[-1].decision, Hold):
                return None
        return answer

    def compact(self, original: Function, session_id: str, **options: Any) -> Answer:
        """`compact_session_context`: a held command is queued; a refused one goes the way of a session without a process."""
        with self._attempts.begin(from_queue=bool(options.get("_from_terminal_queue"))) as attempt:
            answer = _answer(original(session_id, **options))
        return self._taken_up(attempt, answer)

    def clear(self, original: Function, session_id: str, **options: Any) -> Answer:
        """`clear_session_context`: CCC does not look whether the first text of the new session was written; we do."""
        with self._attempts.begin() as attempt:
            answer = _answer(original(session_id, **options))
        for blocked in attempt.blocked:
            self._taken_up(Attempt(blocked=[blocked]), {})
        return answer

    def _overtakes(self, session_id: str) -> str | None:
        """Why a text must wait behind others of its session; None when it need not, or another process decides."""
        if self._server._control_plane_routes_engines() or not self._judge.must_wait(session_id):
            return None
        return "earlier texts of this session wait to be delivered first"

    def _unanswered(self, session_id: str, text: str, reason: str) -> Answer:
        queued = self._queue.put(session_id, text, None, reason)
        return {**queued, "ok": False, "error": f"no answer yet, the text is queued: {reason}", "source": "resume-headless"}

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
        return _answer(self._server.resume_session_headless(blocked.session_id, blocked.text))

    def _queued(self, blocked: Blocked) -> Answer:
        status = {"pid": blocked.entry.get("pid"), "status": "headless"}
        reason = why(blocked.decision) if isinstance(blocked.decision, Hold) else blocked.decision.reason
        return self._queue.put(blocked.session_id, blocked.text, status, reason)


class Checks:
    """Takes the place of the checks by which CCC decides to end a process, to wait for it, or to drop its queue."""

    def __init__(self, server: ModuleType, host: CommandCenterHost, queue: Queue, holds: Holds, attempts: Attempts) -> None:
        self._server = server
        self._host = host
        self._queue = queue
        self._holds = holds
        self._attempts = attempts

    def busy(self, original: Function, entry: Any) -> bool:
        """`_headless_turn_in_progress`: also true while a text is held for the process; false once it was retired."""
        if self._host.gone(entry):
            return False
        return (isinstance(entry, dict) and self._holds.busy(entry)) or bool(original(entry))

    def retire(self, original: Function, entry: Any, *, terminate: bool = False, reason: Any = None, caller: Any = None) -> None:
        """`_retire_unresponsive_spawn_entry`: nothing is left to do, and no pid to signal, for a process that was retired."""
        if self._host.gone(entry):
            return
        attempt = self._attempts.current
        if attempt is not None and attempt.stale_by_ccc is entry:
            reason, caller = "stale_transcript", "inject-stale-detection"
        original(entry, terminate=terminate, reason=reason, caller=caller)
        if isinstance(entry, dict) and isinstance(entry.get("pid"), int):
            self._holds.forget(entry["pid"])

    def queue(self, original: Function, session_id: str, text: str, status: Any = None) -> Answer:
        """`_queue_terminal_input`: says why a text is held; in the worker, held texts go the durable way."""
        held = self._holds.of_session(session_id)
        if held is None and not (self._queue.in_worker and self._host.debts.get(session_id) is not None):
            return _answer(original(session_id, text, status))
        return self._queue.put(session_id, text, status, why(held.hold) if held is not None else "waits for its turn")

    def queued(self, original: Function, session_id: str) -> bool:
        """`_terminal_input_queue_has_pending`: also true for texts that the worker handed over and that wait."""
        if original(session_id):
            return True
        return self._queue.in_worker and self._host.debts.get(session_id) is not None and self._queue.pending(session_id)

    def session_live(self, original: Function, session_id: str) -> bool:
        """`_archive_session_is_live`: CCC drops the queue of a session without a process; not while we owe it one."""
        return bool(original(session_id)) or (self._host.debts.get(session_id) is not None and self._queue.pending(session_id))

    def wt_send(self, original: Function, session_id: str, text: str, *rest: Any) -> Any:
        """`_try_wt_send_for_headless_delivery` and its sibling: another tool knows nothing of a catch-up, so CCC resumes itself."""
        debt = self._host.debts.get(session_id)
        return None if debt is not None and debt.catch_up is not None else original(session_id, text, *rest)


def _answer(given: Any) -> Answer:
    return given if isinstance(given, dict) else {"ok": False, "error": "CCC gave no answer"}
