"""A command was taken and prints nothing yet, while somebody else is at the session: on recordings, with what a terminal adds."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ccc_hookspecs.values import Headless, SentInput
from ccc_plugins.retire_stale.evidence.observer import Observer, Surroundings
from ccc_plugins.retire_stale.judgement.entries import seconds
from tests.retire_stale.builders import new_id, stamp

TESTS = Path(__file__).resolve().parents[2]
RECORDED = sorted((TESTS / "recordings").glob("*/command-taken"))
ECHO = "<command-name>/model</command-name>\n<command-message>model</command-message>\n<command-args></command-args>"


class Case:
    """A copy of a recording. Its log was written to last just before the command was taken."""

    def __init__(self, recorded: Path, directory: Path) -> None:
        self.directory = Path(shutil.copytree(recorded, directory / "case"))
        self.records = [json.loads(line) for line in (self.directory / "transcript.jsonl").read_text().splitlines()]
        self.case = json.loads((self.directory / "case.json").read_text())
        takes = [seconds(record["timestamp"]) for record in self.records if record.get("operation") == "dequeue"]
        self.taken_at = takes[-1] or 0.0
        sent = (
            SentInput(message_id=message_id, sent_at=(at or 0.0) - 0.01) for message_id, at in zip(self.case["sent"], takes, strict=True)
        )
        self.headless = Headless(
            session_id=self.case["session_id"],
            pid=1,
            start_time=None,
            stdout_log=self.directory / "stdout.log",
            sent=tuple(sent),
            spawned_at=self.case["head_started"],
        )
        self.log_written(self.taken_at - 0.1)

    def log_written(self, at: float) -> None:
        os.utime(self.directory / "stdout.log", (at, at))

    def append(self, **record: Any) -> None:
        with (self.directory / "transcript.jsonl").open("a") as file:
            file.write(json.dumps({"timestamp": stamp(self.taken_at + 2.0), "sessionId": self.case["session_id"], **record}) + "\n")

    def terminal_says(self, text: str) -> None:
        last = [record for record in self.records if record.get("uuid")][-1]
        kept = {key: last[key] for key in ("cwd", "version", "userType", "isSidechain")}
        self.append(**kept, type="user", uuid=new_id(), parentUuid=last["uuid"], message={"role": "user", "content": text})

    @property
    def idleness(self) -> str:
        """To a host that looks for the first time."""
        return self.judged(self.observer())

    def observer(self) -> Observer:
        """One that has looked once."""
        observer = Observer(self.headless, self.headless.spawned_at)
        observer.read(self.headless, self.directory / "transcript.jsonl")
        return observer

    def judged(self, observer: Observer) -> str:
        observer.read(self.headless, self.directory / "transcript.jsonl")
        around = Surroundings(now=self.taken_at + 3600.0, unread=0, tools=(), children=0, registered=True, others=True)
        return observer.judge(around).idleness.verdict


@pytest.fixture(params=RECORDED, ids=lambda case: case.parent.name)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    return Case(request.param, tmp_path)


def test_there_are_recordings_of_a_taken_command() -> None:
    assert {case.parent.name for case in RECORDED} >= {"2.0.42", "2.1.6", "2.1.61"}


@pytest.mark.parametrize("text", ["typed in a terminal", ECHO], ids=["prompt", "command"])
def test_what_a_person_types_does_not_end_what_the_headless_took(case: Case, text: str) -> None:
    """It is busy until its log tells of the end, whatever a terminal adds meanwhile."""
    case.terminal_says(text)
    assert case.idleness == "busy"
    case.log_written(case.taken_at + 5.0)
    assert case.idleness == "idle"


@pytest.mark.parametrize("later", [10.0, 600.0])
@pytest.mark.parametrize("operation", ["dequeue", "popAll", "remove"])
def test_another_writers_queue_is_not_waited_for(case: Case, operation: str, later: float) -> None:
    """Once the headless's own command is over, what a terminal takes from its queue keeps nobody busy."""
    case.log_written(case.taken_at + 1.0)
    assert case.idleness == "idle"
    case.append(type="queue-operation", operation="enqueue", content="<task-notification>", timestamp=stamp(case.taken_at + later))
    case.append(type="queue-operation", operation=operation, timestamp=stamp(case.taken_at + later))
    assert case.idleness == "idle"


def test_a_command_that_was_sent_long_before_it_was_taken_is_waited_for(case: Case) -> None:
    """As by a process that stood still, or on a machine that slept."""
    *before, last = case.headless.sent or ()
    case.headless = replace(case.headless, sent=(*before, replace(last, sent_at=case.taken_at - 300.0)))
    case.log_written(case.taken_at - 301.0)
    assert case.idleness == "busy"


def test_what_is_printed_behind_the_end_of_a_turn_hides_when_that_was(case: Case) -> None:
    """A line of no event: then the outcome of a command is one, whenever it was written."""
    observer = case.observer()
    with (case.directory / "stdout.log").open("a") as log:
        log.write(json.dumps({"type": "result", "subtype": "success", "session_id": case.case["session_id"]}) + "\na warning\n")
    case.log_written(case.taken_at + 5.0)
    assert case.judged(observer) == "busy"
    case.terminal_says(ECHO)
    assert case.judged(observer) == "idle"
