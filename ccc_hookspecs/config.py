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

__all__ = ["Config", "EffectiveSetting", "Given", "PluginSettings", "TickerSettings", "find_file", "load_config", "setting"]

FILE_VARIABLE = "CCC_PLUGINS_FILE"
BLOCK_VARIABLE = "CCC_PLUGINS_BLOCK"
TRACE_VARIABLE = "CCC_PLUGINS_TRACE"
FLAG_PREFIX = "CCC_PLUGIN_ENABLE__"
SETTING_PREFIX = "CCC_PLUGIN__"
TICKER_PREFIX = "CCC_TICKER__"

_BOOLEANS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
_VARIABLES = (FILE_VARIABLE, BLOCK_VARIABLE, TRACE_VARIABLE, FLAG_PREFIX + "NAME", SETTING_PREFIX + "TABLE__KEY")


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
        given = self.env_flags.get(_upper(plugin)) or self.flags.get(plugin)
        return given if given is not None else Given(True, "default")

    def settings_for(self, plugin: str) -> PluginSettings:
        """The settings of the table that `plugin` belongs to, a fresh object at each call."""
        table = table_of(plugin)
        return PluginSettings(f"plugins.{table}", {**self.tables.get(table, {}), **self.env_tables.get(_upper(table), {})})

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

    def _check_variables(self, plugins: Collection[str], tables: Collection[str]) -> None:
        flags = {FLAG_PREFIX + _upper(name) for name in plugins}
        for name, given in self.env_flags.items():
            _known(FLAG_PREFIX + name, FLAG_PREFIX + name, given, flags, "no installed plugin has this name")
        for table, keys in self.env_tables.items():
            for key, given in keys.items():
                end = f"__{key.upper()}"
                variable, known = SETTING_PREFIX + table + end, {SETTING_PREFIX + _upper(name) + end for name in tables}
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
    """The configuration file to read: `path`, else `$CCC_PLUGINS_FILE`, else the user's own when it exists, else None."""
    environ = os.environ if environ is None else environ
    if path is not None:
        return Path(path)
    if environ.get(FILE_VARIABLE):
        return Path(environ[FILE_VARIABLE]).expanduser()
    base = Path(environ.get("XDG_CONFIG_HOME", ""))
    # The base-directory specification tells to ignore a relative path.
    usual = (base if base.is_absolute() else Path(environ.get("HOME") or "~").expanduser() / ".config") / "ccc" / "plugins.toml"
    return usual if usual.exists() else None


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
    env_flags, env_tables, env_ticker = _from_environment(environ)
    ticker = PluginSettings("ticker", {**_given(_table(document, "ticker", str(file)), str(file)), **env_ticker})
    return Config(
        file=file,
        flags=flags,
        tables=tables,
        env_flags=env_flags,
        env_tables=env_tables,
        blocked=_names(environ.get(BLOCK_VARIABLE, "")),
        trace=_boolean(environ[TRACE_VARIABLE], TRACE_VARIABLE) if environ.get(TRACE_VARIABLE) else False,
        ticker=ticker.into(TickerSettings),
        ticker_settings=ticker,
    )


def _read(file: Path) -> dict[str, object]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror or error}", source=file) from error
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


def _from_environment(environ: Mapping[str, str]) -> tuple[dict[str, Given], dict[str, dict[str, Given]], dict[str, Given]]:
    flags: dict[str, Given] = {}
    tables: dict[str, dict[str, Given]] = {}
    ticker: dict[str, Given] = {}
    for variable, text in environ.items():
        if variable.startswith(FLAG_PREFIX):
            flags[variable.removeprefix(FLAG_PREFIX)] = Given(_boolean(text, variable), variable, text)
        elif variable.startswith(SETTING_PREFIX):
            table, key = _table_and_key(variable, text)
            tables.setdefault(table, {})[key] = _parsed(text, variable)
        elif variable.startswith(TICKER_PREFIX):
            ticker[variable.removeprefix(TICKER_PREFIX).lower()] = _parsed(text, variable)
        elif variable.startswith(("CCC_PLUGIN_", "CCC_PLUGINS_")) and variable not in _VARIABLES:
            raise unknown_key(variable, Given(text, variable, text), nearest(variable, _VARIABLES), "unknown variable")
    return flags, tables, ticker


def _table_and_key(variable: str, text: str) -> tuple[str, str]:
    table, _, key = variable.removeprefix(SETTING_PREFIX).partition("__")
    if not table or not key:
        raise unknown_key(variable, Given(text, variable, text), SETTING_PREFIX + "TABLE__KEY", "a table and a key are needed")
    return table, key.lower()


def _parsed(text: str, variable: str) -> Given:
    try:
        document = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return Given(text, variable, text)
    # A text with line breaks could define more keys than the one; then it is no single TOML value.
    return Given(document["value"] if list(document) == ["value"] else text, variable, text)


def _boolean(text: str, variable: str) -> bool:
    try:
        return _BOOLEANS[text.strip().lower()]
    except KeyError:
        raise bad_value(variable, Given(text, variable, text), "true or false") from None


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def _upper(name: str) -> str:
    return name.upper().replace(".", "__").replace("-", "_")


def _known(key: str, name: str, given: Given, known: Collection[str], what: str) -> None:
    if name not in known:
        raise unknown_key(key, given, nearest(name, known), what)
