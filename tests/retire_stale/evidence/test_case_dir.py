"""A recorded case is judged whatever its directory holds, and what is missing in it is unknown."""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccc_plugins.retire_stale.evidence.case_dir import CaseError, judge_case
from tests.retire_stale.builders import verdicts

TESTS = Path(__file__).resolve().parents[2]
LONE = TESTS / "corpus" / "2.1.332" / "lone-three"
TAKEN_OVER = TESTS / "corpus" / "2.1.332" / "terminal-turn"
SCALARS = st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.text(max_size=8)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3))
FIELDS = ["session_id", "head_pid", "head_started", "taken", "fifo_unread", "children", "sent", "claude", "alive"]


def copied(tmp_path: Path, case: Path = LONE, **changes: Any) -> Path:
    """A copy of a recorded case with other values in its `case.json`; an Ellipsis takes one out."""
    directory = tmp_path / "case"
    shutil.copytree(case, directory)
    known = {**json.loads((directory / "case.json").read_bytes()), **changes}
    (directory / "case.json").write_text(json.dumps({k: v for k, v in known.items() if v is not ...}))
    return directory


def test_the_library_and_the_recording_agree(tmp_path: Path) -> None:
    """A plain copy is judged like the original."""
    assert verdicts(judge_case(copied(tmp_path)).judgement) == ("fresh", "idle")


@pytest.mark.parametrize("field", ["fifo_unread", "children", "sent"])
@pytest.mark.parametrize("absent", [..., None, "what"], ids=["absent", "null", "ill-typed"])
def test_what_is_not_recorded_is_unknown(tmp_path: Path, field: str, absent: object) -> None:
    """Then nothing proves that the headless is idle."""
    changes: dict[str, Any] = {field: absent}
    judged = judge_case(copied(tmp_path, **changes)).judgement
    assert judged.attribution.verdict == "fresh"
    assert judged.idleness.verdict == "unknown"


@pytest.mark.parametrize("absent", [..., None, "yesterday", -5, float("inf")])
def test_without_a_start_the_own_records_tell_the_range(tmp_path: Path, absent: object) -> None:
    """As for a host that did not note it."""
    assert verdicts(judge_case(copied(tmp_path, TAKEN_OVER, head_started=absent)).judgement) == ("stale", "idle")


def test_an_open_tool_and_unread_bytes_are_work(tmp_path: Path) -> None:
    """As recorded beside the files."""
    busy = judge_case(copied(tmp_path, children=[{"own_group": True}, {"own_group": False}], fifo_unread=155)).judgement.idleness
    assert busy.verdict == "busy"
    assert set(busy.signs) == {"155 bytes unread in the FIFO", "running tool: in a process group of its own"}


def test_a_process_that_has_ended_is_idle(tmp_path: Path) -> None:
    """Nothing is pending in it, whatever it left."""
    judged = judge_case(copied(tmp_path, TESTS / "corpus" / "2.1.332" / "lone-streaming", alive=False)).judgement.idleness
    assert (judged.verdict, judged.signs) == ("idle", ("the process has ended",))


def test_the_registry_counts_where_it_can_be_read(tmp_path: Path) -> None:
    """A half-written record, one of nobody and a legacy one are passed over; the headless's own is looked at."""
    directory = copied(tmp_path)
    pid = json.loads((directory / "case.json").read_bytes())["head_pid"]
    for name, content in (
        ("1.json", "{half"),
        ("2.json", "[]"),
        ("3.json", '{"pid": "3"}'),
        (f"{pid}.json", json.dumps({"status": "busy", "pid": pid})),
    ):
        (directory / "registry" / name).write_text(content)
    assert judge_case(directory).judgement.idleness.signs == ("registry says busy",)


def test_missing_files_are_told_apart(tmp_path: Path) -> None:
    """Without a transcript nothing is known once it answered; without a log neither is."""
    directory = copied(tmp_path)
    (directory / "transcript.jsonl").unlink()
    judged = judge_case(directory)
    assert judged.judgement.attribution.reason == "the transcript is gone"
    assert (judged.judgement.resumable, judged.lost) == (False, ())
    (directory / "stdout.log").unlink()
    assert judge_case(directory).judgement.idleness.verdict != "idle"


def test_a_notice_to_come_is_work_while_the_log_is_young(tmp_path: Path) -> None:
    """Recorded from the real program between the end of a background task and the turn that it begins."""
    directory = copied(tmp_path, TESTS / "recordings" / "2.1.332" / "notice-to-come")
    taken = json.loads((directory / "case.json").read_bytes())["taken"]
    os.utime(directory / "stdout.log", (taken, taken - 0.02))
    assert judge_case(directory).judgement.idleness.signs == ("a background task ended, its notice is to come",)
    os.utime(directory / "stdout.log", (taken, taken - 60))
    assert judge_case(directory).judgement.idleness.verdict == "idle"


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"7", b"\xff\xfe", b'{"a":' * 100_000], ids=lambda c: str(c)[:12])
def test_no_readable_case_is_an_error_that_names_the_directory(tmp_path: Path, content: bytes | None) -> None:
    """In one line, whatever is there instead."""
    if content is not None:
        (tmp_path / "case.json").write_bytes(content)
    with pytest.raises(CaseError, match=tmp_path.name) as raised:
        judge_case(tmp_path)
    assert "\n" not in str(raised.value)
    assert raised.value.directory == tmp_path


def test_a_case_that_is_a_directory_is_an_error(tmp_path: Path) -> None:
    """It cannot be read."""
    (tmp_path / "case.json").mkdir()
    with pytest.raises(CaseError, match="cannot be read"):
        judge_case(tmp_path)


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from(FIELDS), JSON), st.binary(max_size=200), st.binary(max_size=200), st.integers(0, 10_000))
def test_nothing_in_a_directory_raises(case: dict[str, Any], transcript: bytes, log: bytes, seed: int) -> None:
    """Ill-typed fields, and files of which parts are overwritten, cut out and swapped."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        (directory / "case.json").write_text(json.dumps(case))
        shuffle = random.Random(seed)
        for name, noise in (("transcript.jsonl", transcript), ("stdout.log", log)):
            content = bytearray((TAKEN_OVER / name).read_bytes())
            for _ in range(3):
                at = shuffle.randrange(len(content))
                content[at : at + shuffle.randrange(40)] = noise
            (directory / name).write_bytes(content)
        judged = judge_case(directory)
        assert judged.judgement.idleness.verdict in ("idle", "busy", "unknown")
        if not isinstance(case.get("sent"), list):
            assert judged.judgement.idleness.verdict != "idle" or case.get("alive") is False
