"""From which position of a transcript its records are news to a headless: where it had loaded the session.

Found from the files alone. The first record that the headless wrote names its parent, the record that the headless had
loaded last; what stands behind that one and was not loaded is news. The file is searched from its end, so that a long
history costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ccc_hookspecs.claude.jsonl import Line, find, line_at, lines_backward, parse, rfind
from ccc_plugins.retire_stale.judgement.entries import Entry, entry_of

_STEPS = 2000
_BESIDE = 16 << 20
"""Bytes beside a headless's first record within which its other first records stand."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """`start`: the position behind what was loaded. `first_own`: the position of the headless's first own record, or None without one."""

    start: int
    first_own: int | None = None


def find_record(path: str, wanted: str, *, end: int | None = None, start: int = 0) -> tuple[Entry, int] | None:
    """The last record in `[start, end)` whose `uuid` or `message.id` is `wanted`, and where its line is. Other mentions are passed over."""
    needle = wanted.encode("utf-8", "surrogatepass")
    for _ in range(_STEPS):
        position = rfind(path, needle, end=end, start=start)
        if position is None:
            return None
        found, line = _record_at(path, position, wanted)
        if found is not None:
            return found, found.offset
        end = line.offset if line is not None else position
    return None


def find_first_record(path: str, wanted: str, *, start: int = 0, end: int | None = None) -> Entry | None:
    """As `find_record`, but the first one."""
    needle = wanted.encode("utf-8", "surrogatepass")
    for _ in range(_STEPS):
        position = find(path, needle, start=start, end=end)
        if position is None:
            return None
        found, line = _record_at(path, position, wanted)
        if found is not None:
            return found
        start = line.end if line is not None else position + len(needle)
    return None


def by_own_records(path: str, own_ids: Iterable[str], *, thorough: bool) -> Anchor | None:
    """The anchor that the earliest of these own records tells, or None when none of them is in the file.

    `thorough`: look for earlier copies of each too, as a compaction may have appended the history anew. Somebody else's may have,
    too: then the copy found is followed to the original, unless that is far away.
    """
    first = _first_own(path, dict.fromkeys(own_ids), thorough)
    first = None if first is None else _original(path, first)
    start = None if first is None else _behind_loaded(path, first)
    return None if first is None or start is None else Anchor(start, first.offset)


def by_size(path: str, size: int) -> Anchor:
    """At the size that was noted at the spawn; a line that was half written then was not loaded."""
    newline = rfind(path, b"\n", end=size)
    return Anchor(0 if newline is None else newline + 1)


def by_time(path: str, spawned_at: float) -> Anchor:
    """Behind the last record that is stamped before the spawn: all there is to go by while the headless wrote nothing itself."""
    for line in lines_backward(path):
        stamps = [e.timestamp for e in (entry_of(r.data, r.offset) for r in parse(line)) if e.timestamp is not None]
        if stamps and max(stamps) < spawned_at:
            return Anchor(line.end)
    return Anchor(0)


def _record_at(path: str, position: int, wanted: str) -> tuple[Entry | None, Line | None]:
    """The record of that id on the line that holds the byte at `position`, and the line."""
    line = line_at(path, position)
    for record in parse(line) if line is not None else ():
        entry = entry_of(record.data, record.offset)
        if wanted in (entry.uuid, entry.message_id):
            return entry, line
    return None, line


def _first_own(path: str, own_ids: Iterable[str], thorough: bool) -> Entry | None:
    """The own record that stands first: of each id the last copy counts, or the first when `thorough`.

    The ids are the first that were printed, so that their records stand close together: once one of them is found, the
    others are looked for beside it, and only one that is not there costs a search of the whole file.
    """
    first: Entry | None = None
    for own in own_ids:
        if first is None:
            first = find_first_record(path, own) if thorough else _last(path, own)
        elif thorough:
            first = _last(path, own, start=max(0, first.offset - _BESIDE), end=first.offset) or first
        elif find_first_record(path, own, start=first.offset, end=first.offset + _BESIDE) is None:
            first = _last(path, own, end=first.offset) or first
    return first


def _original(path: str, entry: Entry) -> Entry:
    """The first copy of a record, each looked for near the next."""
    while (earlier := _last(path, entry.uuid or "", start=max(0, entry.offset - _BESIDE), end=entry.offset)) is not None:
        entry = earlier
    return entry


def _last(path: str, own: str, *, start: int = 0, end: int | None = None) -> Entry | None:
    found = find_record(path, own, start=start, end=end)
    return None if found is None else found[0]


def _behind_loaded(path: str, first: Entry) -> int | None:
    """The position behind the last answer or compaction above `first`; 0 at the root, None where the chain breaks.

    A prompt above it may be its own, sent by a host that did not note the id, and so says nothing.
    """
    parent, end = first.parent, first.offset
    for _ in range(_STEPS):
        if parent is None:
            return 0
        found = find_record(path, parent, end=end)
        if found is None:
            return None
        entry, end = found
        if entry.kind in ("answer", "boundary"):
            line = line_at(path, end)
            return line.end if line is not None else None
        parent = entry.parent
    return None
