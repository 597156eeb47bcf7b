"""The configuration of the hook system: which plugins are on, and what each is set to; a TOML file under environment variables.

    [plugins]
    "retire_stale.watcher" = false        # a flag: the quoted name of a plugin

    [plugins.retire_stale]                # settings: the plugin's name up to the first dot
    mode = "shadow"

    [ticker]
    interval = 5

The file is the one given, else `$CCC_PLUGINS_FILE`, else `$XDG_CONFIG_HOME/ccc/plugins.toml` (`~/.config/ccc/plugins.toml`)
when it exists. Environment variables win over it:

    CCC_PLUGIN_ENABLE__RETIRE_STALE__WATCHER=false     a flag; a double underscore stands for the dot
    CCC_PLUGIN__RETIRE_STALE__MODE=shadow              a setting, read as a TOML value; a bare word is a text
    CCC_TICKER__INTERVAL=5
    CCC_PLUGINS_BLOCK=name,name                        never import these
    CCC_PLUGINS_TRACE=1                                print every hook call to stderr
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ccc_hookspecs.errors import ConfigError
from ccc_hookspecs.settings import (
    EffectiveSetting,
    Given,
    PluginSettings,
    bad_value,
    nearest,
    setting,
    unknown_key,
)
from ccc_hookspecs.variables import BLOCK_VARIABLE, FILE_VARIABLE, FLAG_PREFIX, SETTING_PREFIX, TRACE_VARIABLE, read_variables, upper

__all__ = [
    "BLOCK_VARIABLE",
    "FILE_VARIABLE",
    "TRACE_VARIABLE",
    "Config",
    "EffectiveSetting",
    "Given",
    "PluginSettings",
    "TickerSettings",
    "find_file",
    "load_config",
    "setting",
    "table_of",
]


@dataclass(frozen=True, kw_only=True)
class TickerSettings:
    """The table `[ticker]`."""

    interval: float = setting(5.0, doc="Seconds from one tick to the next.", unit="s", minimum=5, maximum=10)


@dataclass(frozen=True, kw_only=True)
class Config:
    """Everything that the file and the environment say. Made by `load_config`; `Config()` is the one where nobody said anything.

    `flags`: by plugin name, from the file. `tables`: by table name, then key, from the file. `env_flags` and
    `env_tables`: the same from variables, by the upper-case form of the name. `blocked`: names never to import.
    `trace`: print every hook call. `ticker`: the checked `[ticker]` table.
    """

    file: Path | None = None
    flags: Mapping[str, Given] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, Given]] = field(default_factory=dict)
    env_flags: Mapping[str, Given] = field(default_factory=dict)
    env_tables: Mapping[str, Mapping[str, Given]] = field(default_factory=dict)
    blocked: frozenset[str] = frozenset()
    trace: bool = False
    ticker: TickerSettings = field(default_factory=TickerSettings)
    ticker_settings: PluginSettings = field(default_factory=lambda: PluginSettings("ticker"))

    def flag(self, plugin: str) -> Given:
        """Whether `plugin` is on (`.value`, a bool) and who says so (`.source`, `default` when nobody does)."""
        given = self.env_flags.get(upper(plugin)) or self.flags.get(plugin)
        return given if given is not None else Given(True, "default")

    def flag_row(self, plugin: str) -> EffectiveSetting:
        """The flag of `plugin` as a row of the configuration in force."""
        given = self.flag(plugin)
        return EffectiveSetting(key=f'plugins."{plugin}"', value=given.value, source=given.source, doc="Whether this plugin is called.")

    def settings_for(self, plugin: str) -> PluginSettings:
        """The settings of the table that `plugin` belongs to, a fresh object at each call."""
        table = table_of(plugin)
        return PluginSettings(f"plugins.{table}", {**self.tables.get(table, {}), **self.env_tables.get(upper(table), {})})

    def check(self, plugins: Collection[str]) -> None:
        """Raise `ConfigError` when a flag, a table or a variable names something that none of `plugins` has."""
        tables = {table_of(name) for name in plugins}
        self._check_unquoted(plugins)
        for name, given in self.flags.items():
            _known(f'plugins."{name}"', name, given, plugins, "no installed plugin has this name")
        for table, keys in self.tables.items():
            shown = Given({key: given.value for key, given in keys.items()}, str(self.file))
            _known(f"plugins.{table}", table, shown, tables, "no installed plugin has settings of this name")
        self._check_variables(plugins, tables)

    def refuse_settings(self, table: str) -> None:
        """Raise `ConfigError` for the first setting that is given for a table whose plugins take none."""
        for key, given in self.settings_for(table).given.items():
            raise unknown_key(f"plugins.{table}.{key}", given, None, "the plugins of this table take no settings")

    def _check_variables(self, plugins: Collection[str], tables: Collection[str]) -> None:
        flags = {FLAG_PREFIX + upper(name) for name in plugins}
        for name, given in self.env_flags.items():
            _known(FLAG_PREFIX + name, FLAG_PREFIX + name, given, flags, "no installed plugin has this name")
        for table, keys in self.env_tables.items():
            for key, given in keys.items():
                end = f"__{key.upper()}"
                variable, known = SETTING_PREFIX + table + end, {SETTING_PREFIX + upper(name) + end for name in tables}
                _known(variable, variable, given, known, "no installed plugin has settings of this name")

    def _check_unquoted(self, plugins: Collection[str]) -> None:
        for table, keys in self.tables.items():
            for key, given in keys.items():
                name = f"{table}.{key}"
                if name in plugins and isinstance(given.value, bool):
                    raise unknown_key(f"plugins.{name}", given, f'"{name}"', "the name of a plugin must be quoted")


def table_of(plugin: str) -> str:
    """The name of a plugin's settings table: its own name up to the first dot."""
    return plugin.split(".", 1)[0]


def find_file(path: Path | str | None = None, environ: Mapping[str, str] | None = None) -> Path | None:
    """The configuration file to read: `path`, else `$CCC_PLUGINS_FILE`, else the user's own when it exists, else None.

    The user's own exists, and is to be read, also when a link on the way to it leads nowhere or it may not be looked at:
    what somebody has put there must not be left out unseen. Raises `ConfigError` when `$CCC_PLUGINS_FILE` has no such home.
    """
    environ = os.environ if environ is None else environ
    if path is not None:
        return Path(path)
    if environ.get(FILE_VARIABLE):
        return _named(environ[FILE_VARIABLE])
    base = Path(environ.get("XDG_CONFIG_HOME", ""))
    if not base.is_absolute():
        # The base-directory specification tells to ignore a relative path.
        home = _home(environ)
        if home is None:
            return None
        base = home / ".config"
    usual = base / "ccc" / "plugins.toml"
    return usual if _stands(usual) else None


def _named(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{FILE_VARIABLE} = {text!r}: {error}", source=FILE_VARIABLE, value=text) from error


def _home(environ: Mapping[str, str]) -> Path | None:
    try:
        return Path(environ.get("HOME") or "~").expanduser()
    except RuntimeError:
        return None


def _stands(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        missing = next((part for part in (*reversed(path.parents), path) if not os.path.exists(part)), path)
        return os.path.islink(missing)
    except OSError:
        return True
    return True


def load_config(path: Path | str | None = None, environ: Mapping[str, str] | None = None) -> Config:
    """Read the file and the environment. Raises `ConfigError` for anything that cannot be used.

    Names of plugins are not checked here, since who is installed is not known yet: `Config.check` does.
    """
    environ = os.environ if environ is None else environ
    file = find_file(path, environ)
    document = {} if file is None else _read(file)
    for key, value in document.items():
        _known(key, key, Given(value, str(file)), ("plugins", "ticker"), "unknown table")
    flags, tables = _split(_table(document, "plugins", str(file)), str(file))
    said = read_variables(environ, [item.name for item in dataclasses.fields(TickerSettings)])
    ticker = PluginSettings("ticker", {**_given(_table(document, "ticker", str(file)), str(file)), **said.ticker})
    return Config(
        file=file,
        flags=flags,
        tables=tables,
        env_flags=said.flags,
        env_tables=said.tables,
        blocked=said.blocked,
        trace=said.trace,
        ticker=ticker.into(TickerSettings),
        ticker_settings=ticker,
    )


def _read(file: Path) -> dict[str, object]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        link = f"; it is a link to {os.readlink(file)}" if os.path.islink(file) else ""
        raise ConfigError(f"{file}: cannot be read: {error.strerror or error}{link}", source=file) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file}: not TOML: {error}", source=file) from error


def _table(document: Mapping[str, object], name: str, source: str) -> dict[str, object]:
    value = document.get(name, {})
    if not isinstance(value, dict):
        raise bad_value(name, Given(value, source), "a table")
    return value


def _given(values: Mapping[str, object], source: str) -> dict[str, Given]:
    return {key: Given(value, source) for key, value in values.items()}


def _split(plugins: Mapping[str, object], source: str) -> tuple[dict[str, Given], dict[str, dict[str, Given]]]:
    """The flags (booleans) and the settings tables (tables) of `[plugins]`."""
    flags: dict[str, Given] = {}
    tables: dict[str, dict[str, Given]] = {}
    for key, value in plugins.items():
        if isinstance(value, bool):
            flags[key] = Given(value, source)
        elif isinstance(value, dict):
            tables[key] = _given(value, source)
        else:
            raise bad_value(f'plugins."{key}"', Given(value, source), "true or false for a plugin, or a table of settings")
    return flags, tables


def _known(key: str, name: str, given: Given, known: Collection[str], what: str) -> None:
    if name not in known:
        raise unknown_key(key, given, nearest(name, known), what)
