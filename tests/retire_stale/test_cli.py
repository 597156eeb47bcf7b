"""`retire-stale explain`: what a person reads, and what a program does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ccc_plugins.retire_stale.cli import main
from tests.retire_stale.builders import Head, Session, new_id, said


def explain(directory: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["explain", str(directory), *options])


def recorded(head: Head, *, pid: int = 4242) -> Path:
    """The headless and its session as a recorded case."""
    session = head.session
    directory = session.folder / "case"
    (directory / "registry").mkdir(parents=True)
    (directory / "transcript.jsonl").write_bytes(session.transcript.read_bytes())
    (directory / "stdout.log").write_bytes(head.log.read_bytes())
    (directory / "registry" / f"{pid}.json").write_text(json.dumps({"pid": pid, "sessionId": session.id, "status": "idle"}))
    case = {
        "claude": session.release,
        "session_id": session.id,
        "head_pid": pid,
        "head_started": head.spawned_at,
        "taken": session.now + 60,
        "fifo_unread": 0,
        "children": [],
        "sent": [one.message_id for one in head.sent],
    }
    (directory / "case.json").write_text(json.dumps(case))
    return directory


@pytest.fixture
def rolled_back(tmp_path: Path) -> Head:
    """A headless that answered beside a terminal's turn."""
    head = Head(Session(tmp_path))
    head.ask("first")
    head.session.turn("typed")
    head.ask("rolled back")
    return head


def test_the_json_holds_every_field(rolled_back: Head) -> None:
    """Both verdicts with their evidence, what a fresh process would lack, and what follows."""
    done = explain(recorded(rolled_back), "--json")
    report = json.loads(done.stdout)
    asked, answered = report["staleness"]["foreign"]
    assert done.exit_code == 0
    assert report["staleness"]["verdict"] == "stale"
    assert report["staleness"]["foreign_count"] == 2
    assert (asked["type"], answered["type"], asked["entrypoint"]) == ("user", "assistant", "cli")
    assert asked["offset"] < answered["offset"]
    assert report["staleness"]["lost"] == [asked["uuid"]]
    assert report["idleness"]["verdict"] == "idle"
    assert "FIFO empty" in report["idleness"]["signs"]
    assert report["idleness"]["lingering"] is False
    assert (report["decision"], report["resumable"], report["release"]) == ("respawn", True, "2.1.332")


def test_the_words_hold_the_same(rolled_back: Head) -> None:
    """A line each, for a person."""
    directory = recorded(rolled_back)
    report = json.loads(explain(directory, "--json").stdout)
    lines = explain(directory).stdout.splitlines()
    assert lines[0] == "staleness: stale: 2 records of another writer since it loaded the session"
    assert any(report["staleness"]["lost"][0] in line and "would lack" in line for line in lines)
    assert "idleness: idle" in lines
    assert lines[-1] == "decision: respawn"


def test_many_records_are_counted_and_not_all_shown(tmp_path: Path) -> None:
    """The first twenty, and how many more there are."""
    head = Head(Session(tmp_path))
    head.ask()
    for number in range(15):
        head.session.turn(f"turn {number}")
    assert "  and 10 more" in explain(recorded(head)).stdout.splitlines()


@pytest.mark.case("C77")
@pytest.mark.parametrize("options", [(), ("--json",)], ids=["in words", "as JSON"])
def test_no_text_of_a_record_breaks_the_output(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Half a character, or a control sequence, where an id or an entry point should be."""
    head = Head(Session(tmp_path))
    head.ask()
    head.session.user(head.tip, [said("x")], "\ud83d\x1b[31m", uuid="\ud83d\x1b[2J")
    done = explain(recorded(head), *options)
    assert done.exit_code == 0, done.exception
    assert "\x1b" not in done.stdout
    assert "\\ud83d" in done.stdout


def test_no_conversation_text_is_printed(rolled_back: Head) -> None:
    """What is explained may be pasted into a bug report."""
    directory = recorded(rolled_back)
    for options in ((), ("--json",)):
        assert "typed" not in explain(directory, *options).stdout
        assert "rolled back" not in explain(directory, *options).stdout


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_without_a_case_there_is_one_line_and_status_2(tmp_path: Path, options: tuple[str, ...]) -> None:
    """On standard error, and nothing on standard output."""
    done = explain(tmp_path / new_id(), *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("retire-stale: ")


def test_help_and_version_are_there() -> None:
    """With the exit status documented."""
    assert "Exit status 2" in CliRunner().invoke(main, ["explain", "-h"]).stdout
    assert CliRunner().invoke(main, ["--version"]).exit_code == 0
