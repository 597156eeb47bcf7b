"""The composition root: the settings, and one `Flow` for each host, shared by the three mechanisms."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from ccc_hookspecs.config import PluginSettings
from ccc_hookspecs.specs import Host
from ccc_plugins.retire_stale.flow import Flow
from ccc_plugins.retire_stale.settings import Settings


class Plugin:
    """What the mechanisms share. Making one reads and starts nothing; safe to use from any thread, and in a process after a fork."""

    def __init__(self) -> None:
        self._settings = Settings()
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._flows: dict[Path, Flow] = {}

    @property
    def settings(self) -> Settings:
        return self._settings

    def configure(self, settings: PluginSettings) -> None:
        """Take the settings of `[plugins.retire_stale]`; raises `ConfigError`. Each mechanism does so, with the same table."""
        self.use(settings.into(Settings))

    def use(self, settings: Settings) -> None:
        """Go on with these settings; with others than before, what was remembered of hosts in memory is forgotten.

        A hook call that runs meanwhile ends with the settings that it began with.
        """
        self._outlive_fork()
        with self._lock:
            if settings != self._settings:
                self._settings = settings
                self._flows.clear()

    def flow(self, ccc: Host) -> Flow:
        """The flow of a host, by its state directory. Made at the first use, which also thaws what a crash left stopped."""
        self._outlive_fork()
        state_dir = ccc.state_dir
        with self._lock:
            known = self._flows.get(state_dir)
            found = self._flows[state_dir] = known or Flow(state_dir, self._settings)
        if known is None:
            found.mend()
        return found

    def _outlive_fork(self) -> None:
        """In the child of a fork a thread that is not there may hold the locks for ever, so it begins anew."""
        if self._pid != os.getpid():
            self._start()


plugin = Plugin()
