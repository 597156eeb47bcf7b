"""The composition root: the settings, and one `Flow` for each host, shared by the three mechanisms."""

from __future__ import annotations

import logging
import os
import threading
import weakref
from dataclasses import fields
from pathlib import Path

from ccc_hookspecs.config import PluginSettings
from ccc_hookspecs.specs import Host
from ccc_plugins.retire_stale.flow import Flow
from ccc_plugins.retire_stale.settings import Settings

log = logging.getLogger(__name__)


class Plugin:
    """What the mechanisms share. Making one reads and starts nothing; safe to use from any thread, and in a process after a fork."""

    def __init__(self) -> None:
        self._settings = Settings()
        self._given: weakref.ref[PluginSettings] | None = None
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._flows: dict[Path, Flow] = {}

    @property
    def settings(self) -> Settings:
        """The settings in force in this process."""
        return self._settings

    def configure(self, settings: PluginSettings) -> None:
        """Take the settings of `[plugins.retire_stale]`; raises `ConfigError`. Each mechanism does so, with the same table.

        A second plugin manager of the process comes with a table of its own. Its settings hold for the first one too from then on,
        which is logged as a warning when they differ, as long as the first one is there.
        """
        wanted = settings.into(Settings)
        before = self._given() if self._given is not None else None
        if before is not None and before is not settings:
            _warn_of_change(before, settings)
        self._given = weakref.ref(settings)
        self.use(wanted)

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


def _warn_of_change(before: PluginSettings, now: PluginSettings) -> None:
    """Name what two managers of this process want differently, with where each has it from."""
    old, new = before.into(Settings), now.into(Settings)
    for name in (field.name for field in fields(Settings)):
        was, becomes = getattr(old, name), getattr(new, name)
        if was != becomes:
            told = (now.table, name, was, before.sources.get(name, "default"), becomes, now.sources.get(name, "default"))
            log.warning("%s.%s was %r (%s) and is now %r (%s) for every plugin manager of this process", *told)


plugin = Plugin()
