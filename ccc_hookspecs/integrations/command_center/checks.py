"""The checks by which CCC decides to end a process, to wait for it, or to drop its queue, and what they hear of ours."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from ccc_hookspecs.integrations.command_center.adapter import CommandCenterHost
from ccc_hookspecs.integrations.command_center.attempts import Attempts
from ccc_hookspecs.integrations.command_center.holds import Holds, why
from ccc_hookspecs.integrations.command_center.patches import Function
from ccc_hookspecs.integrations.command_center.queue import Queue
from ccc_hookspecs.integrations.command_center.routes import Answer, answer_of

INPUT_STATE: Final = "input_state"
"""The question by which the dashboard's queue asks a worker whether a process is busy."""


class Checks:
    """Takes the place of the checks by which CCC decides to end a process, to wait for it, or to drop its queue."""

    def __init__(self, server: ModuleType, host: CommandCenterHost, queue: Queue, holds: Holds, attempts: Attempts) -> None:
        self._server = server
        self._host = host
        self._queue = queue
        self._holds = holds
        self._attempts = attempts

    def busy(self, original: Function, entry: Any) -> bool:
        """`_headless_turn_in_progress`: also true while a text is held for the process or a mechanism waits for it; false once retired."""
        if self._host.gone(entry):
            return False
        ours = self._holds.stops_queue if self._attempts.queue_looks else self._holds.busy
        return (isinstance(entry, dict) and ours(entry)) or bool(original(entry))

    def queue_waits(self, original: Function, session_id: str, status: Any = None) -> bool:
        """`_terminal_queue_waits_for_headless_turn`: hears of holds alone."""
        with self._attempts.queue_look():
            return bool(original(session_id, status))

    def worker_answer(self, original: Function, engine_host: Any, params: Any) -> Any:
        """`EngineHost.query`, in the worker: its `input_state` is the same look, by the dashboard's queue."""
        if not isinstance(params, dict) or params.get("operation") != INPUT_STATE:
            return original(engine_host, params)
        with self._attempts.queue_look():
            return original(engine_host, params)

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
            return answer_of(original(session_id, text, status))
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
        """`_try_wt_send_for_headless_delivery` and its sibling: of the process that takes over for a retired one the plugins must be asked,
        so CCC resumes itself."""
        debt = self._host.debts.get(session_id)
        return None if debt is not None and debt.retired_pid is not None else original(session_id, text, *rest)
