"""What a transcript shows of the inputs that were taken."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccc_plugins.retire_stale.judgement.entries import Entry, Kind
from ccc_plugins.retire_stale.judgement.intake import Intake
from tests.retire_stale.builders import stamp

NOTICE = "<task-notification>\n<task-id>a36a0b8</task-id>\n<output-file>/tmp/x</output-file>\n<status>completed</status>"


def after(*operations: str, at: float = 100.0) -> Intake:
    """The intake after these queue operations, a second apart, each ten bytes long."""
    intake = Intake()
    for number, operation in enumerate(operations):
        intake.operation({"type": "queue-operation", "operation": operation, "timestamp": stamp(at + number)}, number * 10)
    return intake


def entry(kind: Kind, offset: int = 100) -> Entry:
    return Entry(offset=offset, type="user", kind=kind, uuid="u")


@pytest.mark.parametrize("operation", ["dequeue", "remove", "popAll"])
def test_whatever_leaves_the_queue_was_taken(operation: str) -> None:
    """By being processed, by joining the running turn, or by being thrown away."""
    intake = after("enqueue", "enqueue", operation)
    assert (intake.waiting, intake.taken, intake.taken_at) == (1, 1, 20)


def test_more_taken_than_enqueued_is_none_waiting() -> None:
    """2.1.6 writes down no arrival, only what is taken."""
    intake = after("dequeue", "dequeue")
    assert (intake.waiting, intake.taken) == (0, 2)


def test_takes_are_counted_from_a_moment_on() -> None:
    """Of the last 64."""
    intake = after(*["dequeue"] * 100)
    assert intake.takes_since(190.0) == 10
    assert intake.takes_since(0.0) == 64
    assert intake.taken == 100


def test_what_a_handled_command_leaves_is_the_outcome_of_what_was_taken() -> None:
    """Such a command prints nothing by which its input can be known."""
    intake = after("dequeue")
    intake.see(entry("echo"), own=False)
    assert intake.taken_at is None


def test_an_own_input_was_taken_where_its_record_stands() -> None:
    """Whether or not a queue operation said so; another writer's input ends what its own operation began."""
    intake = Intake()
    intake.see(entry("prompt", 50), own=True)
    assert intake.taken_at == 50
    intake.see(entry("queued", 70), own=True)
    assert intake.taken_at == 70
    intake.see(entry("prompt", 90), own=False)
    assert intake.taken_at is None


@pytest.mark.parametrize("kind", ["answer", "boundary", "note", "other"])
def test_other_records_say_nothing_of_what_was_taken(kind: Kind) -> None:
    """An answer counts only once it is known to be printed, which is not told here."""
    intake = after("dequeue")
    intake.see(entry(kind), own=True)
    assert intake.taken_at == 0


def test_a_notice_names_the_task_that_ended() -> None:
    """2.1.6 says the end of a background agent nowhere else."""
    intake = Intake()
    intake.operation({"operation": "enqueue", "content": NOTICE}, 0)
    assert intake.noticed == {"a36a0b8"}


def test_a_monitors_event_is_not_its_end() -> None:
    """It comes as a notice, too, but without a status."""
    intake = Intake()
    event = "<task-notification>\n<task-id>ba8hn26r5</task-id>\n<summary>Monitor event</summary>\n<event>tick</event>"
    intake.operation({"operation": "enqueue", "content": event}, 0)
    assert intake.noticed == set()


@given(st.lists(st.dictionaries(st.sampled_from(["operation", "timestamp", "content"]), st.none() | st.integers() | st.text(max_size=9))))
def test_no_operation_raises(operations: list[dict[str, Any]]) -> None:
    """Whatever it holds; nothing is ever waiting less than not at all."""
    intake = Intake()
    for offset, operation in enumerate(operations):
        intake.operation(operation, offset)
    assert intake.waiting >= 0
