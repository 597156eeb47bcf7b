"""What a simulated headless writes and prints while it is healed, against recordings of the real program, field by field."""

from __future__ import annotations

from pathlib import Path

import pytest

from ccc_hookspecs.testing.harness import ClaudeHome, Record, read_jsonl, simulated
from tests.ccc_hookspecs.testing.reading import comparable
from tests.ccc_hookspecs.testing.situations import healed

pytestmark = pytest.mark.slow

RECORDED = Path(__file__).parent / "healed"
RELEASES = sorted(path.name for path in RECORDED.iterdir() if path.is_dir())


@pytest.mark.parametrize("release", RELEASES)
def test_healing_is_as_recorded(tmp_path: Path, release: str) -> None:
    """The same records and events in the same order, with the same fields, and ids where the same ids were."""
    with simulated(ClaudeHome(tmp_path), release=release) as simulator:
        head = healed(simulator)
        records, events = head.records(), head.events()
    transcript, printed = (read_jsonl(RECORDED / release / name) for name in ("transcript.jsonl", "stdout.log"))
    assert comparable(records) == comparable(transcript)
    assert comparable(events) == comparable(printed)
    assert _named_last(records) == _named_last(transcript)
    assert _turns(events) == _turns(printed)


def _turns(events: list[Record]) -> list[int]:
    return [event["num_turns"] for event in events if event["type"] == "result"]


def _named_last(records: list[Record]) -> int | None:
    """How many records before the end the last `last-prompt` names its leaf, counting those with an id; None when it names none."""
    ids = [record["uuid"] for record in records if "uuid" in record]
    leaf = [record.get("leafUuid") for record in records if record["type"] == "last-prompt"][-1]
    return None if leaf is None else ids[::-1].index(leaf)
