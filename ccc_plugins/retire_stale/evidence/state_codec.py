"""What an observer knows, as JSON and back: plain values, collections and the few classes named here, and nothing else."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from ccc_hookspecs.claude.jsonl import Place
from ccc_plugins.retire_stale.evidence.anchor import Anchor
from ccc_plugins.retire_stale.evidence.news import RECENT, News
from ccc_plugins.retire_stale.judgement.alarms import Alarm
from ccc_plugins.retire_stale.judgement.attribution import Ledger
from ccc_plugins.retire_stale.judgement.background import Background
from ccc_plugins.retire_stale.judgement.entries import Entry
from ccc_plugins.retire_stale.judgement.intake import Intake
from ccc_plugins.retire_stale.judgement.stream import Stream

_CLASSES: Mapping[str, type[Any]] = {c.__name__: c for c in (Place, Anchor, News, Intake, Ledger, Entry, Alarm, Background, Stream)}
_PLAIN = (type(None), bool, int, float, str)


def _names(kind: type[Any]) -> list[str]:
    """The attributes that make up an object of this class."""
    return [f.name for f in fields(kind)] if is_dataclass(kind) else sorted(vars(kind()))


def encode(value: object) -> Any:
    """`value` as JSON can hold it; raises `TypeError` for anything that is not named above."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Mapping):
        return ["map", _all(value.keys()), _all(value.values())]
    for kind in (list, tuple, set, deque):
        if isinstance(value, kind):
            return [kind.__name__, _all(value)]
    name = type(value).__name__
    if type(value) is not _CLASSES.get(name):
        raise TypeError(f"no part of an observer's state: {name}")
    return [name, *(encode(getattr(value, attribute)) for attribute in _names(type(value)))]


def _all(values: Iterable[object]) -> list[Any]:
    values = list(values)
    return values if all(type(v) is str for v in values) else [encode(v) for v in values]


def decode(data: Any) -> Any:
    """The value that `encode` made `data` of; raises `ValueError` for anything else."""
    match data:
        case None | bool() | int() | float() | str():
            return data
        case ["map", list(keys), list(values)]:
            return dict(zip(map(decode, keys), map(decode, values), strict=True))
        case ["list" | "tuple" | "set" | "deque" as kind, list(values)]:
            return _collection(kind, [decode(v) for v in values])
        case [str(name), *values] if name in _CLASSES:
            return _object(_CLASSES[name], [decode(v) for v in values])
    raise ValueError("no observer's state")


def _collection(kind: str, values: list[Any]) -> Any:
    match kind:
        case "tuple":
            return tuple(values)
        case "set":
            return set(values)
        case "deque":
            return deque(values, maxlen=RECENT)
    return values


def _object(kind: type[Any], values: list[Any]) -> Any:
    attributes = dict(zip(_names(kind), values, strict=True))
    if is_dataclass(kind):
        return kind(**attributes)
    made = kind()
    vars(made).update(attributes)
    return made
