"""Telling the plugins of a terminal before CCC starts it, in the process that owns the session's headless."""

from __future__ import annotations

import logging
import platform
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from ccc_hookspecs.checks import is_uuid
from ccc_hookspecs.integrations.command_center.adapter import CommandCenterHost
from ccc_hookspecs.integrations.command_center.patches import Function
from ccc_hookspecs.manager import PluginManager
from ccc_hookspecs.values import TerminalLaunch

log = logging.getLogger(__name__)

OPERATION: Final = "ccc_hookspecs.on_terminal_launch"
"""The question that the dashboard puts to a worker that owns the session's headless."""


class Terminals:
    """Takes the place of CCC's terminal launcher, and of the worker's function that answers the dashboard's questions."""

    def __init__(self, server: ModuleType, host: CommandCenterHost, manager: PluginManager) -> None:
        self._server = server
        self._host = host
        self._manager = manager

    def launch(self, original: Function, session_id: str, cwd: Any = None, *rest: Any, **options: Any) -> Any:
        """`launch_terminal_for_session`. Where CCC cannot open a terminal, none is announced."""
        if platform.system() == "Darwin" and is_uuid(session_id):
            try:
                self._announce(session_id, cwd)
            except Exception:
                # The terminal is opened whatever happens here.
                log.exception("the terminal on session %s could not be announced", session_id)
        return original(session_id, cwd, *rest, **options)

    def answer(self, original: Function, engine_host: Any, params: Any) -> Any:
        """`EngineHost.query`, in the worker."""
        if not isinstance(params, dict) or params.get("operation") != OPERATION:
            return original(engine_host, params)
        given = params.get("args") or {}
        self.tell(str(given.get("session_id")), given.get("cwd"))
        return {"ok": True}

    def tell(self, session_id: str, cwd: Any) -> None:
        """Call the hook, in this process."""
        path = Path(cwd) if isinstance(cwd, str) and cwd else None
        headless = self._host.headless_for(session_id)
        launch = TerminalLaunch(session_id=session_id, headless=headless, cwd=path if path is not None and path.is_absolute() else None)
        self._manager.on_terminal_launch(self._host, launch)

    def _announce(self, session_id: str, cwd: Any) -> None:
        headless = self._host.headless_for(session_id)
        if headless is not None and headless.owned:
            self.tell(session_id, cwd)
            return
        args = {"session_id": session_id, "cwd": cwd}
        answer = self._server._control_plane_engine_call("claude", OPERATION, args, mutate=False)
        if answer is not None and not answer.get("ok"):
            # A worker that had not loaded CCC's server yet has done so now, and knows the question the second time.
            answer = self._server._control_plane_engine_call("claude", OPERATION, args, mutate=False)
        if answer is None:
            self.tell(session_id, cwd)
        elif not answer.get("ok"):
            log.warning("CCC's worker does not know the plugins; restart it, so that it retires what it owns: %s", answer.get("error"))
