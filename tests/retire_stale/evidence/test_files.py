"""The two files of a headless, followed together while they come, go and move."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

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


def counted(call: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """How many files a call looks at, and how many it opens."""
    stats, opened = [], []
    stat, opens = os.stat, os.open

    def noted_stat(*args: Any, **kwargs: Any) -> os.stat_result:
        stats.append(args)
        return stat(*args, **kwargs)

    def noted_open(*args: Any, **kwargs: Any) -> int:
        opened.append(args)
        return opens(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", noted_stat)
        patch.setattr(os, "open", noted_open)
        call()
    return len(stats), len(opened)


def add_foreign(folder: Path, session: str, turns: int) -> None:
    other = Session(random.Random(8), id=session)
    with (folder / "t.jsonl").open("ab") as records:
        for _ in range(turns):
            other.turn(records, None, entrypoint="cli")


@pytest.mark.parametrize("situation", ["alone", "many foreign records", "answer lost", "never anchored"])
def test_a_look_with_nothing_new_opens_no_file(made: Headless, situation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one `stat` of each file, also for a stale headless, one whose last answer is not on disk, and one without an anchor."""
    spawned_at: float | None = SPAWNED
    if situation == "many foreign records":
        add_foreign(tmp_path, made.session_id, 40)
    elif situation == "answer lost":
        lines = (tmp_path / "t.jsonl").read_bytes().splitlines(keepends=True)
        last = max(i for i, line in enumerate(lines) if b'"type":"assistant"' in line)
        (tmp_path / "t.jsonl").write_bytes(b"".join(lines[:last]))
    elif situation == "never anchored":
        (tmp_path / "stdout.log").write_bytes(b"")
        made, spawned_at = replace(made, sent=()), None
    observer = Observer(made, spawned_at)

    def look() -> None:
        observer.read(made, tmp_path / "t.jsonl")
        observer.attribution()

    look()
    assert counted(look, monkeypatch) == (2, 0)
    expected = {"alone": "fresh", "many foreign records": "stale", "answer lost": "unknown", "never anchored": "unknown"}
    assert observer.attribution().verdict == expected[situation]


def test_an_answer_that_comes_late_is_found(made: Headless, tmp_path: Path) -> None:
    """The transcript lags behind the log: until it holds the last answer nothing is settled, and then all is."""
    lines = (tmp_path / "t.jsonl").read_bytes().splitlines(keepends=True)
    last = max(i for i, line in enumerate(lines) if b'"type":"assistant"' in line)
    (tmp_path / "t.jsonl").write_bytes(b"".join(lines[:last]))
    observer = Observer(made, SPAWNED)
    for part in (lines[last][:40], lines[last][40:-1]):
        observer.read(made, tmp_path / "t.jsonl")
        assert not observer.settled()
        with (tmp_path / "t.jsonl").open("ab") as file:
            file.write(part)
    add_foreign(tmp_path, made.session_id, 0)
    with (tmp_path / "t.jsonl").open("ab") as file:
        file.write(b"\n")
    add_foreign(tmp_path, made.session_id, 40)
    observer.read(made, tmp_path / "t.jsonl")
    assert observer.settled()


def test_history_appended_anew_is_no_news(made: Headless, tmp_path: Path) -> None:
    """Records that stood in the file before, own and foreign, count once, however many are appended again."""
    lines = (tmp_path / "t.jsonl").read_bytes().splitlines(keepends=True)
    observer = Observer(made, SPAWNED)
    observer.read(made, tmp_path / "t.jsonl")
    with (tmp_path / "t.jsonl").open("ab") as file:
        file.writelines(line for line in lines if b'"uuid"' in line)
    observer.read(made, tmp_path / "t.jsonl")
    assert observer.attribution().verdict == "fresh"
    assert Observer(made, SPAWNED).attribution().verdict == "fresh"
    add_foreign(tmp_path, made.session_id, 1)
    observer.read(made, tmp_path / "t.jsonl")
    assert observer.attribution().verdict == "stale"
