"""A restart with a checkpoint changes no verdict, and a checkpoint that is not as it was written changes nothing."""

from __future__ import annotations

import json
import os
import random
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.made_session import Session
from ccc_hookspecs.checks import is_uuid
from ccc_hookspecs.claude.jsonl import JsonlFollower
from ccc_hookspecs.values import Headless, SentInput
from ccc_plugins.retire_stale.evidence import transcript
from ccc_plugins.retire_stale.evidence.checkpoints import Checkpoints
from ccc_plugins.retire_stale.evidence.files import Files
from ccc_plugins.retire_stale.evidence.observer import Judgement, Observer, Surroundings
from ccc_plugins.retire_stale.evidence.state_codec import decode, encode
from ccc_plugins.retire_stale.judgement.stream import Stream
from tests.retire_stale import builders as written
from tests.retire_stale.builders import Head

CASES = sorted(path.parent for path in (Path(__file__).parents[2] / "corpus").glob("*/*/transcript.jsonl"))
AROUND = Surroundings(now=1_796_100_000.0, unread=0, tools=(), children=0, others=False)
NEVER = 1 << 60


def headless_of(case: dict[str, Any], folder: Path) -> Headless:
    sent = tuple(SentInput(message_id=i) for i in case["sent"] if is_uuid(i))
    return Headless(
        session_id=case["session_id"],
        pid=case["head_pid"],
        start_time=17.25,
        stdout_log=folder / "stdout.log",
        sent=sent,
        spawned_at=case["head_started"],
    )


def judged(headless: Headless, folder: Path, checkpoints: Checkpoints | None = None) -> Judgement:
    """By a new observer, as after a restart."""
    observer = Observer(headless, headless.spawned_at, checkpoints)
    observer.read(headless, folder / "transcript.jsonl")
    return observer.judge(AROUND)


def grow(folder: Path, name: str, content: bytes) -> None:
    with (folder / name).open("ab") as file:
        file.write(content)


@pytest.fixture
def made(tmp_path: Path) -> Headless:
    """A headless with a turn in both files, in `tmp_path`."""
    session = Session(random.Random(5))
    with (tmp_path / "transcript.jsonl").open("wb") as records, (tmp_path / "stdout.log").open("wb") as events:
        session.turn(records, events)
        session.turn(records, events)
    case = {"session_id": session.id, "head_pid": 4711, "head_started": 1_796_038_000.0, "sent": [i for i, _ in session.sent]}
    return headless_of(case, tmp_path)


@pytest.fixture
def kept(made: Headless, tmp_path: Path) -> Path:
    """Its only checkpoint."""
    judged(made, tmp_path, Checkpoints(tmp_path / "kept", every=0))
    (path,) = (tmp_path / "kept").iterdir()
    return path


def restored(headless: Headless, folder: Path) -> bool:
    """Whether a new reader goes on from the checkpoint, not from the start."""
    files = Files(headless, headless.spawned_at, Checkpoints(folder / "kept", every=NEVER))
    log = files.log
    seen: list[int] = []
    look = log.look

    def noted() -> Any:
        seen.append(log.offset)
        return look()

    log.look = noted  # type: ignore[method-assign]
    files.read(headless, folder / "transcript.jsonl")
    return seen == [log.offset] and log.offset > 0


@pytest.mark.parametrize("directory", CASES, ids=lambda d: f"{d.parent.name}-{d.name}")
def test_going_on_from_a_checkpoint_is_judging_anew(directory: Path, tmp_path: Path) -> None:
    """Each recording, judged when only a part of it stood on disk, then by a new process when all of it did."""
    transcript, log = ((directory / name).read_bytes() for name in ("transcript.jsonl", "stdout.log"))
    case = json.loads((directory / "case.json").read_text())
    for part in (0.2, 0.4, 0.55, 0.7, 0.85, 0.97, 1.0):
        folder = tmp_path / str(part)
        folder.mkdir()
        headless = headless_of(case, folder)
        cut, log_cut = int(len(transcript) * part), int(len(log) * part)
        grow(folder, "transcript.jsonl", transcript[:cut])
        grow(folder, "stdout.log", log[:log_cut])
        judged(headless, folder, Checkpoints(folder / "kept", every=0))
        grow(folder, "transcript.jsonl", transcript[cut:])
        grow(folder, "stdout.log", log[log_cut:])
        assert judged(headless, folder, Checkpoints(folder / "kept", every=NEVER)) == judged(headless, folder)


def test_an_answer_before_much_of_another_writer_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the transcript holds the last own answer does not depend on where the reading goes on, else it would be waited for."""
    monkeypatch.setattr(transcript, "_BESIDE", 4096)
    head = Head(written.Session(tmp_path, "2.1.332"))
    head.ask()
    headless, path = head.headless(), head.session.transcript
    for number in range(300):
        head.session.turn(f"a terminal's turn {number}")
    checkpoints = Checkpoints(tmp_path / "kept", every=1)
    Observer(headless, headless.spawned_at, checkpoints).read(headless, path)
    head.session.turn("one more")
    observer = Observer(headless, headless.spawned_at, checkpoints)
    observer.read(headless, path)
    assert observer.settled()


def test_a_checkpoint_saves_the_reading(made: Headless, kept: Path, tmp_path: Path) -> None:
    """A new process goes on where the last one stopped, and only the owner may read what was kept."""
    assert restored(made, tmp_path)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


def test_a_checkpoint_holds_no_conversation_text(made: Headless, tmp_path: Path) -> None:
    """Neither what was said nor what a tool, still running, was asked to do."""
    block = {"type": "tool_use", "id": "toolu_1", "name": "Write", "input": {"content": "secret words", "run_in_background": True}}
    message = {"id": "msg_1", "role": "assistant", "content": [block, {"type": "text", "text": "secret words"}]}
    event = {"type": "assistant", "message": message, "parent_tool_use_id": None, "session_id": made.session_id, "uuid": "u"}
    grow(tmp_path, "stdout.log", json.dumps(event).encode() + b"\n")
    judged(made, tmp_path, Checkpoints(tmp_path / "kept", every=0))
    (path,) = (tmp_path / "kept").iterdir()
    assert b"toolu_1" in path.read_bytes()
    assert b"secret" not in path.read_bytes()
    assert b"def " not in path.read_bytes()


def test_a_checkpoint_is_written_only_when_enough_was_read(made: Headless, tmp_path: Path) -> None:
    """Short files are read anew; what has grown long is kept, once."""
    checkpoints = Checkpoints(tmp_path / "kept", every=1 << 20)
    observer = Observer(made, made.spawned_at, checkpoints)
    observer.read(made, tmp_path / "transcript.jsonl")
    assert not (tmp_path / "kept").exists()
    grow(tmp_path, "stdout.log", b'{"type":"note"}\n' * 70_000)
    observer.read(made, tmp_path / "transcript.jsonl")
    (path,) = (tmp_path / "kept").iterdir()
    written = path.stat().st_mtime_ns
    observer.read(made, tmp_path / "transcript.jsonl")
    assert path.stat().st_mtime_ns == written


@pytest.mark.parametrize("change", [{"pid": 4712}, {"start_time": 17.5}, {"start_time": None}, {"resumed": True}, {"transcript_size": 1}])
def test_another_process_does_not_get_it(made: Headless, kept: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    """A checkpoint is for one process, by pid and start time, of which the host says the same."""
    assert not restored(replace(made, **change), tmp_path)


@pytest.mark.parametrize("place", [0, 30, 200, -200, -1])
def test_a_tampered_checkpoint_is_ignored(made: Headless, kept: Path, tmp_path: Path, place: int) -> None:
    """One changed byte anywhere, half a file, an empty one or another form: everything is read anew, with the same verdict."""
    whole = kept.read_bytes()
    place %= len(whole)
    broken = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
    for content in (broken, whole[:place], b"[]\n[]", b"\n"):
        kept.write_bytes(content)
        assert not restored(made, tmp_path)
        assert judged(made, tmp_path, Checkpoints(kept.parent)) == judged(made, tmp_path)
    kept.write_bytes(whole)
    assert restored(made, tmp_path)


@pytest.mark.parametrize("name", ["transcript.jsonl", "stdout.log"])
def test_a_changed_file_is_read_anew(made: Headless, kept: Path, tmp_path: Path, name: str) -> None:
    """A file that was replaced, cut short or rewritten in place where it was read is not gone on from."""
    path = tmp_path / name
    content = path.read_bytes()
    changed = bytearray(content)
    for position in (10, len(content) - 10):
        changed[position] ^= 1
        path.write_bytes(changed)  # the same inode
        assert not restored(made, tmp_path)
        changed[position] ^= 1
    path.write_bytes(content[:-5])
    assert not restored(made, tmp_path)
    path.write_bytes(content)
    assert restored(made, tmp_path)
    path.rename(tmp_path / "old")
    path.write_bytes(content)
    assert not restored(made, tmp_path)
    assert judged(made, tmp_path, Checkpoints(kept.parent)) == judged(made, tmp_path)


def test_a_checkpoint_of_another_program_is_ignored(made: Headless, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another version of the code concluded is not taken over."""
    monkeypatch.setattr("ccc_plugins.retire_stale.evidence.checkpoints._program", lambda: "another")
    assert not restored(made, tmp_path)


def test_only_the_newest_are_kept(made: Headless, tmp_path: Path) -> None:
    """Of many processes the last few stay, fewer when they are large; what a writer left half done goes too."""
    checkpoints = Checkpoints(tmp_path / "kept", every=0, kept=3)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "left.new").write_bytes(b"half")
    os.utime(tmp_path / "kept" / "left.new", (1, 1))
    for pid in range(1, 9):
        judged(replace(made, pid=pid), tmp_path, checkpoints)
        (path,) = (tmp_path / "kept").glob(f"*-{pid}-*")
        os.utime(path, (pid, pid))
    assert sorted(path.name.split("-")[5] for path in (tmp_path / "kept").iterdir()) == ["6", "7", "8"]
    size = path.stat().st_size
    judged(replace(made, pid=9), tmp_path, Checkpoints(tmp_path / "kept", every=0, room=size + size // 2))
    assert [path.name.split("-")[5] for path in (tmp_path / "kept").iterdir()] == ["9"]
    judged(replace(made, pid=10), tmp_path, Checkpoints(tmp_path / "kept", every=0, largest=size // 2))
    assert [path.name.split("-")[5] for path in (tmp_path / "kept").iterdir()] == ["9"]


def test_a_dropped_checkpoint_is_gone(made: Headless, kept: Path) -> None:
    """Dropping removes it, and dropping twice is no error."""
    for _ in range(2):
        Checkpoints(kept.parent).drop(made)
    assert not kept.exists()


def test_where_nothing_can_be_kept_nothing_fails(made: Headless, tmp_path: Path) -> None:
    """A directory that cannot be made costs the checkpoint, not the verdict."""
    (tmp_path / "file").write_bytes(b"")
    assert judged(made, tmp_path, Checkpoints(tmp_path / "file" / "kept", every=0)) == judged(made, tmp_path)


def test_only_named_classes_pass() -> None:
    """What is no part of an observer's state is neither written nor made."""
    with pytest.raises(TypeError, match="Path"):
        encode([Path("x")])
    for data in ([], ["Path", "x"], ["deque"], ["Stream", 1], {"a": 1}):
        with pytest.raises((ValueError, TypeError)):
            decode(data)
    stream = Stream(turn="open", commands={"a": "queued"}, finished={"b"}, last_answer=("c", None))
    assert decode(json.loads(json.dumps(encode(stream)))) == stream


def test_a_place_is_good_for_the_file_it_was_told_of(tmp_path: Path) -> None:
    """A follower that goes on from a place gives out what came since, and nothing when the file is another."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"one\ntwo\nthr")
    follower = JsonlFollower(path)
    assert [line.data for line in follower.lines()] == [b"one", b"two"]
    place = follower.place()
    assert place is not None
    assert place.offset == 8
    grow(tmp_path, "t.jsonl", b"ee\n")
    again = JsonlFollower.resume(path, place)
    assert again is not None
    assert again.poll() == "grown"
    assert [line.data for line in again.lines()] == [b"three"]
    path.write_bytes(b"one\nTwo\nthree\n")
    assert JsonlFollower.resume(path, place) is None
    assert JsonlFollower.resume(tmp_path / "none", place) is None
    assert follower.place() is None
