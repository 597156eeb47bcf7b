"""A session's transcript, read as it grows from where one headless had loaded it: what it holds that is news."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ccc_hookspecs.claude.jsonl import JsonlFollower, Line, Lines, Record, parse
from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.evidence.anchor import Anchor, by_own_records, by_time, find_record
from ccc_plugins.retire_stale.evidence.skim_record import entry_at
from ccc_plugins.retire_stale.judgement.attribution import Ledger
from ccc_plugins.retire_stale.judgement.entries import Entry, entry_of, seconds

State: TypeAlias = Literal["missing", "unreadable", "replaced", "readable"]

_RECENT = 512


@dataclass(slots=True)
class Queue:
    """The queue operations in the range: `waiting` enqueued and not taken, `taken` in all, `taken_at` (epoch seconds) the last time."""

    waiting: int = 0
    taken: int = 0
    taken_at: float | None = None

    def feed(self, operation: object, at: float | None) -> None:
        if operation == "enqueue":
            self.waiting += 1
        elif isinstance(operation, str):
            self.waiting = max(0, self.waiting - 1)
            self.taken += 1
            self.taken_at = at if self.taken_at is None or (at is not None and at > self.taken_at) else self.taken_at


@dataclass(slots=True)
class _Range:
    """What was read since the anchor."""

    anchor: Anchor | None = None
    ledger: Ledger = field(default_factory=Ledger)
    queue: Queue = field(default_factory=Queue)
    inputs: set[str] = field(default_factory=set)
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=_RECENT))
    checked: set[str] = field(default_factory=set)
    release: str | None = None


class Transcript:
    """Follows one transcript for one headless. Not for use by several threads at once.

    `size`: bytes as last seen, None before. `grew`: whether the last look found new lines.
    """

    def __init__(self, path: Path, headless: Headless, spawned_at: float | None) -> None:
        self.path = path
        self._headless = headless
        self._spawned_at = spawned_at
        self._follower: JsonlFollower | None = None
        self._range = _Range()
        self.grew = False
        self._size: int | None = None

    @property
    def size(self) -> int | None:
        return self._size

    @property
    def anchored(self) -> bool:
        return self._range.anchor is not None

    @property
    def queue(self) -> Queue:
        return self._range.queue

    @property
    def inputs(self) -> set[str]:
        """The `uuid`s of the inputs that the range holds as records of their own or as accepted in the middle of a turn."""
        return self._range.inputs

    @property
    def release(self) -> str | None:
        """The release that wrote the last record that names one."""
        return self._range.release

    def look(self, first_ids: Iterable[str], new_ids: Iterable[str], *, compacted: bool) -> State:
        """Read what is new.

        `first_ids`: the first ids that the headless printed or was sent. `new_ids`: those since the last look. `compacted`: it reported
        a compaction.
        """
        self._range.ledger.claim(new_ids)
        self.grew = False
        follower = self._follower or JsonlFollower(self.path)
        growth = follower.poll()
        if growth in ("missing", "unreadable"):
            return "missing" if growth == "missing" else "unreadable"
        if growth == "replaced":
            self._forget()
            return "replaced"
        self._size = follower.size
        if self._follower is None:
            self._follower = self._start(list(first_ids), compacted)
        if self._follower is not None and self._follower.poll() == "grown":
            self._read(self._follower)
        return "readable"

    def left_over(self) -> tuple[Entry, ...]:
        """The conversation records that are news and not the headless's, without those that stood in the file before."""
        for entry in self._range.ledger.left_over:
            if entry.uuid is None or entry.uuid in self._range.checked:
                return self._range.ledger.left_over
            if find_record(str(self.path), entry.uuid, end=entry.offset) is None:
                self._range.checked.add(entry.uuid)
                return self._range.ledger.left_over
            self._range.ledger.dismiss(entry.uuid)
        return ()

    def holds(self, ids: Iterable[str | None]) -> bool:
        """Whether a record with one of these as its `uuid` or `message.id` is in the file."""
        known = [i for i in ids if i is not None]
        if any(i in self._range.recent for i in known):
            return True
        return any(find_record(str(self.path), i) is not None for i in known)

    def _forget(self) -> None:
        self._follower, self._range, self._size = None, _Range(), None

    def _start(self, first_ids: list[str], compacted: bool) -> JsonlFollower | None:
        self._range.anchor = self._anchor(first_ids, compacted)
        if self._range.anchor is None:
            return None
        self._range.ledger.claim(first_ids)
        return JsonlFollower(self.path, start=self._range.anchor.start)

    def _anchor(self, first_ids: list[str], compacted: bool) -> Anchor | None:
        path, headless = str(self.path), self._headless
        if headless.resumed is False:
            return Anchor(0)
        if headless.transcript_size is not None:
            return Anchor(headless.transcript_size) if headless.transcript_size <= (self._size or 0) else None
        anchor = by_own_records(path, first_ids, thorough=compacted)
        if anchor is None and self._spawned_at is not None:
            anchor = by_time(path, self._spawned_at)
        return anchor

    def _read(self, follower: JsonlFollower) -> None:
        for lines in follower.chunks():
            self.grew = True
            if lines.plain:
                self._skim(lines)
            else:
                self._decode(lines)

    def _decode(self, lines: Iterable[Line]) -> None:
        for line in lines:
            for record in parse(line):
                self._take(record)

    def _skim(self, lines: Lines) -> None:
        data, start = lines.data, 0
        while start < len(data):
            stop = data.find(b"\n", start)
            entry = entry_at(data, start, stop, lines.offset + start)
            if entry is None:
                self._decode([Line(lines.offset + start, lines.offset + stop + 1, data[start:stop])])
            elif entry != "nothing":
                self._take_entry(entry)
            start = stop + 1

    def _take(self, record: Record) -> None:
        data = record.data
        if data.get("type") == "queue-operation":
            self._range.queue.feed(data.get("operation"), seconds(data.get("timestamp")))
            return
        entry = entry_of(data, record.offset)
        if entry.kind == "queued":
            self._range.inputs.update(_queued_ids(data))
        self._take_entry(entry)

    def _take_entry(self, entry: Entry) -> None:
        if entry.uuid is None:
            return
        self._range.release = entry.release or self._range.release
        self._range.recent.extend(i for i in (entry.uuid, entry.message_id) if i is not None)
        if entry.type == "user":
            self._range.inputs.add(entry.uuid)
        if not self._was_loaded(entry):
            self._range.ledger.add(entry)

    def _was_loaded(self, entry: Entry) -> bool:
        """A record between the loaded leaf and the first own one may stand on a branch that was there before, and was passed by."""
        anchor = self._range.anchor
        if anchor is None or anchor.first_own is None or entry.offset >= anchor.first_own:
            return False
        return self._spawned_at is not None and entry.timestamp is not None and entry.timestamp < self._spawned_at


def _queued_ids(data: dict[str, Any]) -> set[str]:
    """The ids of a text that was accepted in the middle of a turn: its record's, and its input's where a release notes that."""
    attachment = data.get("attachment")
    found = {data.get("uuid")}
    if isinstance(attachment, dict):
        found |= {attachment.get("source_uuid"), attachment.get("uuid"), attachment.get("command_uuid")}
    return {i for i in found if isinstance(i, str)}
