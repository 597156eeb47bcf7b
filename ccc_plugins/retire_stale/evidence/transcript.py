"""A session's transcript, read as it grows from where one headless had loaded it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias

from ccc_hookspecs.claude.jsonl import JsonlFollower, Place
from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.evidence.anchor import Anchor, by_own_records, by_size, by_time, find_first_record, find_record
from ccc_plugins.retire_stale.evidence.news import News
from ccc_plugins.retire_stale.judgement.entries import Entry
from ccc_plugins.retire_stale.judgement.intake import Intake

_BESIDE = 16 << 20
"""Bytes within which records stand that were written within moments of each other, or were copied together."""

State: TypeAlias = Literal["missing", "unreadable", "replaced", "readable"]


class Transcript:
    """Follows one transcript for one headless. Not for use by several threads at once.

    `size`: bytes as last seen, None before. `grew`: whether the last look found new lines.
    """

    def __init__(self, path: Path, headless: Headless, spawned_at: float | None) -> None:
        self.path = path
        self.grew = False
        self._headless = headless
        self._spawned_at = spawned_at
        self._unread = JsonlFollower(path)
        self._follower: JsonlFollower | None = None
        self._resumed = False
        self._by_time = False
        self._news = News()
        self._size: int | None = None
        self._unanchored: object = None
        self._left_over: tuple[Entry, ...] | None = None
        self._foreign: tuple[tuple[Entry, ...], tuple[Entry, ...]] | None = None
        self._held: tuple[str, ...] | None = None
        self._awaited: tuple[tuple[str, ...], int] = ((), 0)
        self._read_from = 0
        self._restored: int | None = None

    @property
    def size(self) -> int | None:
        return self._size

    @property
    def bytes_read(self) -> int:
        """Bytes read since the anchor."""
        return 0 if self._follower is None or self._news.anchor is None else self._follower.offset - self._news.anchor.start

    @property
    def anchored(self) -> bool:
        return self._news.anchor is not None

    @property
    def loaded_to(self) -> int:
        """The byte position up to which the file stood there when the headless loaded it, as far as that is known."""
        return 0 if self._news.anchor is None else self._news.anchor.start

    @property
    def begins_at(self) -> int | None:
        """The byte position of the headless's first own record; None before it wrote one."""
        return self._news.ledger.begins_at

    @property
    def intake(self) -> Intake:
        return self._news.intake

    def unanswered(self, closed_at: float | None, *, owes: bool) -> bool:
        """As `Intake.unanswered`."""
        return self._news.intake.unanswered(self._news.ledger.answered_at, closed_at, owes=owes)

    @property
    def inputs(self) -> set[str]:
        """The `uuid`s of the inputs that the range holds as records of their own or as accepted in the middle of a turn."""
        return self._news.inputs

    @property
    def release(self) -> str | None:
        """The release that wrote the last record that names one."""
        return self._news.release

    def look(self, first_ids: Iterable[str], new_ids: list[str], *, compacted: bool) -> State:
        """Read what is new.

        `first_ids`: the first ids that the headless printed or was sent. `new_ids`: those since the last look. `compacted`: it reported
        a compaction.
        """
        self.claim(new_ids)
        self.grew = self._resumed
        self._resumed = False
        follower = self._follower or self._unread
        growth = follower.poll()
        if growth in ("missing", "unreadable"):
            return "missing" if growth == "missing" else "unreadable"
        if growth == "replaced" and self._follower is not None:
            self._forget()
            return "replaced"
        self._size = follower.size
        if self._follower is None and self._start(tuple(first_ids), compacted):
            growth = "grown"
        if self._follower is not None and growth == "grown":
            self._read(self._follower)
        return "readable"

    def claim(self, ids: list[str]) -> None:
        """These too are the headless's: what it printed, or was sent."""
        if ids:
            self._news.ledger.claim(ids)
            self._left_over = None

    def give(self, ids: list[str]) -> None:
        """As `Ledger.give`."""
        if ids:
            self._news.ledger.give(ids)
            self._left_over = None

    def was_given(self, uuid: str) -> bool:
        """As `Ledger.was_given`."""
        return self._news.ledger.was_given(uuid)

    def has_left_over(self, uuid: str) -> bool:
        """As `Ledger.has_left_over`, without what stood in the file before."""
        self.left_over()
        return self._news.ledger.has_left_over(uuid)

    def dismiss(self, uuids: Iterable[str]) -> None:
        """These records are not for the headless to know."""
        for uuid in uuids:
            self._news.ledger.dismiss(uuid)
        self._left_over = None

    def left_over(self) -> tuple[Entry, ...]:
        """The conversation records that are news and not the headless's, without those that stood in the file before."""
        if self._left_over is None:
            self._left_over = self._still_left_over()
        return self._left_over

    def certainly_foreign(self) -> tuple[Entry, ...]:
        """Those that are left over, without the answers that the headless may have written and has yet to print."""
        left_over, continues = self.left_over(), self._news.ledger.continues
        if self._foreign is None or self._foreign[0] is not left_over:
            self._foreign = left_over, tuple(entry for entry in left_over if not continues(entry))
        return self._foreign[1]

    def holds(self, ids: Iterable[str | None]) -> bool:
        """Whether a record with one of these, the ids of the latest answer, as its `uuid` or `message.id` is in the file.

        It is written within moments of being printed: what was read long before it was first asked for is not searched, unless another
        reader had asked for it then.
        """
        known = tuple(i for i in ids if i is not None)
        if known == self._held:
            return True
        if self._awaited[0] != known:
            self._awaited = known, max(0, self._read_from - _BESIDE) if self._restored is None else self._restored
            self._restored = None
        if any(i in self._news.recent for i in known) or self._search(known, self._awaited[1]):
            self._held = known
            return True
        self._awaited = known, max(self._awaited[1], self._follower.offset if self._follower is not None else 0)
        return False

    def kept(self) -> tuple[Place, News] | None:
        """What `resume` needs; None where that cannot be told, and where own records may yet tell a better anchor than the time."""
        if self._follower is None or self._by_time:
            return None
        place = self._follower.place()
        return None if place is None else (place, self._news)

    def resume(self, place: Place, news: News) -> bool:
        """Go on from what another transcript's `kept` told of this file; False, and nothing changes, when it is not that file."""
        follower = JsonlFollower.resume(self.path, place)
        if follower is None or news.anchor is None:
            return False
        self._follower, self._news, self._resumed = follower, news, place.offset > news.anchor.start
        self._read_from = self._restored = news.anchor.start
        return True

    def _search(self, ids: tuple[str, ...], start: int) -> bool:
        return start < (self._size or 0) and any(find_record(str(self.path), i, start=start) is not None for i in ids)

    def _still_left_over(self) -> tuple[Entry, ...]:
        ledger, beside = self._news.ledger, 0
        for entry in ledger.left_over:
            if entry.uuid is None or entry.uuid in self._news.checked:
                break
            earlier = self._earlier(entry.uuid, entry.offset, beside)
            if earlier is None:
                self._news.checked.add(entry.uuid)
                break
            ledger.dismiss(entry.uuid)
            beside = earlier.offset
        return ledger.left_over

    def _earlier(self, uuid: str, offset: int, beside: int) -> Entry | None:
        """An earlier copy of the record that stands at `offset`: most likely right behind `beside`, that of the record before it."""
        path = str(self.path)
        found = find_first_record(path, uuid, start=beside, end=min(offset, beside + _BESIDE)) if beside else None
        if found is None:
            last = find_record(path, uuid, end=offset)
            found = last[0] if last is not None else None
        return found

    def _forget(self) -> None:
        self._follower, self._news, self._size, self._left_over = None, News(), None, None

    def _start(self, first_ids: tuple[str, ...], compacted: bool) -> bool:
        """Find the anchor; in vain only once for the same file and the same ids."""
        headless = self._headless
        if self._unanchored == (self._size, first_ids, compacted):
            return False
        anchor = self._anchor(first_ids, compacted)
        if anchor is None:
            self._unanchored = (self._size, first_ids, compacted)
            return False
        self._news.anchor = anchor
        self._by_time = anchor.first_own is None and headless.resumed is not False and headless.transcript_size is None
        self._news.ledger.claim(first_ids)
        self._follower = JsonlFollower(self.path, start=anchor.start)
        self._read_from = anchor.start
        return True

    def _anchor(self, first_ids: tuple[str, ...], compacted: bool) -> Anchor | None:
        path, headless = str(self.path), self._headless
        if headless.resumed is False:
            return Anchor(0)
        if headless.transcript_size is not None:
            return by_size(path, headless.transcript_size) if headless.transcript_size <= (self._size or 0) else None
        anchor = by_own_records(path, first_ids, thorough=compacted)
        if anchor is None and self._spawned_at is not None:
            anchor = by_time(path, self._spawned_at)
        return anchor

    def _read(self, follower: JsonlFollower) -> None:
        self._read_from, self._left_over = follower.offset, None
        for lines in follower.chunks():
            self.grew = True
            self._news.take(lines, self._spawned_at)
