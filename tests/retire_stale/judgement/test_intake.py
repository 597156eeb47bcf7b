"""What a transcript shows of the inputs that were taken."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccc_plugins.retire_stale.judgement.entries import Entry, Kind, Writer
from ccc_plugins.retire_stale.judgement.intake import Intake
from tests.retire_stale.builders import stamp

NOTICE = "<task-notification>\n<task-id>a36a0b8</task-id>\n<output-file>/tmp/x</output-file>\n<status>completed</status>"


def after(*operations: str, at: float = 100.0) -> Intake:
    """The intake after these queue operations, a second apart, each ten bytes long."""
    intake = Intake()
    for number, operation in enumerate(operations):
        intake.operation({"type": "queue-operation", "operation": operation, "timestamp": stamp(at + number)}, number * 10)
    return intake


def entry(kind: Kind, offset: int = 100, at: float | None = None, writer: Writer = "unknown") -> Entry:
    return Entry(offset=offset, type="user", kind=kind, uuid="u", timestamp=at, writer=writer)


@pytest.mark.parametrize(("operation", "left"), [("dequeue", 1), ("remove", 1), ("popAll", 0)])
def test_whatever_leaves_the_queue_was_taken(operation: str, left: int) -> None:
    """By being processed, by joining the running turn, or by being thrown away or taken up for editing, which is done with all at once."""
    intake = after("enqueue", "enqueue", operation)
    assert (intake.waiting, intake.taken) == (left, 2 - left)
    assert intake.take == (20, 102.0)


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


def test_a_take_is_unanswered_until_the_headless_printed_something_of_it() -> None:
    """A record of its own behind it, or the end of a turn in its log after it."""
    intake = after("dequeue", at=100.0)
    assert intake.unanswered(-1, 99.0, owes=True)
    assert not intake.unanswered(10, 99.0, owes=True)
    assert not intake.unanswered(-1, 100.5, owes=True)


@pytest.mark.parametrize("kind", ["prompt", "queued", "shell", "answer", "boundary", "note", "other"])
def test_no_record_of_another_writer_answers_a_take(kind: Kind) -> None:
    """A person's prompt in a terminal says nothing of what the headless does."""
    intake = after("dequeue")
    intake.see(entry(kind), own=False)
    assert intake.unanswered(-1, 99.0, owes=True)


def test_a_take_that_cannot_be_the_headless_s_is_not_waited_for() -> None:
    """Nothing of what was sent to it is left that it could have taken."""
    assert not after("dequeue").unanswered(-1, 99.0, owes=False)


def test_what_a_handled_command_leaves_is_the_outcome_of_what_was_taken() -> None:
    """Such a command prints nothing by which its input can be known, but its end is in the log when it is over."""
    intake = after("dequeue", at=100.0)
    intake.see(entry("echo", at=105.0), own=False)
    assert not intake.unanswered(-1, None, owes=True)
    assert not intake.unanswered(-1, 105.0, owes=True)
    assert intake.unanswered(-1, 99.0, owes=True)


def test_a_command_that_a_person_typed_is_no_outcome() -> None:
    intake = after("dequeue")
    intake.see(entry("echo", writer="typed"), own=False)
    assert intake.unanswered(-1, None, owes=True)


def test_an_own_input_was_taken_where_its_record_stands() -> None:
    """Whether or not a queue operation said so, and whatever is sent or taken later."""
    intake = after("dequeue")
    intake.see(entry("prompt", 50), own=True)
    assert intake.take is None
    assert intake.unanswered(49, None, owes=False)
    assert not intake.unanswered(51, None, owes=True)
    intake.see(entry("prompt", 90), own=False)
    assert intake.unanswered(49, None, owes=False)


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
