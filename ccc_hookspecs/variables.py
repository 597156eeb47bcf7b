"""The environment variables of the configuration: which there are, and what they say. `docs/configuration.md` lists them."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from ccc_hookspecs.settings import Given, bad_value, nearest, unknown_key

FILE_VARIABLE: Final = "CCC_PLUGINS_FILE"
"""The path of the configuration file."""

BLOCK_VARIABLE: Final = "CCC_PLUGINS_BLOCK"
"""Names of plugins that are never imported, with commas between them."""

TRACE_VARIABLE: Final = "CCC_PLUGINS_TRACE"
"""Whether each hook call is printed."""

FLAG_PREFIX: Final = "CCC_PLUGIN_ENABLE__"
"""Before the name of a plugin: its flag."""

SETTING_PREFIX: Final = "CCC_PLUGIN__"
"""Before the name of a table, `__` and a key: that setting."""

TICKER_PREFIX: Final = "CCC_TICKER__"
"""Before a key of `[ticker]`."""

_OURS = ("CCC_PLUGIN_", "CCC_PLUGINS", "CCC_TICKER")
_BOOLEANS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """What the environment says.

    `flags`: by plugin, in the upper-case form of its name. `tables`: by table in that form, then by key. `ticker`: by key.
    `blocked`: names never to import. `trace`: print every hook call.
    """

    flags: dict[str, Given] = field(default_factory=dict)
    tables: dict[str, dict[str, Given]] = field(default_factory=dict)
    ticker: dict[str, Given] = field(default_factory=dict)
    blocked: frozenset[str] = frozenset()
    trace: bool = False


def read_variables(environ: Mapping[str, str], ticker_keys: Collection[str]) -> Variables:
    """Read all variables of ours. Raises `ConfigError` for one that begins like ours and is unknown, or that cannot be read."""
    trace = bool(environ.get(TRACE_VARIABLE)) and _boolean(environ[TRACE_VARIABLE], TRACE_VARIABLE)
    found = Variables(blocked=_names(environ.get(BLOCK_VARIABLE, "")), trace=trace)
    for variable, text in environ.items():
        if variable.startswith(FLAG_PREFIX):
            found.flags[variable.removeprefix(FLAG_PREFIX)] = Given(_boolean(text, variable), variable, text)
        elif variable.startswith(SETTING_PREFIX):
            table, key = _table_and_key(variable, text)
            found.tables.setdefault(table, {})[key] = _parsed(text, variable)
        elif variable.startswith(TICKER_PREFIX):
            found.ticker[variable.removeprefix(TICKER_PREFIX).lower()] = _parsed(text, variable)
        elif variable.startswith(_OURS) and variable not in (FILE_VARIABLE, BLOCK_VARIABLE, TRACE_VARIABLE):
            raise unknown_key(variable, Given(text, variable, text), nearest(variable, _known(ticker_keys)), "unknown variable")
    return found


def upper(name: str) -> str:
    """The form that the name of a plugin or table has in a variable."""
    return name.upper().replace(".", "__").replace("-", "_")


def _known(ticker_keys: Collection[str]) -> tuple[str, ...]:
    plain = (FILE_VARIABLE, BLOCK_VARIABLE, TRACE_VARIABLE, FLAG_PREFIX + "NAME", SETTING_PREFIX + "TABLE__KEY")
    return (*plain, *(TICKER_PREFIX + key.upper() for key in ticker_keys))


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
