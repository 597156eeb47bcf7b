"""The tree of a transcript as it was when it was shorter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ccc_plugins.retire_stale.evidence import branches
from ccc_plugins.retire_stale.evidence.branches import read_tree

RECORDS: list[dict[str, Any]] = [
    {"type": "user", "uuid": "A", "parentUuid": None},
    {"type": "assistant", "uuid": "B", "parentUuid": "A"},
    {"type": "last-prompt", "leafUuid": "B"},
    {"type": "file-history-snapshot", "messageId": "C"},
    {"type": "user", "uuid": "C", "parentUuid": "B"},
    {"type": "user", "uuid": "A", "parentUuid": "C"},
]


@pytest.fixture
def transcript(tmp_path: Path) -> tuple[Path, list[int]]:
    """The records one a line, but for the last two, which share one; with the position of each."""
    path = tmp_path / "transcript.jsonl"
    texts = [json.dumps(record) + ("\n" if place != 4 else "") for place, record in enumerate(RECORDS)]
    path.write_text("".join(texts))
    return path, [len("".join(texts[:place])) for place in range(len(texts))]


def test_only_what_begins_before_the_end_counts(transcript: tuple[Path, list[int]]) -> None:
    """Records, names of leaves and snapshots alike; a second copy behind the end does not move its record."""
    path, at = transcript
    assert not read_tree(path, at[0]).nodes
    assert list(read_tree(path, at[1]).nodes) == ["A"]
    assert list(read_tree(path, at[2]).nodes) == ["A", "B"]
    assert list(read_tree(path, at[2]).last_prompts) == []
    assert list(read_tree(path, at[3]).last_prompts) == ["B"]
    assert read_tree(path, at[3]).typed == frozenset()
    assert read_tree(path, at[4]).typed == {"C"}
    assert list(read_tree(path, at[5]).nodes) == ["A", "B", "C"]
    assert list(read_tree(path, at[5] + 1).nodes) == list(read_tree(path).nodes) == ["B", "C", "A"]
    assert read_tree(path).first_offsets == {"A": at[0], "B": at[1], "C": at[4]}


def test_nothing_is_known_of_what_stands_before_the_tail(transcript: tuple[Path, list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The tail is that of the file as it is, whatever the end."""
    path, at = transcript
    monkeypatch.setattr(branches, "TAIL", path.stat().st_size - at[1] + 1)
    assert list(read_tree(path).nodes) == ["B", "C", "A"]
    assert list(read_tree(path, at[2]).nodes) == ["B"]
    assert not read_tree(path, at[1]).nodes
