"""From where on a transcript's records are news to a headless, found from the end of a file of any size."""

from __future__ import annotations

from pathlib import Path

import pytest

from ccc_plugins.retire_stale.evidence.anchor import by_own_records, by_size, by_time, find_first_record, find_record
from tests.retire_stale.builders import Head, Session, new_id, said


@pytest.fixture(params=[False, True], ids=["compact", "spaced"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Session:
    """A session with a turn of a headless and one of a terminal."""
    made = Session(tmp_path, spaced=request.param)
    Head(made).ask("first")
    made.turn()
    return made


def end_of(session: Session, uuid: str) -> int:
    """The position behind the line of that record."""
    position = 0
    for line in session.transcript.read_bytes().splitlines(keepends=True):
        position += len(line)
        if f'"{uuid}"'.encode() in line and b'"parentUuid"' in line and line.rfind(uuid.encode()) > line.find(b"message"):
            return position
    raise AssertionError(uuid)


def test_the_first_own_record_names_what_was_loaded(session: Session) -> None:
    """News begin behind the last answer above it, whatever stands between."""
    loaded = session.last
    assert loaded is not None
    start = end_of(session, loaded)
    head = Head(session, resumed=True)
    session.attachment(loaded, "skill_listing")
    asked, answered = head.ask()
    for ids in ([asked["uuid"]], [answered["uuid"]], [answered["message"]["id"]], [new_id(), answered["uuid"], asked["uuid"]]):
        anchor = by_own_records(str(session.transcript), ids, thorough=False)
        assert anchor is not None
        assert anchor.start == start
        assert anchor.first_own is not None


def test_a_session_of_its_own_is_news_from_the_beginning(tmp_path: Path) -> None:
    """Its first record has no parent."""
    session = Session(tmp_path)
    asked, _ = Head(session).ask()
    anchor = by_own_records(str(session.transcript), [asked["uuid"]], thorough=False)
    assert anchor is not None
    assert anchor.start == 0


@pytest.mark.parametrize("thorough", [True, False])
def test_without_own_records_there_is_nothing_to_go_by(session: Session, thorough: bool) -> None:
    """Nor when their chain breaks off."""
    assert by_own_records(str(session.transcript), [new_id()], thorough=thorough) is None
    assert by_own_records(str(session.transcript), [], thorough=thorough) is None
    orphan = session.user(new_id(), [said("x")], "sdk-cli")
    assert by_own_records(str(session.transcript), [orphan["uuid"]], thorough=thorough) is None
    assert by_own_records(str(session.folder / "nowhere"), ["x"], thorough=thorough) is None


def test_a_chain_that_bites_its_tail_ends(tmp_path: Path) -> None:
    """A record that is its own grandparent is no chain."""
    session = Session(tmp_path)
    one, two = new_id(), new_id()
    session.user(two, "a", uuid=one)
    session.user(one, "b", uuid=two)
    assert by_own_records(str(session.transcript), [two], thorough=True) is None


@pytest.mark.parametrize("thorough", [True, False])
def test_of_copies_the_first_counts(session: Session, thorough: bool) -> None:
    """A compaction, its own or another's, appends history anew."""
    head = Head(session, resumed=True)
    start = session.transcript.stat().st_size
    records = [record for turn in range(3) for record in head.ask(f"turn {turn}")]
    for record in records:
        session.write(record)
    anchor = by_own_records(str(session.transcript), [records[0]["uuid"], records[1]["uuid"]], thorough=thorough)
    assert anchor is not None
    assert anchor.first_own is not None
    assert start <= anchor.first_own < start + len(session.dump(records[0])) + 400


def test_mentions_of_an_id_are_not_its_record(session: Session) -> None:
    """A child names its parent, a trailer its leaf, a text whatever it likes."""
    asked, answered = Head(session, resumed=True).ask()
    session.user(answered["uuid"], f"about {asked['uuid']} and {asked['uuid']}")
    session.trailer("last-prompt", leafUuid=asked["uuid"])
    found = find_record(str(session.transcript), asked["uuid"])
    first = find_first_record(str(session.transcript), asked["uuid"])
    assert found is not None
    assert found[0] == first
    assert found[0].uuid == asked["uuid"]
    assert find_record(str(session.transcript), asked["uuid"], end=found[1]) is None
    behind = session.transcript.read_bytes().index(b"\n", found[1]) + 1
    assert find_first_record(str(session.transcript), asked["uuid"], start=behind) is None


def test_by_time_is_behind_what_was_stamped_before(session: Session) -> None:
    """Records without a stamp decide nothing, and a file without any is news as a whole."""
    end = session.transcript.stat().st_size
    session.trailer("mode", mode="normal")
    spawned = session.tick()
    session.turn()
    assert by_time(str(session.transcript), spawned).start == end
    assert by_time(str(session.transcript), 0.0).start == 0
    assert by_time(str(session.folder / "nowhere"), spawned).start == 0


def test_by_size_is_at_the_beginning_of_a_line(session: Session) -> None:
    """Where the noted size ends within one, that one is news."""
    content = session.transcript.read_bytes()
    lines = content.splitlines(keepends=True)
    assert by_size(str(session.transcript), len(content)).start == len(content)
    assert by_size(str(session.transcript), len(content) - 5).start == len(content) - len(lines[-1])
    assert by_size(str(session.transcript), 5).start == 0
    assert by_size(str(session.transcript), 0).start == 0
