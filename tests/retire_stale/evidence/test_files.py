"""The two files of a headless, followed together while they come, go and move."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.made_session import Session
from ccc_hookspecs.values import Headless, SentInput
from ccc_plugins.retire_stale.evidence.observer import Observer

TURNS = 12
SPAWNED = 1_796_038_000.0


@pytest.fixture
def made(tmp_path: Path) -> Headless:
    """A headless that took twelve turns and was alone."""
    session = Session(random.Random(3))
    with (tmp_path / "t.jsonl").open("wb") as records, (tmp_path / "stdout.log").open("wb") as events:
        for _ in range(TURNS):
            session.turn(records, events)
    sent = tuple(SentInput(message_id=i, sent_at=at) for i, at in session.sent)
    return Headless(session_id=session.id, pid=4711, start_time=17.25, stdout_log=tmp_path / "stdout.log", sent=sent, spawned_at=SPAWNED)


def test_a_transcript_that_was_away_is_still_its_own(made: Headless, tmp_path: Path) -> None:
    """Gone for one look, then back: nothing of the headless's own counts as another writer's."""
    observer = Observer(made, SPAWNED)
    verdicts = []
    for path in (tmp_path / "t.jsonl", None, tmp_path / "t.jsonl"):
        observer.read(made, path)
        verdicts.append(observer.attribution().verdict)
    assert verdicts == ["fresh", "unknown", "fresh"]


def test_a_transcript_that_moved_to_another_folder_is_still_its_own(made: Headless, tmp_path: Path) -> None:
    """Found elsewhere, or put in place anew by an editor, it is read again with all own ids."""
    observer = Observer(made, SPAWNED)
    observer.read(made, tmp_path / "t.jsonl")
    (tmp_path / "elsewhere").mkdir()
    moved = Path(shutil.move(tmp_path / "t.jsonl", tmp_path / "elsewhere" / "t.jsonl"))
    observer.read(made, moved)
    assert observer.attribution().verdict == "fresh"
    shutil.copy(moved, tmp_path / "copy")
    (tmp_path / "copy").rename(moved)
    observer.read(made, moved)
    assert observer.attribution().verdict == "unknown"
    observer.read(made, moved)
    assert observer.attribution().verdict == "fresh"


def test_a_host_may_leave_out_inputs_acknowledged_long_ago(made: Headless, tmp_path: Path) -> None:
    """A new input is known as the headless's own, however many of the older ones the host still names."""
    assert made.sent is not None
    content = (tmp_path / "t.jsonl").read_bytes().splitlines(keepends=True)
    last = next(i for i, line in enumerate(content) if b'"uuid":"' + made.sent[-1].message_id.encode() in line)
    (tmp_path / "t.jsonl").write_bytes(b"".join(content[:last]))
    log = (tmp_path / "stdout.log").read_bytes()
    (tmp_path / "stdout.log").write_bytes(log[: log.index(made.sent[-1].message_id.encode())].rpartition(b"\n")[0] + b"\n")
    observer = Observer(made, SPAWNED)
    observer.read(replace(made, sent=made.sent[-2:-1]), tmp_path / "t.jsonl")
    assert observer.attribution().verdict == "fresh"
    with (tmp_path / "t.jsonl").open("ab") as file:
        file.write(content[last])
    observer.read(replace(made, sent=made.sent[-1:]), tmp_path / "t.jsonl")
    assert observer.attribution().verdict == "fresh"
