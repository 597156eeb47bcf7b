"""What stands in a transcript since one headless had loaded it: what of it is not the headless's, and the inputs and queue operations."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from ccc_hookspecs.claude.jsonl import Lines, Record
from ccc_plugins.retire_stale.evidence.anchor import Anchor
from ccc_plugins.retire_stale.evidence.skim_record import skimmed
from ccc_plugins.retire_stale.judgement.attribution import Ledger
from ccc_plugins.retire_stale.judgement.copies import is_copy_id
from ccc_plugins.retire_stale.judgement.entries import Entry, entry_of
from ccc_plugins.retire_stale.judgement.intake import Intake

RECENT = 512


@dataclass(slots=True)
class News:
    """What was read since the anchor.

    `ledger`: the records that nobody has accounted for. `intake`: the inputs that were taken. `inputs`: the ids of the inputs that
    stand there as records of their own or as accepted in the middle of a turn. `recent`: ids of the last records. `checked`: records
    of which it is known that they stand in the file once. `release`: the one that wrote the last record that names one.
    """

    anchor: Anchor | None = None
    ledger: Ledger = field(default_factory=Ledger)
    intake: Intake = field(default_factory=Intake)
    inputs: set[str] = field(default_factory=set)
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=RECENT))
    checked: set[str] = field(default_factory=set)
    release: str | None = None

    def take(self, lines: Lines, spawned_at: float | None) -> None:
        """Take the records on these lines. `spawned_at`: when the headless was spawned, in epoch seconds, or None."""
        for found in skimmed(lines):
            if isinstance(found, Entry):
                self._add(found, spawned_at)
            else:
                self._take(found, spawned_at)

    def _take(self, record: Record, spawned_at: float | None) -> None:
        data = record.data
        if data.get("type") == "queue-operation":
            self.intake.operation(data, record.offset)
            return
        entry = entry_of(data, record.offset)
        if entry.kind == "queued":
            self.inputs.update(_queued_ids(data))
        elif entry.type == "user" and entry.uuid is not None:
            self.inputs.add(entry.uuid)
        self._add(entry, spawned_at)

    def _add(self, entry: Entry, spawned_at: float | None) -> None:
        if entry.uuid is None:
            return
        self.release = entry.release or self.release
        self.recent.append(entry.uuid)
        if entry.message_id is not None:
            self.recent.append(entry.message_id)
        if self._was_loaded(entry, spawned_at):
            return
        own = self.ledger.add(entry)
        if own and (self.ledger.was_given(entry.uuid) or is_copy_id(entry.uuid)):
            self.intake.see_history()
        else:
            self.intake.see(entry, own)

    def _was_loaded(self, entry: Entry, spawned_at: float | None) -> bool:
        """A record between the loaded leaf and the first own one may stand on a branch that was there before, and was passed by."""
        if self.anchor is None or self.anchor.first_own is None or entry.offset >= self.anchor.first_own:
            return False
        return spawned_at is not None and entry.timestamp is not None and entry.timestamp < spawned_at


def _queued_ids(data: dict[str, Any]) -> set[str]:
    """The ids of a text that was accepted in the middle of a turn: its record's, and its input's where a release notes that."""
    attachment = data.get("attachment")
    found = {data.get("uuid")}
    if isinstance(attachment, dict):
        found |= {attachment.get("source_uuid"), attachment.get("uuid"), attachment.get("command_uuid")}
    return {i for i in found if isinstance(i, str)}
