"""A message goes to a process once, in order, and is done with only on proof."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import threading

import pytest

from ccc_hookspecs import Hold, Injection
from ccc_hookspecs.errors import SessionLockTimeout
from ccc_hookspecs.host.errors import HostError, UnknownMessage
from ccc_hookspecs.host.pipe import Pipe
from ccc_hookspecs.host.stream import turn_under_way
from ccc_hookspecs.specs import Host
from ccc_hookspecs.testing.harness import wait_until
from ccc_hookspecs.testing.simulator import NEWEST
from tests.ccc_hookspecs.host.world import Answering, World, end_process


@pytest.mark.case("C45")
def test_the_first_prompt_begins_the_session(world: World) -> None:
    """A session that has no transcript yet is begun under the id it was given, and the prompt is there once."""
    host = world.host()
    session = world.session(host, "first")
    assert world.memory(host, session) == ["first"]
    assert world.headless(host, session).resumed is False
    assert len(world.prompts(session)) == 1


def test_with_nobody_else_nothing_changes(world: World) -> None:
    """Ten texts go to the same process, each with one write, in order."""
    host = world.host()
    session = world.session(host, "text 0")
    before = world.headless(host, session)
    sent = [host.send(session.session_id, f"text {number}") for number in range(1, 10)]
    world.answered(host, sent[-1])
    assert world.memory(host, session) == [f"text {number}" for number in range(10)]
    assert world.headless(host, session).pid == before.pid
    assert world.prompts(session)[1:] == [message.message_id for message in sent]
    assert len(host.store.journal.entries(what="spawned")) == 1


def test_texts_sent_during_a_turn_stay_apart_and_in_order(world: World) -> None:
    """Claude Code takes inputs that wait in it together into one record; so each is written when the one before was taken."""
    host = world.host()
    session = world.session(host, "first")
    busy = host.send(session.session_id, "SLOW 1")
    sent = [host.send(session.session_id, f"text {number}") for number in range(3)]
    world.answered(host, sent[-1])
    assert world.prompts(session)[1:] == [message.message_id for message in (busy, *sent)]


@pytest.mark.parametrize("release", ["2.1.119", "2.1.168", "2.1.216", NEWEST])
@pytest.mark.parametrize("text", ["/compact", "/home/me/app.py fails"])
def test_a_text_like_a_command_is_not_lost_with_a_process_that_never_read_it(world: World, release: str, text: str) -> None:
    """Sent in the middle of a turn, it is not proven by that turn's result: when the process ends with it, the next one gets it."""
    world.simulator.release = release
    host = world.host()
    session = world.session(host, "first")
    slow = world.until(host, host.send(session.session_id, "SLOW 1"))
    head = host.agents.known(session.session_id)
    assert head is not None
    os.kill(head.pid or 0, signal.SIGSTOP)
    message = host.send(session.session_id, text)
    with head.log.open("a") as log:
        names = {} if release < "2.1.216" else {"user_message_uuid": slow.message_id}
        print(json.dumps({"type": "result", "subtype": "success", "session_id": session.session_id, **names}), file=log)
    host.drive(session.session_id)
    os.killpg(head.pid or 0, signal.SIGKILL)
    end = world.until(host, message)
    assert end.head_id != head.id


@pytest.mark.parametrize("release", ["2.1.119", "2.1.168"])
def test_a_command_waits_for_the_end_of_a_turn_where_no_id_is_left_of_it(world: World, release: str) -> None:
    """Also for a turn that is to come: the process took its message and has printed nothing of it yet."""
    world.simulator.release = release
    host = world.host()
    session = world.session(host, "first")
    slow = world.until(host, host.send(session.session_id, "SLOW 1"))
    command = host.send(session.session_id, "/cost")
    assert (command.state, command.hold and command.hold.lingering) == ("held", False)
    head = host.agents.known(session.session_id)
    assert head is not None
    printed = head.log.read_bytes()
    results = world.answered(host, command).log_offset
    assert b'"result"' in head.log.read_bytes()[len(printed) : results]
    assert turn_under_way(head.log, slow.log_offset) is False
    assert turn_under_way(head.log, head.log.stat().st_size) is True


@pytest.mark.case("C77")
def test_any_text_is_kept_as_it_is(world: World) -> None:
    """A lone surrogate, a NUL and line breaks survive the outbox."""
    host = world.host(Answering(Hold(reason="wait")))
    session = host.begin(world.home.project)
    message = host.send(session.session_id, "a\ud800b\x00c\r\nd\u2028e")
    assert world.now(host, message).text == "a\ud800b\x00c\r\nd\u2028e"


@pytest.mark.case("C77")
def test_half_a_surrogate_pair_does_not_end_the_session(world: World) -> None:
    """Releases up to 2.1.168 would send it on, and the Messages API would refuse every later turn too."""
    world.simulator.release = "2.1.168"
    host = world.host()
    session = world.session(host, "first \udcff")
    world.answered(host, host.send(session.session_id, "second"))
    assert world.memory(host, session) == ["first \ufffd", "second"]


@pytest.mark.case("C75", "C78")
def test_what_a_process_did_not_take_before_it_died_goes_to_the_next_under_the_same_id(world: World) -> None:
    """A message that lay unread in the FIFO of a process that died is there exactly once afterwards."""
    host = world.host()
    session = world.session(host, "first")
    pid = world.headless(host, session).pid
    os.kill(pid, signal.SIGSTOP)
    message = host.send(session.session_id, "second")
    assert message.state == "written"
    os.killpg(pid, signal.SIGKILL)
    world.answered(host, message)
    assert world.prompts(session)[1:] == [message.message_id]
    assert world.memory(host, session) == ["first", "second"]
    assert world.headless(host, session).pid != pid


@pytest.mark.case("C74")
def test_a_write_that_succeeded_is_no_delivery(world: World) -> None:
    """What a stopped process has in its pipe stays owed until the process shows that it has it."""
    host = world.host()
    session = world.session(host, "first")
    pid = world.headless(host, session).pid
    os.kill(pid, signal.SIGSTOP)
    message = host.send(session.session_id, "second")
    for _ in range(3):
        host.drive(session.session_id)
    assert world.now(host, message).state == "written"
    os.kill(pid, signal.SIGCONT)
    assert world.until(host, message).proof is not None
    assert world.headless(host, session).pid == pid


def test_nothing_is_written_again_while_what_may_prove_it_cannot_be_read(world: World) -> None:
    """The process took the message and is gone; until its log or the transcript shows that, there is no second try."""
    host = world.host()
    session = world.session(host, "first")
    head = host.agents.known(session.session_id)
    assert head is not None
    transcript = world.home.transcript(session.session_id)
    os.kill(head.pid or 0, signal.SIGSTOP)
    message = host.send(session.session_id, "second")
    os.kill(head.pid or 0, signal.SIGCONT)
    wait_until(lambda: message.message_id.encode() in transcript.read_bytes(), "a record")
    end_process(head.pid or 0)
    kept = transcript.rename(transcript.with_suffix(".kept"))
    log = head.log.rename(head.log.with_suffix(".kept"))
    head.log.mkdir()
    with pytest.raises(HostError, match="cannot be read"):
        host.drive(session.session_id)
    assert (world.now(host, message).state, host.headless_for(session.session_id)) == ("written", None)
    head.log.rmdir()
    log.rename(head.log)
    kept.rename(transcript)
    assert world.until(host, message).attempts == 0


def test_a_line_that_arrived_as_a_whole_does_not_keep_the_next_out(world: World) -> None:
    """A host was killed after its last byte and before that was noted; the delivery proves that nothing is half there."""
    host = world.host()
    session = world.session(host, "first")
    head = host.agents.known(session.session_id)
    assert head is not None
    os.kill(head.pid or 0, signal.SIGSTOP)
    message = host.send(session.session_id, "second")
    host.store.heads.jam(head.id, True)
    os.kill(head.pid or 0, signal.SIGCONT)
    world.answered(host, message)
    world.answered(host, host.send(session.session_id, "third"))
    assert world.headless(host, session).pid == head.pid


def test_a_message_is_not_dropped_while_another_process_is_at_it(world: World) -> None:
    """A plugin is being asked about it: whoever drops it waits for that, and finds it given to a process."""
    asked, go = threading.Event(), threading.Event()

    def slow(ccc: Host, injection: Injection) -> None:
        asked.set()
        go.wait(60)

    host, other = world.host(Answering(None, slow)), world.host()
    session = world.session(host, "first")
    message = host.store.outbox.add(session.session_id, "second")
    driving = threading.Thread(target=host.drive, args=(session.session_id,))
    driving.start()
    asked.wait(60)
    with pytest.raises(SessionLockTimeout):
        other.drop(message.message_id, lock_seconds=0.05)
    go.set()
    driving.join(60)
    assert world.answered(host, message).state == "delivered"
    with pytest.raises(UnknownMessage):
        other.drop(message.message_id)
    waiting = host.store.outbox.add(session.session_id, "third")
    assert other.drop(waiting.message_id[:8]) == waiting


@pytest.mark.parametrize("release", ["2.1.6", None], ids=["of one that keeps no record", "not known yet"])
def test_a_text_waits_for_the_end_of_a_turn_that_would_leave_no_trace_of_it(world: World, release: str | None) -> None:
    """Until a headless has said of which release it is, it may be of one that keeps no record of a text in the middle of a turn."""
    host = world.host()
    session = world.session(host, "first")
    busy = host.send(session.session_id, "RUN: sleep 2")
    world.until(host, busy)
    head = host.agents.known(session.session_id)
    assert head is not None
    with contextlib.closing(sqlite3.connect(host.state_dir / "host.sqlite3")) as db, db:
        db.execute("UPDATE headless SET release = ? WHERE id = ?", (release, head.id))
    message = host.send(session.session_id, "second")
    assert message.hold is not None
    assert (message.state, message.hold.signs) == ("held", (f"process {head.pid}",))
    world.answered(host, message)
    assert world.memory(host, session) == ["first", "RUN: sleep 2", "second"]


def test_half_a_message_keeps_everything_else_out_of_that_process(world: World) -> None:
    """A process that a killed host left with half a line gets nothing more; a person may end it, then all arrive once."""
    host = world.host()
    session = world.session(host, "first")
    head = host.agents.known(session.session_id)
    assert head is not None
    lost = host.store.outbox.add(session.session_id, "second")
    host.store.outbox.intend(lost, head, log_offset=head.log.stat().st_size, transcript_offset=0)
    host.store.heads.jam(head.id, True)
    pipe = Pipe(head.fifo)
    pipe.write(b'{"type":"user","uuid":"')
    pipe.close()
    for _ in range(3):
        host.drive(session.session_id)
    assert host.agents.known(session.session_id) == host.store.heads.get(head.id)
    assert world.now(host, lost).state == "written"
    end_process(head.pid or 0)
    world.answered(host, world.until(host, lost))
    assert world.prompts(session)[1:] == [lost.message_id]


def test_the_outbox_forgets_the_text_of_what_was_delivered(world: World) -> None:
    """Once its delivery is proven, a text is in the transcript and nowhere in the state directory's tables."""
    host = world.host()
    session = world.session(host, "a very particular text")
    assert host.store.outbox.open_of(session.session_id) == ()
    with host.store.database.reading() as db:
        assert [bytes(row["text"]) for row in db.execute("SELECT text FROM outbox")] == [b""]
    assert "particular" not in json.dumps([entry.detail for entry in host.store.journal.entries()])
