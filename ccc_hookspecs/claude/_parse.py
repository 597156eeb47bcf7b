"""From a line of JSONL to records, tolerant of what crashes and concurrent writers leave behind."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ccc_hookspecs.claude._lines import Line

_OBJECT_START = re.compile(r'\{\s*"')
_SPACE = re.compile(r"[\s\ufeff]*")
_OPENERS = frozenset(":,[")
_CONTINUATIONS = frozenset(",]}:")
_RECORD_KEYS = frozenset({"sessionId", "session_id", "parentUuid", "leafUuid"})
_DEEP = 8192
"""Characters charged for an attempt that ended in too deep a nesting."""


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON object of a line.

    `offset` is the position in the file of the line it stands on, plus, for a further record spliced onto that line, its distance
    from the line's start in characters: it orders records, and differs from the byte position only there.
    """

    offset: int
    data: dict[str, Any]


def parse(line: Line) -> tuple[Record, ...]:
    """The records on a line, in order; `()` when there is nothing to recover. Never raises.

    Usually one. Two writers, or a crash, may leave several on one physical line: `{...}{...}`, or a record that breaks
    off where the next begins. Of a broken line those objects count that stand at its top level: nested ones of the broken
    record are told apart by what precedes and follows them. Invalid UTF-8 is replaced, lone surrogates are kept, NaN and
    the infinities are floats, and an integer too long to convert is kept as its text.
    """
    text = _decode(line.data)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return tuple(_recover(text, line.offset))
    return (Record(line.offset, data),) if isinstance(data, dict) else ()


def _decode(data: bytes) -> str:
    try:
        return str(data, "utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return str(data, "utf-8", "replace")


def _integer(digits: str) -> int | str:
    try:
        return int(digits)
    except ValueError:
        return digits


_DECODER = json.JSONDecoder(strict=False, parse_int=_integer)


def _recover(text: str, offset: int) -> Iterator[Record]:
    """The top-level objects of a line that is not one JSON value.

    Attempts are paid from a budget of characters, so that a hostile line costs no more than a few readings of it.
    """
    position, budget, adjoins = _skip_space(text, 0), 8 * len(text) + 4096, True
    while budget > 0:
        value, end = _decode_at(text, position)
        # A failing attempt also counts newlines from the start of the text to where it failed, inside `JSONDecodeError`.
        budget -= end - position + end // 32 + 64
        if value is not None and _is_record(text, position, end, value, adjoins):
            yield Record(offset + position, value)
            position, adjoins = _skip_space(text, end), True
            continue
        start = _OBJECT_START.search(text, position + 1 if value is None else end)
        if start is None:
            return
        position, adjoins = start.start(), False


def _decode_at(text: str, position: int) -> tuple[dict[str, Any] | None, int]:
    """The object that starts at `position` and where it ends; or None and how far it was read."""
    try:
        value, end = _DECODER.raw_decode(text, position)
    except json.JSONDecodeError as error:
        return None, error.pos
    except (ValueError, RecursionError):
        return None, position + _DEEP
    return (value if isinstance(value, dict) else None), end


def _is_record(text: str, start: int, end: int, value: dict[str, Any], adjoins: bool) -> bool:
    """Whether an object on a broken line is a record of its own, not a part of a broken one.

    `adjoins`: it stands at the start of the line or right after a record, and then all that tells against it is a sign after it
    that goes on with an enclosing value. Any other must be followed by the end of the line or by the next object, have a
    `type`, and, where JSON allows a nested object before it, a key that only whole records have.
    """
    after = _skip_space(text, end)
    following = text[after : after + 1]
    if adjoins:
        return following not in _CONTINUATIONS
    if following not in ("", "{") or not isinstance(value.get("type"), str):
        return False
    preceding = text[max(0, start - 8) : start].rstrip()[-1:]
    return preceding not in _OPENERS or not _RECORD_KEYS.isdisjoint(value)


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return position if match is None else match.end()
