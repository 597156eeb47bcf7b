"""The plugin manager: the typed face through which a host finds, switches and calls plugins.

    manager = PluginManager()
    manager.load()  # every entry point of the group `ccc.plugins` that the configuration does not switch off
    decision = manager.pre_inject(ccc, injection)

A host never touches pluggy itself.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from typing import Final

from ccc_hookspecs.claude.text import is_command
from ccc_hookspecs.config import BLOCK_VARIABLE, Config, EffectiveSetting, PluginSettings, load_config, table_of
from ccc_hookspecs.discovery import BY_HAND, GROUP, Entry, PluginState, PluginStatus, entry_points
from ccc_hookspecs.errors import ConfigError, PluginLoadError
from ccc_hookspecs.failures import meant_for_host, said, text_of
from ccc_hookspecs.forks import outlive_forks
from ccc_hookspecs.isolation import HOOKS, Chain, Trace, chains, report, run, solo, to_stderr
from ccc_hookspecs.settings import nearest
from ccc_hookspecs.specs import Host
from ccc_hookspecs.values import Decision, Deliver, Injection, TerminalLaunch, Tick

__all__ = ["BY_HAND", "GROUP", "PluginManager", "PluginState", "PluginStatus"]

log = logging.getLogger(__name__)

_DELIVER: Final = Deliver()
_NOBODY: Final[Mapping[str, Chain]] = {hook: Chain(hook) for hook in HOOKS}


class PluginManager:
    """Finds plugins, switches them and calls their hooks. Every method may be called from any thread, and after a fork.

    A hook call uses the plugins that were active when it began. Nothing that a plugin raises leaves a hook call. What loads,
    registers or switches plugins waits for a `configure` under way; hook calls, `plugins` and `effective` do not.
    `trace`, when set, is called with one line for each hook call of each plugin: the hook, the plugin, its answer
    (never conversation text) and the time it took.
    """

    def __init__(self, config: Config | None = None, *, trace: Trace | None = None) -> None:
        self.config = config if config is not None else Config()
        self.trace = trace
        self._configured = config is not None
        self._lock = threading.RLock()
        self._entries: dict[str, Entry] = {}
        self._settings: dict[str, PluginSettings] = {}
        self._chains: Mapping[str, Chain] = _NOBODY
        self._loaded = False
        outlive_forks(self)

    def begin_anew(self) -> None:
        """In the child of a fork: a `configure` under way on a thread that is not there holds the lock for ever."""
        self._lock = threading.RLock()

    # --- finding plugins ------------------------------------------------------------------------------------------------

    def load(self, config: Config | None = None) -> tuple[PluginStatus, ...]:
        """Load every entry point of the group `ccc.plugins` that is neither blocked nor switched off; returns `plugins()`.

        `config`: what `load_config` gave; None means the constructor's, and without one reads it now. A plugin that cannot
        be imported, configured or registered is `broken`, is reported, and the others are loaded. May be repeated: names
        that are known already stay as they are, but for a block or a flag that now switches them off.

        Raises `ConfigError` when the configuration names a plugin that is neither installed nor registered, when a plugin's
        own settings are wrong, or when there are settings for plugins that take none, since a misspelt setting must not switch
        a protection off silently. The settings of a plugin that is blocked or switched off are not looked at.
        """
        with self._lock:
            self._use(config)
            points = tuple(entry_points())
            known = {point.name for point in points} | set(self._entries)
            self.config.check(known)
            for name in sorted(self.config.blocked - known):
                near = nearest(name, known)
                hint = f"; the nearest is {near}" if near is not None else ""
                log.warning("%s names %s, which is not installed%s", BLOCK_VARIABLE, name, hint)
            self._loaded = False
            for point in points:
                self._offer(point)
            self._loaded = True
            for table in {table_of(name): None for name in self._entries}:
                self._check_table(table)
            return self.plugins()

    def register(self, plugin: object, name: str) -> PluginStatus:
        """Register a module or object by hand, under the same switches as an entry point of that name.

        A plugin that is known already, under whatever name, is left as it is, and one that is broken gives way. To give it
        settings, hand the configuration to the constructor and register it before `load`, which refuses settings of plugins
        it does not know. Raises `PluginLoadError` when the name is empty or belongs to another plugin, be it one that is
        blocked or switched off, and `ConfigError` as `load` does.
        """
        if not name.strip():
            raise PluginLoadError(name, "a plugin needs a name")
        with self._lock:
            entry = self._find(plugin)
            if entry is None or (entry.state == "broken" and entry.plugin is not plugin):
                self._refuse_taken(name)
                entry = Entry(name=name, source=BY_HAND, plugin=plugin)
                self._admit(entry)
            return entry.status()

    # --- switching ------------------------------------------------------------------------------------------------------

    def enable(self, name: str) -> PluginStatus:
        """Switch a plugin on, whatever its flag says; imports and configures it when that has not been done, or was undone.

        Raises `PluginLoadError` when there is no such plugin or it is blocked, `ConfigError` as `load` does.
        """
        with self._lock:
            entry = self._known(name)
            if entry.state == "blocked":
                raise PluginLoadError(name, f"{entry.standing[1]}, so it cannot be enabled")
            if entry.state != "active":
                self._activate(entry)
            return entry.status()

    def disable(self, name: str) -> PluginStatus:
        """Switch a plugin off; its hooks are not called again after this returns, except by calls that had begun before.

        Its `unconfigure`, if it has one, is called, so that it takes its signal receivers and threads back.
        Raises `PluginLoadError` when there is no such plugin.
        """
        with self._lock:
            entry = self._known(name)
            if entry.state == "active":
                self._switch_off({entry: ("disabled", "disabled at run time")})
            return entry.status()

    def plugins(self) -> tuple[PluginStatus, ...]:
        """Every plugin the manager knows, in the order it learned of them."""
        return tuple(entry.status() for entry in tuple(self._entries.values()))

    def effective(self) -> tuple[EffectiveSetting, ...]:
        """The configuration in force: a row for each plugin's flag and for each key of the settings built so far."""
        config = self.config
        flags = tuple(config.flag_row(name) for name in tuple(self._entries))
        tables = (config.ticker_settings, *self._settings.values())
        return flags + tuple(row for table in tables for row in table.effective())

    # --- the hooks ------------------------------------------------------------------------------------------------------

    def pre_inject(self, ccc: Host, injection: Injection) -> Decision:
        """Ask what to do with a text: the first answer of a plugin, `Deliver()` when none has one. See `specs.pre_inject`."""
        decision: Decision | None = run(self._chains["pre_inject"], {"ccc": ccc, "injection": injection}, self.trace)
        told = isinstance(decision, Deliver) and decision.catch_up is not None
        # A slash command is one only when it comes first.
        return _DELIVER if decision is None or (told and is_command(injection.text)) else decision

    def on_terminal_launch(self, ccc: Host, launch: TerminalLaunch) -> None:
        """Tell every plugin that a terminal is about to start; returns when all have returned. See `specs.on_terminal_launch`."""
        run(self._chains["on_terminal_launch"], {"ccc": ccc, "launch": launch}, self.trace)

    def on_tick(self, ccc: Host, tick: Tick) -> None:
        """Give every plugin this tick. See `specs.on_tick`."""
        run(self._chains["on_tick"], {"ccc": ccc, "tick": tick}, self.trace)

    # --- inside, all with the lock held ---------------------------------------------------------------------------------

    def _use(self, config: Config | None) -> None:
        if config is not None or not self._configured:
            self.config, self._configured = config or load_config(), True
            self._settings.clear()
        if self.config.trace and self.trace is None:
            self.trace = to_stderr
        self._switch_off({entry: off for entry in self._entries.values() if (off := self._off(entry.name)) is not None})

    def _switch_off(self, entries: Mapping[Entry, tuple[PluginState, str]]) -> None:
        for entry, standing in entries.items():
            entry.standing = standing
        self._chains = self._chained()
        for entry in entries:
            entry.unconfigure()

    def _off(self, name: str) -> tuple[PluginState, str] | None:
        """The state and the reason of a plugin that the configuration switches off, else None."""
        if name in self.config.blocked:
            return "blocked", f"blocked by {BLOCK_VARIABLE}"
        flag = self.config.flag(name)
        return None if flag.value else ("disabled", f"its flag is off ({flag.source})")

    def _offer(self, point: EntryPoint) -> None:
        distribution = f"{point.dist.name} {point.dist.version}" if point.dist is not None else None
        known = self._entries.get(point.name)
        if known is None:
            self._admit(Entry(name=point.name, source=point.value, point=point, distribution=distribution))
        elif known.source not in (point.value, BY_HAND):
            log.warning("plugin %s of %s is left out: the name belongs to %s", point.name, distribution, known.source)

    def _admit(self, entry: Entry) -> None:
        self._entries[entry.name] = entry
        if (off := self._off(entry.name)) is not None:
            entry.standing = off
        else:
            self._activate(entry)

    def _refuse_taken(self, name: str) -> None:
        owner = self._entries.get(name)
        if owner is not None and owner.state != "broken":
            state, reason = owner.standing
            raise PluginLoadError(name, f"the name belongs to another plugin ({owner.source}, {reason or state})")

    def _activate(self, entry: Entry) -> None:
        try:
            if not self._prepare(entry):
                return
            entry.standing = ("active", None)
            if self._loaded:
                self._check_table(table_of(entry.name))
            self._chains = self._chained()
        except ConfigError as error:
            self._broken(entry, text_of(error))
            raise
        except BaseException as error:
            if meant_for_host(error) and not isinstance(error, SystemExit):
                raise
            self._broken(entry, " ".join(said(error).split()))
            report(entry.name, "load", error)

    def _broken(self, entry: Entry, reason: str) -> None:
        entry.standing = ("broken", reason)
        entry.abandon()

    def _prepare(self, entry: Entry) -> bool:
        """Import, check and configure; False when the plugin turns out to be one that is known under another name."""
        if entry.plugin is None and entry.point is not None:
            plugin = entry.point.load()
            twin = self._find(plugin)
            if twin is not None and twin is not entry:
                entry.standing = ("disabled", f"the same plugin as {twin.name}")
                return False
            entry.plugin = plugin
        entry.solo = entry.solo or solo(entry.name, entry.plugin)
        entry.configure(lambda: self._settings.setdefault(table_of(entry.name), self.config.settings_for(entry.name)))
        return True

    def _check_table(self, table: str) -> None:
        """Refuse settings that nobody will read: every plugin of the table is on, and none has a `configure`."""
        entries = [entry for entry in self._entries.values() if table_of(entry.name) == table]
        if all(entry.state == "active" and not entry.takes_settings for entry in entries):
            self.config.refuse_settings(table)

    def _chained(self) -> Mapping[str, Chain]:
        return chains(entry.solo for entry in self._entries.values() if entry.state == "active" and entry.solo is not None)

    def _find(self, plugin: object) -> Entry | None:
        """The entry of this very object, or of the entry point that names it and was not loaded yet."""
        return next((entry for entry in self._entries.values() if entry.names(plugin)), None)

    def _known(self, name: str) -> Entry:
        if name not in self._entries:
            near = nearest(name, self._entries)
            raise PluginLoadError(name, "no such plugin" + (f"; did you mean {near}?" if near else ""))
        return self._entries[name]
