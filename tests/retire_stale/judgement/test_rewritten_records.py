"""Records that a healed process wrote again: who said them, and when, is as it was at first; where they hang is new."""

from __future__ import annotations

from typing import Any

from ccc_plugins.retire_stale.judgement.branches import Tree, lacking
from ccc_plugins.retire_stale.judgement.entries import Entry, entry_of


def record(kind: str, uuid: str, parent: str | None, writer: str = "cli", **members: Any) -> dict[str, Any]:
    message = {"id": f"msg-{uuid}", "content": [{"type": "text", "text": uuid}]}
    version = {"version": "2.1.332", "entrypoint": writer}
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "message": message, **version, **members}


def turn(prompt: str, parent: str | None, writer: str = "cli") -> list[dict[str, Any]]:
    return [record("user", prompt, parent, writer), record("assistant", f"to-{prompt}", prompt, writer)]


def entries(*records: dict[str, Any]) -> list[Entry]:
    return [entry_of(one, offset) for offset, one in enumerate(records)]


def lost(records: list[dict[str, Any]], leaf: str, *rewinds: int) -> list[str | None]:
    return [entry.uuid for entry in lacking(Tree.of(entries(*records), rewinds=rewinds), leaf)]


def test_a_turn_that_was_left_behind_is_not_lacking_once_its_successor_was_given_to_a_headless() -> None:
    """The copy is by a headless and stands last, but a person at a terminal went on there."""
    records = [*turn("first", None, "sdk-cli"), *turn("left-behind", "to-first"), *turn("instead", "to-first")]
    records.insert(5, {"type": "last-prompt"})  # the mark of the rewind: behind the prompt, before its answer
    assert lost(records, "to-instead", 5) == []
    healed = [*records, *turn("instead", "to-first", "sdk-cli"), *turn("next", "to-instead", "sdk-cli")]
    assert lost(healed, "to-next", 5) == []


def test_a_summary_sums_up_what_stood_above_it_when_it_was_made() -> None:
    """A turn that was given to a headless since, above what the summary keeps, is not in it (seen on 2.1.332)."""
    segment = {"headUuid": "to-typed", "anchorUuid": "summary", "tailUuid": "to-typed"}
    boundary = {"subtype": "compact_boundary", "logicalParentUuid": "to-typed", "compactMetadata": {"preservedSegment": segment}}
    records = [
        *turn("first", None, "sdk-cli"),
        *turn("elsewhere", "to-first", "sdk-cli"),
        *turn("typed", "to-first"),
        {**record("system", "boundary", None), **boundary},
        record("user", "summary", "boundary", isCompactSummary=True),
        *turn("afterwards", "summary"),
        # what a process that knew the first turn alone was given
        *turn("elsewhere", "to-first", "sdk-cli"),
        *turn("typed", "to-elsewhere", "sdk-cli"),
        *turn("afterwards", "to-typed", "sdk-cli"),
    ]
    assert lost(records[:10], "to-afterwards") == ["elsewhere"]
    assert lost(records, "to-afterwards") == ["elsewhere"]
