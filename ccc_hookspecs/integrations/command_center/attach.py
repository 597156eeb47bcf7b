"""Attaching the hooks to a running CCC: what `attach` puts in place, and takes away again."""

from __future__ import annotations

import logging
import os
import sys
import threading
from types import ModuleType
from typing import Any, Final

from ccc_hookspecs.config import Config
from ccc_hookspecs.errors import CccError
from ccc_hookspecs.integrations.command_center.adapter import CommandCenterHost
from ccc_hookspecs.integrations.command_center.attempts import Attempts
from ccc_hookspecs.integrations.command_center.checks import Checks
from ccc_hookspecs.integrations.command_center.holds import Holds
from ccc_hookspecs.integrations.command_center.judge import Judge
from ccc_hookspecs.integrations.command_center.names import check
from ccc_hookspecs.integrations.command_center.notices import Notices
from ccc_hookspecs.integrations.command_center.patches import Function, Patches
from ccc_hookspecs.integrations.command_center.queue import Queue
from ccc_hookspecs.integrations.command_center.routes import Routes
from ccc_hookspecs.integrations.command_center.terminals import Terminals
from ccc_hookspecs.integrations.command_center.upkeep import Upkeep
from ccc_hookspecs.integrations.command_center.writer import Writer
from ccc_hookspecs.manager import PluginManager
from ccc_hookspecs.ticker import Ticker
from ccc_hookspecs.values import Tick

log = logging.getLogger(__name__)

READ_IN: Final = "5.25.2"
"""The release of CCC whose source this integration was written to."""

PATH_VARIABLE: Final = "CCC_HOOKSPECS_PATH"
"""Directories that `retire-stale run` adds to the module path of CCC's processes, separated as in PATH."""

_attached: dict[int, Attachment] = {}
_attaching = threading.Lock()


class AttachError(CccError):
    """This CCC does not have what the integration needs, and was left untouched.

    Attributes: `version` (CCC's, or None), `problems` (one text for each name that is missing or has another shape).
    """

    def __init__(self, version: str | None, problems: tuple[str, ...]) -> None:
        super().__init__(
            f"the plugins are not attached: CCC {version or 'of unknown version'} lacks {'; '.join(problems)}"
            f" (this integration knows CCC {READ_IN}). CCC runs on without them."
        )
        self.version = version
        self.problems = problems


class Attachment:
    """The hooks attached to one server module. Made by `attach`."""

    def __init__(self, server: ModuleType, manager: PluginManager, engine_host: Any = None) -> None:
        self.server = server
        self.manager = manager
        self.host = CommandCenterHost(server)
        self.holds = Holds()
        self._queue = Queue(server)
        self._attempts = Attempts()
        self._patches = Patches()
        self._judge = Judge(server, self.host, manager, self.holds, self._queue)
        self._notices = Notices(server, self.host, self.holds)
        self._terminals = Terminals(server, self.host, manager)
        self._upkeep = Upkeep(self.host, self.holds)
        self._checks = Checks(server, self.host, self._queue, self.holds, self._attempts)
        self.ticker = Ticker(self.tick, manager.config.ticker.interval, name="ccc-plugins-ticker")
        try:
            self._put_in_place(engine_host)
        except BaseException:
            self.detach()
            raise

    def tick(self, tick: Tick) -> None:
        """One beat: every held text is asked about again, and every plugin is called, whatever befalls the former."""
        try:
            self._judge.ask_again()
        except Exception:
            log.exception("what is held could not be asked about")
        self._upkeep.on_tick(tick)
        self.manager.on_tick(self.host, tick)

    def detach(self) -> None:
        """Stop the ticker and put CCC's own functions back. Texts that were held stay in CCC's queue."""
        self.ticker.stop()
        self._notices.disconnect()
        self._patches.undo()
        _attached.pop(id(self.server), None)

    def _put_in_place(self, engine_host: Any) -> None:
        self.host.records.sweep()
        self.host.debts.sweep()
        self._notices.connect()
        for name, wrapper in self._wrappers().items():
            self._patches.wrap(self.server, name, wrapper)
        if engine_host is not None:
            self._patches.wrap(engine_host, "query", self._terminals.answer)
            self._patches.wrap(engine_host, "query", self._checks.worker_answer)
        self.ticker.start()

    def _wrappers(self) -> dict[str, Function]:
        server = self.server
        writer = Writer(server, self.host, self._judge, self._queue, self._attempts)
        routes = Routes(server, self.host, self._judge, self._queue, self.holds, self._attempts)
        checks = self._checks
        return {
            "_write_via_spawn_fd": writer.through_fd,
            "_write_via_pipe": writer.through_pipe,
            "_write_stream_json_user_message": writer.write,
            "_headless_spawn_is_stale": writer.stale,
            "_inject_text_into_session": routes.inject,
            "inject_into_spawned": routes.by_pid,
            "resume_session_headless": routes.resume,
            "ask_session_and_wait": routes.ask,
            "compact_session_context": routes.compact,
            "clear_session_context": routes.clear,
            "_headless_turn_in_progress": checks.busy,
            "_retire_unresponsive_spawn_entry": checks.retire,
            "_terminal_queue_waits_for_headless_turn": checks.queue_waits,
            "_queue_terminal_input": checks.queue,
            "_terminal_input_queue_has_pending": checks.queued,
            "_archive_session_is_live": checks.session_live,
            "_try_wt_send_for_headless_delivery": checks.wt_send,
            "_try_wt_ask_for_headless_delivery": checks.wt_send,
            "launch_terminal_for_session": self._terminals.launch,
            "_question_relay_env": child_environment,
        }


def attach(server: ModuleType, manager: PluginManager | None = None, *, config: Config | None = None) -> Attachment:
    """Attach the hooks to CCC's server module and load the plugins; the same attachment when it is attached already.

    `manager`: with its plugins loaded; None loads what is installed, as `config` says. Raises `AttachError` when a name
    is missing or has another shape, and `ConfigError` for a wrong configuration; CCC is untouched then.
    """
    with _attaching:
        if id(server) in _attached:
            return _attached[id(server)]
        engine_host = getattr(sys.modules.get("worker_engines"), "EngineHost", None)
        problems = check(server, engine_host)
        if problems:
            raise AttachError(getattr(server, "__version__", None), problems)
        if manager is None:
            manager = PluginManager(config)
            manager.load()
        attachment = _attached[id(server)] = Attachment(server, manager, engine_host)
        active = [status.name for status in manager.plugins() if status.state == "active"]
        server._log_activity("plugins", "ATTACH", f"pid={os.getpid()} active: {', '.join(active) or 'none'}")
        return attachment


def child_environment(original: Function) -> dict[str, str]:
    """`_question_relay_env`: a headless and its tools are not CCC, and get no part of what `retire-stale run` set for it."""
    environment: dict[str, str] = dict(original())
    if environment.pop(PATH_VARIABLE, None) is not None:
        kept = [part for part in environment.pop("PYTHONPATH", "").split(os.pathsep) if part and not is_startup(part)]
        environment.update({"PYTHONPATH": os.pathsep.join(kept)} if kept else {})
    return environment


def is_startup(folder: str) -> bool:
    """True for the directory that holds our `sitecustomize`."""
    return os.path.realpath(folder) == os.path.join(os.path.dirname(os.path.realpath(__file__)), "startup")
