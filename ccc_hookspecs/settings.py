"""Typed settings: a frozen dataclass says what a table of the configuration may hold, and a table is built into it strictly.

    @dataclass(frozen=True, kw_only=True)
    class Settings:
        mode: Literal["act", "shadow"] = setting("act", doc="...")
        grace: float = setting(2.0, doc="...", unit="s", minimum=0.1, maximum=30)

    def configure(settings: PluginSettings) -> None:
        mine = settings.into(Settings)

Every key that is given and not asked for is an error.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from ccc_hookspecs.errors import ConfigError
from ccc_hookspecs.failures import shown, text_of

T = TypeVar("T")


def setting(
    default: T,
    *,
    doc: str,
    unit: str | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: Collection[str] | None = None,
    zero: str | None = None,
) -> T:
    """A dataclass field that is one key of a table. Its metadata is what documentation and error messages are made of.

    `doc`: one sentence. `unit`: such as `s` or `bytes`. `minimum`, `maximum`: inclusive. `choices`: the only values
    (a `Literal` annotation says the same). `zero`: what 0 means, where it is not just a small number.
    """
    limits = None if minimum is None and maximum is None else (minimum, maximum)
    metadata = {
        "doc": doc,
        "unit": unit,
        "range": limits,
        "choices": None if choices is None else tuple(choices),
        "zero": zero,
    }
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Given:
    """A value somebody gave. `source`: the file's path or the variable's name. `text`: as written, for a variable; else None."""

    value: object
    source: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """One key as it is in force. `source` is `default`, a file's path or a variable's name; `range` is inclusive, each end may be None."""

    key: str
    value: object
    source: str
    doc: str
    unit: str | None = None
    range: tuple[float | None, float | None] | None = None
    choices: tuple[str, ...] | None = None
    zero: str | None = None


class PluginSettings:
    """What the configuration gives for one table, the file's values under the environment's.

    `table` is the dotted name in the file, such as `plugins.retire_stale`. All plugins of one table share one instance
    and should build the same dataclass from it.
    """

    def __init__(self, table: str, given: Mapping[str, Given] | None = None) -> None:
        self.table = table
        self.given: Mapping[str, Given] = types.MappingProxyType(dict(given or {}))
        self._schemas: list[type[Any]] = []

    @classmethod
    def of(cls, table: str, values: Mapping[str, object] | None = None, *, source: str = "given by hand") -> PluginSettings:
        """Settings made from plain values, for tests and for hosts without a file."""
        return cls(table, {key: Given(value, source) for key, value in (values or {}).items()})

    @property
    def values(self) -> dict[str, object]:
        """The given values by key, unchecked."""
        return {key: given.value for key, given in self.given.items()}

    @property
    def sources(self) -> dict[str, str]:
        """By key, where each given value came from: a file's path or a variable's name."""
        return {key: given.source for key, given in self.given.items()}

    def into(self, schema: type[T]) -> T:
        """Build `schema`, a frozen dataclass of `setting` fields; keys not given keep their defaults.

        Raises `ConfigError` for an unknown key, a wrong type, a value out of range or not among the choices, and for
        whatever `schema.__post_init__` refuses with a ValueError.
        """
        fields = {item.name: item for item in dataclasses.fields(typing.cast(Any, schema))}
        self._refuse_unknown(fields)
        hints = typing.get_type_hints(schema)
        values = {key: self._checked(fields[key], hints[key], given) for key, given in self.given.items()}
        try:
            built = schema(**values)
        except ValueError as error:
            sources = ", ".join(sorted(set(self.sources.values())))
            raise ConfigError(f"{sources}: [{self.table}]: {text_of(error)}", source=sources, key=self.table) from error
        if schema not in self._schemas:
            self._schemas.append(schema)
        return built

    def effective(self) -> tuple[EffectiveSetting, ...]:
        """Every key of every dataclass built so far, with its value and where that came from."""
        return tuple(row for schema in self._schemas for row in self._rows(schema))

    def _rows(self, schema: type[Any]) -> tuple[EffectiveSetting, ...]:
        built = self.into(schema)
        return tuple(
            EffectiveSetting(
                key=f"{self.table}.{item.name}",
                value=getattr(built, item.name),
                source=self.sources.get(item.name, "default"),
                doc=item.metadata.get("doc", ""),
                unit=item.metadata.get("unit"),
                range=item.metadata.get("range"),
                choices=_choices(item, typing.get_type_hints(schema)[item.name]),
                zero=item.metadata.get("zero"),
            )
            for item in dataclasses.fields(schema)
        )

    def _refuse_unknown(self, known: Collection[str]) -> None:
        for key, given in self.given.items():
            if key not in known:
                raise unknown_key(f"{self.table}.{key}", given, nearest(key, known))

    def _checked(self, item: dataclasses.Field[Any], hint: object, given: Given) -> object:
        value, good, expected = _convert(hint, given)
        choices, limits = _choices(item, hint), item.metadata.get("range")
        if choices is not None:
            good, expected = good and value in choices, "one of " + ", ".join(choices)
        if limits is not None:
            good, expected = good and _within(value, limits), expected + _range_text(limits, item.metadata.get("unit"))
        if not good:
            raise bad_value(f"{self.table}.{item.name}", given, expected)
        return value


def nearest(key: str, known: Collection[str]) -> str | None:
    """The known key most like `key`, or None when none is like it."""
    found = difflib.get_close_matches(key, list(known), n=1, cutoff=0.5)
    return found[0] if found else None


def unknown_key(key: str, given: Given, near: str | None, what: str = "unknown key") -> ConfigError:
    """The error for a key that nobody knows: source, key, value and the nearest known one."""
    hint = f"; did you mean {near}?" if near is not None else ""
    return ConfigError(f"{_said(key, given)}: {what}{hint}", source=given.source, key=key, value=given.value, nearest=near)


def bad_value(key: str, given: Given, expected: str) -> ConfigError:
    """The error for a value that its key cannot have: source, key, value and what it must be."""
    return ConfigError(f"{_said(key, given)}: expected {expected}", source=given.source, key=key, value=given.value, nearest=key)


def _said(key: str, given: Given) -> str:
    where = "" if given.source == key else f"{given.source}: "
    return f"{where}{key} = {shown(given.value)}"


def _convert(hint: object, given: Given) -> tuple[object, bool, str]:
    """The value as `hint` wants it, whether it fits, and what would fit, in words."""
    value = given.value
    if hint is bool:
        return value, isinstance(value, bool), "true or false"
    if hint is int:
        return value, isinstance(value, int) and not isinstance(value, bool), "a whole number"
    if hint is float:
        return _float(value)
    if hint == tuple[str, ...]:
        good = isinstance(value, list | tuple) and all(isinstance(part, str) for part in value)
        return tuple(typing.cast(list[str], value)) if good else value, good, "a list of texts"
    if hint is str or hint is Path or typing.get_origin(hint) is Literal:
        return _text(hint, given)
    if isinstance(hint, types.UnionType) and len(inner := [part for part in typing.get_args(hint) if part is not type(None)]) == 1:
        return _convert(inner[0], given)
    raise TypeError(f"a setting cannot be of type {hint!r}")


def _float(value: object) -> tuple[object, bool, str]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value, False, "a number"
    try:
        number = float(value)
    except OverflowError:
        return value, False, "a number"
    return number, math.isfinite(number), "a number"


def _text(hint: object, given: Given) -> tuple[object, bool, str]:
    # A variable's text stays a text where a text is wanted, also when it reads as a TOML number or boolean.
    value = given.value if given.text is None or isinstance(given.value, str) else given.text
    if hint is Path:
        path = _path(value)
        return (value, False, "an absolute path") if path is None else (path, True, "an absolute path")
    return value, isinstance(value, str), "a text"


def _path(value: object) -> Path | None:
    """The absolute path that a text names, the home of a user spelt out; None when it names none."""
    try:
        path = Path(value).expanduser() if isinstance(value, str) else None
    except RuntimeError:
        return None
    return path if path is not None and path.is_absolute() else None


def _choices(item: dataclasses.Field[Any], hint: object) -> tuple[str, ...] | None:
    if typing.get_origin(hint) is Literal:
        return typing.get_args(hint)
    return typing.cast("tuple[str, ...] | None", item.metadata.get("choices"))


def _within(value: object, limits: tuple[float | None, float | None]) -> bool:
    low, high = limits
    return isinstance(value, int | float) and (low is None or value >= low) and (high is None or value <= high)


def _range_text(limits: tuple[float | None, float | None], unit: str | None) -> str:
    low, high = limits
    parts = [f"from {low:g}" if low is not None else "", f"up to {high:g}" if high is not None else "", unit or ""]
    return "".join(" " + part for part in parts if part)
