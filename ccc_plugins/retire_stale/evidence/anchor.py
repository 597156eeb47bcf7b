"""From which position of a transcript its records are news to a headless: where it had loaded the session.

Found from the files alone. The first record that the headless wrote names its parent, the record that the headless had
loaded last; what stands behind that one and was not loaded is news. The file is searched from its end, so that a long
history costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ccc_hookspecs.claude.jsonl import line_at, lines_backward, parse, rfind
from ccc_plugins.retire_stale.judgement.entries import Entry, entry_of

_STEPS = 2000


@dataclass(frozen=True, slots=True)
class Anchor:
    """`start`: the position behind what was loaded. `first_own`: the position of the headless's first own record, or None without one."""

    start: int
    first_own: int | None = None


def entries_of_line(path: str, offset: int) -> Iterator[Entry]:
    """The entries on the physical line that holds the byte at `offset`."""
    line = line_at(path, offset)
    for record in parse(line) if line is not None else ():
        yield entry_of(record.data, record.offset)


def find_record(path: str, wanted: str, *, end: int | None = None) -> tuple[Entry, int] | None:
    """The last record before `end` whose `uuid` or `message.id` is `wanted`, and where its line is. Other mentions are passed over."""
    needle = wanted.encode("utf-8", "surrogatepass")
    for _ in range(_STEPS):
        position = rfind(path, needle, end=end)
        if position is None:
            return None
        line = line_at(path, position)
        for record in parse(line) if line is not None else ():
            entry = entry_of(record.data, record.offset)
            if wanted in (entry.uuid, entry.message_id):
                return entry, record.offset
        end = line.offset if line is not None else position
    return None


def by_own_records(path: str, own_ids: Iterable[str], *, thorough: bool) -> Anchor | None:
    """The anchor that the earliest of these own records tells, or None when none of them is in the file.

    `thorough`: look for earlier copies of each too, as a compaction may have appended the history anew.
    """
    found = [entry for own in own_ids if (entry := _earliest(path, own, thorough)) is not None]
    if not found:
        return None
    first = min(found, key=lambda e: e.offset)
    start = _behind_loaded(path, first)
    return None if start is None else Anchor(start, first.offset)


def by_time(path: str, spawned_at: float) -> Anchor:
    """Behind the last record that is stamped before the spawn: all there is to go by while the headless wrote nothing itself."""
    for line in lines_backward(path):
        stamps = [e.timestamp for e in (entry_of(r.data, r.offset) for r in parse(line)) if e.timestamp is not None]
        if stamps and max(stamps) < spawned_at:
            return Anchor(line.end)
    return Anchor(0)


def _earliest(path: str, own: str, thorough: bool) -> Entry | None:
    found = find_record(path, own)
    while thorough and found is not None and (before := find_record(path, own, end=found[1])) is not None:
        found = before
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
