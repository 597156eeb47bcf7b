"""Who wrote the transcript: fresh, stale by these records, or unknown.

The `Ledger` keeps the conversation records that nobody has accounted for yet. A record is accounted for when this headless
printed it, when it is an input that was sent to it, or when one of its own records hangs below it: then it was in its
memory. So it is when it was given to the headless as history, and the headless has written it a second time. What is left over
arrived from another writer. The order in which records and own ids come does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ccc_hookspecs.outcomes import AttributionVerdict, ForeignRecord
from ccc_plugins.retire_stale.judgement.entries import Entry

_TIP = 256
"""Records of which is remembered that they are own or hang right below own ones: more than one answer has."""


class Ledger:
    """The conversation records in the range that this headless has not accounted for, oldest first.

    `answered_at`: the position of the last record that it printed, so not of an input; -1 before the first. `begins_at`: that of its
    first own record, None before there is one.
    """

    def __init__(self) -> None:
        self._own: set[str] = set()
        self._given: set[str] = set()
        self._repeated: set[str] = set()
        self._open: dict[str, Entry] = {}
        self._by_message: dict[str, list[str]] = {}
        self._above: dict[str, str | None] = {}
        self._tip: set[str] = set()
        self._entrypoint: str | None = None
        self._boundary: str | None = None
        self._spent: set[str] = set()
        self.answered_at = -1
        self.begins_at: int | None = None

    def give(self, ids: Iterable[str]) -> None:
        """These `uuid`s of others' records were given to this headless as history. What it prints about them proves nothing."""
        self._given.update(ids)
        for uuid in self._given & self._repeated:
            self._take(uuid)

    def claim(self, ids: Iterable[str]) -> None:
        """These are own: `uuid`s or `message.id`s of records, printed by this headless or sent to it."""
        claimed = [own for own in ids if own not in self._given and own not in self._spent]
        self._own.update(claimed)
        for own in claimed:
            for uuid in [own] if own in self._spent else self._by_message.pop(own, [own]):
                if uuid in self._open:
                    self._note_printed(self._open[uuid])
                    self._consume(self._open[uuid])
                self._adopt(uuid)

    def add(self, entry: Entry) -> bool:
        """Take one more record of the range, and tell whether it is own.

        Records off the main chain, or without a `uuid`, account for nothing and are no one's.
        """
        if entry.uuid is None:
            return False
        if entry.uuid in self._above or entry.uuid in self._open or entry.uuid in self._repeated:
            return self._is_own_copy(entry.uuid)
        above = self._nearest(entry.parent)
        own = entry.uuid in self._own or (entry.message_id in self._own and entry.writer != "typed")
        self._grow_tip(entry.uuid, entry, own)
        if own:
            self._note_printed(entry)
            self._consume(entry)
            self._adopt(above)
            return True
        if entry.is_conversation:
            self._open[entry.uuid] = entry
            if entry.message_id is not None and entry.writer != "typed":
                self._by_message.setdefault(entry.message_id, []).append(entry.uuid)
        if above is not None or entry.writer == "typed":
            # What is not conversation, is not typed and hangs below own records is most likely own: much of it is never printed.
            self._above[entry.uuid] = above
        return False

    def was_given(self, uuid: str) -> bool:
        """Whether this record was given to the headless as history."""
        return uuid in self._given

    def has_left_over(self, uuid: str) -> bool:
        """Whether this record of the range is another writer's and unknown to the headless, be it conversation or what belongs to it."""
        return uuid in self._open or uuid in self._above

    def continues(self, entry: Entry) -> bool:
        """Whether this record that is left over is an answer right below own records, or the summary below an own compaction, by the
        same entry point. Some are written before they are printed. Another writer's stands below an input or a compaction of its own."""
        return entry.kind in ("answer", "note") and entry.uuid in self._tip and entry.entrypoint == self._entrypoint

    def dismiss(self, uuid: str) -> None:
        """This record stood in the file before, or is not for this headless to know: it is no news."""
        self._take(uuid)

    @property
    def left_over(self) -> tuple[Entry, ...]:
        """The conversation records that are not accounted for, in the order in which they were added."""
        return tuple(self._open.values())

    def _consume(self, entry: Entry) -> None:
        """Drop ids that have done their work. A `message.id` is needed on only where a release prints other `uuid`s than it writes: there
        are APIs that give the same one to every answer, so that once it is spent it proves nothing.
        """
        if entry.uuid in self._own:
            self._own.difference_update((entry.uuid, entry.message_id))
            if len(self._spent) >= _TIP:
                self._spent.clear()
            self._spent.update([entry.message_id] if entry.message_id is not None else [])

    def _is_own_copy(self, uuid: str) -> bool:
        """Take one more copy of a record that stood in the range before: the headless's, when it was given the record."""
        self._repeated.add(uuid)
        if uuid in self._given:
            self._take(uuid)
        return uuid in self._given

    def _take(self, uuid: str) -> None:
        self._above.pop(uuid, None)
        self._forget(uuid)

    def _note_printed(self, entry: Entry) -> None:
        if self.begins_at is None or entry.offset < self.begins_at:
            self.begins_at = entry.offset
        if entry.kind not in ("prompt", "queued"):
            self.answered_at = max(self.answered_at, entry.offset)

    def _grow_tip(self, uuid: str, entry: Entry, own: bool) -> None:
        """The tip is what was last added of own records and, with no other input between, below them."""
        below = entry.parent in self._tip and entry.kind in ("answer", "other")
        if not own and not below and (entry.kind != "note" or entry.parent != self._boundary):
            return
        if own:
            self._entrypoint = entry.entrypoint
            self._boundary = uuid if entry.kind == "boundary" else None
        if len(self._tip) >= _TIP:
            self._tip.clear()
        self._tip.add(uuid)

    def _nearest(self, uuid: str | None) -> str | None:
        return uuid if uuid is not None and (uuid in self._open or uuid in self._above) else None

    def _adopt(self, uuid: str | None) -> None:
        """Account for a record and for everything that it hangs below."""
        while uuid is not None:
            above = self._above.pop(uuid, None)
            self._forget(uuid)
            uuid = above

    def _forget(self, uuid: str) -> None:
        entry = self._open.pop(uuid, None)
        siblings = self._by_message.get(entry.message_id or "", []) if entry is not None else []
        if uuid in siblings:
            siblings.remove(uuid)


@dataclass(frozen=True, slots=True)
class Attribution:
    """The verdict with its reason, and the records that made it. `foreign` may be cut; `count` is how many there are."""

    verdict: AttributionVerdict
    reason: str
    foreign: tuple[ForeignRecord, ...] = ()
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionFacts:
    """What is known for attribution.

    `transcript`: whether the file is there to be read. `log_readable`: whether what the headless printed could be read whole.
    `anchored`: whether the position from which records are news is known. `left_over`: see `Ledger`. `moved_to`: the session that
    the headless went on to (`/clear`). `answered`: it completed a turn. `holds_last_answer`: the transcript holds its last answer.
    `unprinted`: how many answers stand below own records that it did not print yet, while a turn of its is open; not in `left_over`.
    """

    transcript: str
    log_readable: bool
    anchored: bool
    left_over: tuple[Entry, ...]
    moved_to: str | None = None
    answered: bool = False
    holds_last_answer: bool = True
    unprinted: int = 0


FOREIGN_SHOWN = 20


def attribute(facts: AttributionFacts) -> Attribution:
    """Whether the headless has seen everything on disk."""
    if facts.moved_to is not None:
        return Attribution("stale", f"the headless went on to session {facts.moved_to}")
    if facts.transcript == "missing":
        return Attribution("unknown", "the transcript is gone") if facts.answered else Attribution("fresh", "no transcript yet")
    if facts.transcript != "readable":
        return Attribution("unknown", f"the transcript is {facts.transcript}")
    if not facts.log_readable:
        return _without_log(facts)
    if not facts.anchored:
        return Attribution("unknown", "where this headless loaded the session cannot be told")
    if facts.left_over:
        return _stale(facts.left_over)
    if facts.unprinted:
        return Attribution("unknown", "its answer is written and not printed yet")
    if facts.answered and not facts.holds_last_answer:
        return Attribution("unknown", "the transcript does not hold the headless's last answer")
    return Attribution("fresh", "every record since it loaded the session is its own")


def _without_log(facts: AttributionFacts) -> Attribution:
    """What can be said when own records are not known: only a person's typing is certainly not the headless's."""
    typed = tuple(e for e in facts.left_over if e.writer == "typed")
    if typed and facts.anchored:
        return _stale(typed)
    return Attribution("unknown", "stdout log unreadable")


def _stale(entries: tuple[Entry, ...]) -> Attribution:
    shown = tuple(ForeignRecord(uuid=e.uuid, type=e.type, entrypoint=e.entrypoint, offset=e.offset) for e in entries[:FOREIGN_SHOWN])
    plural = "s" if len(entries) > 1 else ""
    return Attribution("stale", f"{len(entries)} record{plural} of another writer since it loaded the session", shown, len(entries))
