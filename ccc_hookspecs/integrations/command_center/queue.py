"""CCC's durable queue, in the dashboard and in the worker."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from ccc_hookspecs.integrations.command_center.patches import Function


class Queue:
    """What is queued for a session, and how to queue more.

    The dashboard delivers the queue. The worker has no part in that, and the texts that CCC's own function takes there stay
    in the worker's memory, from which later calls write them out again after they were delivered. So in the worker a
    text goes through CCC's hand-off directory: one file a text, which the dashboard removes when it is delivered.
    """

    def __init__(self, server: ModuleType) -> None:
        self._server = server
        self._put: Function = server._queue_terminal_input
        self._has: Function = server._terminal_input_queue_has_pending

    @property
    def in_worker(self) -> bool:
        """True in CCC's worker process."""
        return os.environ.get("CCC_WORKER_PROCESS") == "1"

    def pending(self, session_id: str) -> bool:
        """True when texts wait for this session, in whatever process they were queued."""
        if any(True for _ in self._handed(session_id)):
            return True
        return bool(self._saved(session_id)) if self.in_worker else bool(self._has(session_id))

    def put(self, session_id: str, text: str, status: dict[str, Any] | None, reason: str) -> dict[str, Any]:
        """Queue a text durably, behind those that wait. Returns CCC's answer for that; `reason` says why, for people."""
        if not self.in_worker or self._server._write_pending_input_handoff(session_id, text) is None:
            return {**self._put(session_id, text, status), "queued_reason": reason}
        answer = {"ok": True, "queued": True, "via": "terminal-queued", "session_id": session_id}
        answer["queued_count"] = sum(1 for _ in self._handed(session_id))
        return {**answer, "queued_reason": reason, **{key: (status or {}).get(key) for key in ("pid", "status")}}

    def _handed(self, session_id: str) -> Iterator[Path]:
        for path in sorted(self._server.PENDING_INPUT_HANDOFF_DIR.glob("*.json")):
            if _loaded(path).get("session_id") == session_id:
                yield path

    def _saved(self, session_id: str) -> list[object]:
        queues = _loaded(self._server.PENDING_INPUTS_FILE).get("terminal_queue")
        texts = queues.get(session_id) if isinstance(queues, dict) else None
        return texts if isinstance(texts, list) else []


def _loaded(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
