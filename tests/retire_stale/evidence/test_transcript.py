"""A transcript followed for one headless: what is news in it, what it holds, and what was taken and not answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from ccc_plugins.retire_stale.evidence.transcript import Transcript
from tests.retire_stale.builders import Head, Session, new_id


@pytest.fixture(params=[False, True], ids=["compact", "spaced"])
def head(request: pytest.FixtureRequest, tmp_path: Path) -> Head:
    """A headless whose log names no inputs, one turn old."""
    made = Head(Session(tmp_path, "2.1.61", spaced=request.param))
    made.ask()
    return made


def follow(head: Head, **changes: object) -> Transcript:
    return Transcript(head.session.transcript, head.headless(**changes), head.spawned_at)


def ids_of(head: Head) -> list[str]:
    """What the headless printed and was sent."""
    transcript = head.session.transcript.read_text()
    sent = [one.message_id for one in head.sent]
    return sent + [line.split('"')[0] for line in transcript.replace('": "', '":"').split('"uuid":"')[1:]]


def test_only_what_is_new_is_read(head: Head) -> None:
    """Each look takes what came since the one before, and says whether anything did."""
    transcript, ids = follow(head), ids_of(head)
    assert transcript.look(ids, ids, compacted=False) == "readable"
    assert (transcript.grew, transcript.anchored, transcript.left_over()) == (True, True, ())
    assert transcript.look(ids, [], compacted=False) == "readable"
    assert not transcript.grew
    asked, answered = head.session.turn()
    transcript.look(ids, [], compacted=False)
    assert [e.uuid for e in transcript.left_over()] == [asked["uuid"], answered["uuid"]]
    assert transcript.size == head.session.transcript.stat().st_size
    assert transcript.release == "2.1.61"


def test_ids_that_are_claimed_later_account_for_what_was_read(head: Head) -> None:
    """What was left over until then is not any more."""
    transcript = follow(head)
    transcript.look([head.sent[0].message_id], [], compacted=False)
    left = transcript.left_over()
    assert [e.kind for e in left] == ["answer"]
    transcript.claim([e.uuid for e in left if e.uuid is not None])
    assert transcript.left_over() == ()


def test_an_answer_is_held_by_either_of_its_ids(head: Head) -> None:
    """By its record's or by its message's; and not before it is there."""
    transcript, ids = follow(head), ids_of(head)
    transcript.look(ids, ids, compacted=False)
    answered = head.answer(printed=False)
    transcript.look(ids, [], compacted=False)
    assert transcript.holds((answered["uuid"], None))
    assert transcript.holds((None, answered["message"]["id"]))
    assert transcript.holds((new_id(), answered["message"]["id"]))
    assert not transcript.holds((new_id(), None))
    assert not transcript.holds((None, None))


def test_an_input_is_unanswered_until_something_of_it_was_printed(head: Head) -> None:
    """Taken, written, answered; what counts is that the answer is known to be the headless's."""
    transcript, ids = follow(head), ids_of(head)
    transcript.look(ids, ids, compacted=False)
    assert not transcript.unanswered(None, owes=True)
    sent = head.send()
    transcript.claim([sent.message_id])
    head.take("second", sent)
    transcript.look(ids, [], compacted=False)
    assert transcript.unanswered(None, owes=True)
    assert transcript.inputs >= {sent.message_id}
    answered = head.answer(printed=False)
    transcript.look(ids, [], compacted=False)
    assert transcript.unanswered(None, owes=True)
    transcript.claim([answered["uuid"]])
    assert not transcript.unanswered(None, owes=True)


def test_another_writers_input_is_not_waited_for(head: Head) -> None:
    """A one-shot process takes its own from the same queue, and may be ended before it answers."""
    transcript, ids = follow(head), ids_of(head)
    head.session.operation("dequeue")
    head.session.user(head.tip, "from another one-shot", "sdk-cli")
    transcript.look(ids, ids, compacted=False)
    assert not transcript.unanswered(None, owes=False)


@pytest.mark.parametrize(("changes", "start"), [({"resumed": False}, 0), ({"transcript_size": 0}, 0)], ids=["began it", "empty before"])
def test_a_host_that_knows_the_start_needs_no_search(head: Head, changes: dict[str, object], start: int) -> None:
    """Everything from there on is news."""
    transcript = follow(head, **changes)
    transcript.look([], [], compacted=False)
    assert transcript.anchored
    assert transcript.left_over()[0].offset >= start
    assert transcript.bytes_read == head.session.transcript.stat().st_size


def test_what_is_not_there_is_told_apart(head: Head) -> None:
    """Missing, no file, replaced."""
    transcript, ids = follow(head), ids_of(head)
    transcript.look(ids, ids, compacted=False)
    content = head.session.transcript.read_bytes()
    head.session.transcript.write_bytes(content[:10])
    assert transcript.look(ids, [], compacted=False) == "replaced"
    assert not transcript.anchored
    head.session.transcript.unlink()
    assert transcript.look(ids, [], compacted=False) == "missing"
    head.session.transcript.mkdir()
    assert transcript.look(ids, [], compacted=False) == "unreadable"
