"""The composition root: the settings, and one `Flow` for each host, shared by the three mechanisms."""

from __future__ import annotations

import threading
from pathlib import Path

from ccc_hookspecs.config import PluginSettings
from ccc_hookspecs.specs import Host
from ccc_plugins.retire_stale.flow import Flow
from ccc_plugins.retire_stale.settings import Settings


class Plugin:
    """What the mechanisms share. Making one reads and starts nothing; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._settings = Settings()
        self._flows: dict[Path, Flow] = {}

    @property
    def settings(self) -> Settings:
        return self._settings

    def configure(self, settings: PluginSettings) -> None:
        """Take the settings of `[plugins.retire_stale]`; raises `ConfigError`. Each mechanism does so, with the same table."""
        self.use(settings.into(Settings))

    def use(self, settings: Settings) -> None:
        """Go on with these settings; with others than before, what was remembered of hosts in memory is forgotten."""
        with self._lock:
            if settings != self._settings:
                self._settings = settings
                self._flows.clear()

    def flow(self, ccc: Host) -> Flow:
        """The flow of a host, by its state directory. Made at the first use, which also thaws what a crash left stopped."""
        with self._lock:
            found = self._flows.get(ccc.state_dir)
            if found is None:
                found = self._flows[ccc.state_dir] = Flow(ccc.state_dir, self._settings)
            return found


plugin = Plugin()
