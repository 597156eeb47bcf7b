"""A message goes to a process once, in order, and is done with only on proof."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import pytest

from ccc_hookspecs import Decision, Deliver, Hold, Injection, Respawn
from ccc_hookspecs.errors import SessionLockTimeout
from ccc_hookspecs.host.errors import HostError, UnknownMessage
from ccc_hookspecs.host.pipe import Pipe
from ccc_hookspecs.host.stream import turn_under_way
from ccc_hookspecs.specs import Host
from ccc_hookspecs.testing.harness import wait_until
from ccc_hookspecs.testing.recording import CapturedSignals
from ccc_hookspecs.testing.simulator import NEWEST
from tests.ccc_hookspecs.host.world import Answering, World, end_process


def retire(ccc: Host, injection: Injection) -> Decision:
    """End the headless as a retiring plugin does, and ask for a fresh one."""
    end_process(injection.headless.pid)
    ccc.released(injection.headless)
    return Respawn(reason="stale", catch_up="what was said elsewhere", catch_up_turns=("11111111-1111-4111-8111-111111111111",))


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
    assert command.state == "queued"
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


@pytest.mark.case("C91")
def test_a_failed_resume_keeps_the_message_with_the_error(world: World) -> None:
    """When the fresh process finds no conversation, the message stays kept, says why, and is tried again when asked for."""
    host = world.host()
    session = world.session(host, "first")
    program = Path(world.claude)
    original = program.read_text("utf-8")
    end_process(world.headless(host, session).pid)
    program.write_text('#!/bin/sh\necho "No conversation found with session ID: $4"\nexit 1\n', "utf-8")
    message = host.send(session.session_id, "second")
    failed = world.until(host, message, "failed")
    assert failed.error == f"No conversation found with session ID: {session.session_id}"
    assert failed.text == "second"
    host.drive(session.session_id)
    assert world.now(host, message).state == "failed"
    program.write_text(original, "utf-8")
    host.push(session.session_id)
    world.answered(host, message)
    assert world.memory(host, session) == ["first", "second"]
    assert world.prompts(session)[1:] == [message.message_id]


def test_a_program_that_cannot_be_started_fails_after_three_tries(world: World) -> None:
    """The message stays kept with an error that says what to do."""
    host = world.host()
    session = host.begin(world.home.project)
    program = Path(world.claude)
    text = program.read_text("utf-8")
    program.chmod(0o600)
    message = host.send(session.session_id, "first")
    failed = world.until(host, message, "failed")
    assert failed.attempts == 3
    assert "--claude" in str(failed.error)
    program.write_text(text, "utf-8")
    program.chmod(0o755)
    host.push(session.session_id)
    world.answered(host, message)
    assert world.memory(host, session) == ["first"]


@pytest.mark.case("C42")
def test_a_session_whose_directory_is_gone_keeps_its_message(world: World) -> None:
    """A fresh process cannot start there; the error names the directory."""
    host = world.host()
    place = world.home.root / "place"
    place.mkdir()
    session = host.begin(place)
    place.rmdir()
    failed = world.until(host, host.send(session.session_id, "first"), "failed")
    assert str(place) in str(failed.error)


def test_a_held_text_waits_and_what_comes_after_it_waits_behind(world: World, captured_signals: CapturedSignals) -> None:
    """A hold keeps the order, is asked about again, is announced once, and says since when."""
    hold = Hold(reason="busy", signs=("turn open",), cost="the turn")
    plugin = Answering(None, hold, hold, hold)
    host = world.host(plugin)
    session = world.session(host, "first")
    held = host.send(session.session_id, "second")
    behind = host.send(session.session_id, "third")
    assert (held.state, behind.state) == ("held", "queued")
    assert held.hold == hold
    since = world.now(host, held).held_since
    assert since is not None
    world.answered(host, world.until(host, behind))
    assert world.prompts(session)[1:] == [held.message_id, behind.message_id]
    announced = captured_signals.of("injection_held")
    assert [(event.message_id, event.hold, event.since) for event in announced] == [(held.message_id, hold, since)]


def test_a_respawn_puts_the_lacking_turns_before_the_text(world: World, captured_signals: CapturedSignals) -> None:
    """The fresh process resumes the session and gets the catch-up as a first block of the same message."""
    plugin = Answering(None, retire)
    host = world.host(plugin)
    session = world.session(host, "first")
    before = world.headless(host, session)
    message = world.answered(host, host.send(session.session_id, "second"))
    after = world.headless(host, session)
    assert after.pid != before.pid
    assert after.resumed is True
    assert world.memory(host, session) == ["first", "what was said elsewhere", "second"]
    record = next(r for r in world.home.records(session.session_id) if r.get("uuid") == message.message_id)
    assert [block["text"] for block in record["message"]["content"]] == ["what was said elsewhere", "second"]
    (event,) = captured_signals.of("headless_respawned")
    assert (event.retired.pid, event.headless.pid, event.message_id) == (before.pid, after.pid, message.message_id)


@pytest.mark.parametrize(("release", "blocks"), [("2.0.42", 1), ("2.1.6", 1), ("2.1.61", 2)])
def test_a_release_that_takes_blocks_apart_gets_one(world: World, release: str, blocks: int) -> None:
    """2.0.42 and 2.1.6 copy what follows a message of two blocks, under new ids, at the next resume; so theirs is one block."""
    world.simulator.release = release
    host = world.host(Answering(None, retire))
    session = host.begin(world.home.project)
    world.until(host, host.send(session.session_id, "first"))
    message = world.until(host, host.send(session.session_id, "second"))
    record = next(r for r in world.home.records(session.session_id) if r.get("uuid") == message.message_id)
    texts = [block["text"] for block in record["message"]["content"]]
    assert len(texts) == blocks
    assert "\n\n".join(texts) == "what was said elsewhere\n\nsecond"


def test_a_fresh_process_is_asked_about_before_its_first_byte_and_may_get_the_lacking_turns(world: World) -> None:
    """When the headless was ended for another reason, the plugin is asked about the fresh one and may deliver with a catch-up."""
    plugin = Answering(None, Deliver(catch_up="what was said elsewhere", catch_up_turns=("11111111-1111-4111-8111-111111111111",)))
    host = world.host(plugin)
    session = world.session(host, "first")
    end_process(world.headless(host, session).pid)
    world.answered(host, host.send(session.session_id, "second"))
    fresh = plugin.asked[-1].headless
    assert (fresh.pid, fresh.sent, fresh.resumed) == (world.headless(host, session).pid, (), True)
    assert world.memory(host, session) == ["first", "what was said elsewhere", "second"]


def test_two_writers_are_never_started(world: World) -> None:
    """A plugin that asks for a fresh process while the old one lives is not obeyed: the text waits."""
    host = world.host(Answering(None, Respawn(reason="wrong")))
    session = world.session(host, "first")
    pid = world.headless(host, session).pid
    held = host.send(session.session_id, "second")
    assert held.state == "held"
    world.answered(host, held)
    assert world.headless(host, session).pid == pid


def test_an_overruling_is_told_to_the_plugin_once(world: World) -> None:
    """A person's act goes with the next question about that message and with no other."""
    hold = Hold(reason="busy", cost="a background task")
    plugin = Answering(None, hold, hold, hold)
    host = world.host(plugin)
    session = world.session(host, "first")
    held = host.send(session.session_id, "second")
    behind = host.send(session.session_id, "third")
    host.overrule(world.now(host, held))
    host.drive(session.session_id)
    world.answered(host, world.until(host, behind))
    assert [injection.overrule for injection in plugin.asked if injection.message_id == held.message_id] == [False, False, True, False]
    assert not any(injection.overrule for injection in plugin.asked if injection.message_id == behind.message_id)


def test_overruling_one_message_does_not_overrule_the_next(world: World) -> None:
    """The first was delivered by the time that a person's word came; the cost of the second was told to nobody."""
    plugin = Answering(None, Hold(reason="busy"), None, *[Hold(reason="busy")] * 50)
    host = world.host(plugin)
    session = world.session(host, "first")
    shown = host.send(session.session_id, "second")
    behind = host.store.outbox.add(session.session_id, "third")
    world.until(host, shown)
    world.until(host, behind, "held")
    host.overrule(shown)
    assert world.now(host, behind).state == "held"
    assert not any(injection.overrule for injection in plugin.asked)


@pytest.mark.parametrize("gone", ["fifo", "log"])
def test_a_process_that_can_take_a_text_no_more_may_be_ended(world: World, gone: str) -> None:
    """Its FIFO was deleted, or its log, which alone would prove a command: the text is held, and says what overruling costs."""
    host = world.host()
    session = world.session(host, "first")
    head = host.agents.known(session.session_id)
    assert head is not None
    (head.fifo if gone == "fifo" else head.log).unlink()
    held = host.send(session.session_id, "second" if gone == "fifo" else "/cost")
    assert held.hold is not None
    assert (held.state, held.hold.cost) == ("held", f"overruling ends process {head.pid} with whatever it does")
    host.drive(session.session_id)
    assert host.agents.known(session.session_id) is not None
    host.overrule(held)
    world.answered(host, held)
    assert world.headless(host, session).pid != head.pid
    assert len(world.prompts(session)) == (2 if gone == "fifo" else 1)


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


@pytest.mark.case("C94")
def test_a_plugin_that_raises_stops_no_message(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """The text is delivered once all the same."""

    def fail(ccc: Host, injection: Injection) -> Decision:
        raise OSError("disk")

    host = world.host(Answering(None, fail))
    session = world.session(host, "first", "second")
    assert world.memory(host, session) == ["first", "second"]
    assert len(world.prompts(session)) == 2


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
