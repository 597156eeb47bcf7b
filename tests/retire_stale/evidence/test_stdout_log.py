"""A stdout log as it grows, is cut, or is not there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ccc_plugins.retire_stale.evidence.stdout_log import StdoutLog

INIT = {"type": "system", "subtype": "init", "session_id": "s"}
RESULT = {"type": "result", "subtype": "success", "session_id": "s"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "stdout.log"
    made.touch()
    return made


def append(path: Path, *events: dict[str, Any], spaced: bool = False) -> None:
    with path.open("a") as file:
        for event in events:
            file.write(json.dumps(event, separators=(", ", ": ") if spaced else (",", ":")) + "\n")


@pytest.mark.parametrize("spaced", [True, False])
def test_events_are_taken_as_they_come(path: Path, spaced: bool) -> None:
    """Each once, and whether there were any is told."""
    log = StdoutLog(path)
    assert (log.look(), log.grew, log.size) == ("readable", False, 0)
    append(path, INIT, spaced=spaced)
    assert (log.look(), log.grew, log.stream.turn is not None) == ("readable", True, True)
    assert (log.look(), log.grew) == ("readable", False)
    append(path, RESULT, spaced=spaced)
    log.look()
    assert (log.stream.turn, log.stream.ended) == (None, True)
    assert log.size == path.stat().st_size
    assert log.written_at == pytest.approx(path.stat().st_mtime)


@pytest.mark.case("C34")
def test_half_an_event_is_waited_for(path: Path) -> None:
    """A line counts when its end has come."""
    line = json.dumps(INIT)
    log = StdoutLog(path)
    path.write_text(line[:20])
    log.look()
    assert log.stream.turn is None
    path.write_text(line + "\n")
    log.look()
    assert log.stream.turn is not None


def test_when_a_turn_ended_is_the_time_of_the_file_while_nothing_stands_behind_it(path: Path) -> None:
    """What is printed in the next turn leaves it; an end that something else hides is an end of unknown time."""
    log = StdoutLog(path)
    log.look()
    assert log.closed_at is None
    append(path, INIT, RESULT)
    os.utime(path, (100.0, 100.0))
    log.look()
    assert log.closed_at == 100.0
    append(path, INIT)
    log.look()
    assert log.closed_at == 100.0
    append(path, RESULT, {"type": "control_response"})
    log.look()
    assert log.closed_at is None


def test_other_output_is_passed_over(path: Path) -> None:
    """What goes to standard error stands in the same file."""
    path.write_text("node: warning: something\n\n" + json.dumps(INIT) + "\n[1, 2]\n7\n")
    log = StdoutLog(path)
    assert log.look() == "readable"
    assert log.stream.turn is not None


@pytest.mark.parametrize("how", ["cut", "another"])
def test_a_log_that_was_replaced_stays_so(path: Path, how: str) -> None:
    """What stood in it and was not read is never known; what comes in its place is read all the same."""
    append(path, INIT, RESULT)
    log = StdoutLog(path)
    log.look()
    if how == "another":
        path.unlink()
    path.write_text("")
    append(path, INIT)
    assert log.look() == "replaced"
    assert log.stream.turn is not None
    path.unlink()
    assert log.look() == "replaced"


def test_what_is_no_file_is_told_apart(tmp_path: Path) -> None:
    """None known, none there, one that cannot be read."""
    nowhere, folder = StdoutLog(tmp_path / "nowhere"), StdoutLog(tmp_path)
    assert StdoutLog(None).look() == "not known"
    assert (nowhere.look(), nowhere.size, nowhere.written_at) == ("missing", None, None)
    assert folder.look() == "unreadable"


def test_a_log_can_be_read_anew(path: Path) -> None:
    """Its ids are given once more, for another transcript; one that was replaced keeps what was known."""
    append(path, {**INIT}, {"type": "assistant", "message": {"id": "m", "content": []}, "uuid": "a", "session_id": "s"})
    log = StdoutLog(path)
    log.look()
    assert log.stream.take_ids() == ["a", "m"]
    log.rewind()
    log.look()
    assert log.stream.take_ids() == ["a", "m"]
