"""What a plugin writes into a headless goes in as a whole, is one of its inputs, and is taken for no message."""

from __future__ import annotations

import json
import os
import signal
import uuid
from dataclasses import replace

import pytest

from ccc_hookspecs import Headless, Injection
from ccc_hookspecs.errors import NotWritten
from ccc_hookspecs.host import pipe as pipes
from ccc_hookspecs.host.host import EmbeddedHost
from ccc_hookspecs.host.pipe import NoReader, Pipe, PipeFull
from ccc_hookspecs.host.records import Head, Session
from ccc_hookspecs.host.stream import Answer, turn_under_way
from ccc_hookspecs.specs import Host
from ccc_hookspecs.testing.harness import Record, wait_until
from tests.ccc_hookspecs.host.crash_driver import HISTORY, Feeding, history
from tests.ccc_hookspecs.host.world import Answering, World, end_process
from tests.ccc_hookspecs.testing.feeding import every_release

SAID = "a4bb1a0a-53b1-4dd1-9d4c-1d9d1a0b6a9e"


def answer(text: str) -> bytes:
    """The line that tells a headless what was answered elsewhere."""
    message = {"id": "msg_0", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": text}]}
    return json.dumps({"type": "assistant", "uuid": SAID, "parent_tool_use_id": None, "message": message}).encode() + b"\n"


def head_of(host: EmbeddedHost, session: Session) -> Head:
    head = host.agents.known(session.session_id)
    assert head is not None
    return head


def write(world: World, host: EmbeddedHost, session: Session, *lines: bytes) -> None:
    """Write lines as a plugin does on a tick."""
    with host.session_lock(session.session_id, 5):
        for line in lines:
            host.write(world.headless(host, session), line)


def marked(headless: Headless) -> list[tuple[str, bool]]:
    return [(one.message_id, one.history) for one in headless.sent or ()]


def results(world: World, host: EmbeddedHost, session: Session) -> list[Record]:
    return [event for event in world.log(host, session) if event["type"] == "result"]


def acknowledged(world: World, host: EmbeddedHost, session: Session, count: int) -> None:
    wait_until(lambda: len(results(world, host, session)) == count, f"{count} results")


def test_the_embedded_host_is_a_host(world: World) -> None:
    """It offers all that the contract promises."""
    assert isinstance(world.host(), Host)


@every_release
def test_a_running_headless_is_given_history(world: World, release: str) -> None:
    """It knows it from then on, each line is an input of its own kind, and nothing of it is a message."""
    world.simulator.release = release
    host = world.host()
    session = world.session(host, "first")
    pid = world.headless(host, session).pid
    write(world, host, session, history("from elsewhere"), answer("what was said"))
    acknowledged(world, host, session, 2)
    assert turn_under_way(head_of(host, session).log) is False
    message = world.answered(host, host.send(session.session_id, "second"))
    assert world.memory(host, session) == ["first", "from elsewhere", "second"]
    headless = world.headless(host, session)
    assert headless.pid == pid
    assert marked(headless)[1:] == [(HISTORY, True), (SAID, True), (message.message_id, False)]
    assert host.headless_agents() == (headless,)
    assert host.store.outbox.open_of(session.session_id) == ()


@every_release
def test_a_text_behind_history_is_answered_with_its_own_answer(world: World, release: str) -> None:
    """Also when the plugin did not wait: the result of the history proves nothing, and ends no wait."""
    world.simulator.release = release
    host = world.host(Feeding())
    session = world.session(host, "first")
    pid = world.headless(host, session).pid
    os.kill(pid, signal.SIGSTOP)
    message = host.send(session.session_id, "fed second")
    os.kill(pid, signal.SIGCONT)
    acknowledged(world, host, session, 3)
    message = world.until(host, message)
    follow = Answer(message.message_id, head_of(host, session).log, message.log_offset)
    wait_until(lambda: (follow.poll(delivered=True), follow.done)[1], "the end of the answer")
    assert follow.parts == ['SEEN ["first", "from elsewhere", "fed second"]']


@every_release
def test_history_within_a_turn_leaves_that_turn_alone(world: World, release: str) -> None:
    """The turn goes on, and is over when both results are there."""
    world.simulator.release = release
    host = world.host()
    session = world.session(host, "first")
    slow = world.until(host, host.send(session.session_id, "SLOW 1"))
    write(world, host, session, history("from elsewhere"))
    log = head_of(host, session).log
    assert turn_under_way(log, slow.log_offset) is True
    acknowledged(world, host, session, 3)
    assert turn_under_way(log, slow.log_offset) is False
    assert world.now(host, slow).state == "delivered"


@pytest.mark.parametrize("release", ["2.1.119", "2.1.168"])
def test_a_command_waits_until_history_before_it_was_taken(world: World, release: str) -> None:
    """No id is left of it there, so that the result of the history would be taken for its own."""
    world.simulator.release = release
    host = world.host(Answering(None, lambda ccc, injection: ccc.write(injection.headless, history("from elsewhere"))))
    session = world.session(host, "first")
    pid = world.headless(host, session).pid
    os.kill(pid, signal.SIGSTOP)
    command = host.send(session.session_id, "/cost")
    assert (command.state, command.own_hold, command.hold and command.hold.lingering) == ("held", True, False)
    os.kill(pid, signal.SIGCONT)
    acknowledged(world, host, session, 2)
    world.answered(host, command)
    assert len(results(world, host, session)) == 3
    assert marked(world.headless(host, session))[1:] == [(HISTORY, True), (command.message_id, False)]


@pytest.mark.parametrize("release", ["2.1.119", "2.1.168"])
def test_a_command_does_not_wait_for_what_has_no_result(world: World, release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer has none, and neither has what the process knew; the latter is waited for a while."""
    world.simulator.release = release
    host = world.host()
    session = world.session(host, "first")
    write(world, host, session, answer("what was said"))
    world.answered(host, host.send(session.session_id, "/cost"))
    (known, *_) = world.prompts(session)
    monkeypatch.setattr("ccc_hookspecs.host.delivery._FED_SECONDS", 1.0)
    with host.store.database.writing() as db:
        db.execute("DELETE FROM inputs WHERE message_id = ?", (known,))
    write(world, host, session, history("first", known))
    command = host.send(session.session_id, "/cost")
    assert command.state == "held"
    world.answered(host, command)


def test_a_repeated_line_is_one_input(world: World) -> None:
    """It is written again, which the process passes over, and keeps its place and its kind."""
    host = world.host()
    session = world.session(host, "first")
    [first] = world.headless(host, session).sent or ()
    write(world, host, session, history("one"), history("one"), history("first", first.message_id), answer("said"))
    assert marked(world.headless(host, session)) == [(first.message_id, False), (HISTORY, True), (SAID, True)]
    world.answered(host, host.send(session.session_id, "second"))
    assert world.memory(host, session) == ["first", "one", "second"]


def test_a_control_request_is_written_and_is_no_input(world: World) -> None:
    """The process answers it."""
    host = world.host()
    session = world.session(host, "first")
    before = world.headless(host, session).sent
    request = {"type": "control_request", "request_id": str(uuid.uuid4()), "request": {"subtype": "initialize"}}
    write(world, host, session, json.dumps(request).encode() + b"\n")
    wait_until(lambda: world.log(host, session)[-1]["type"] == "control_response", "an answer")
    assert world.headless(host, session).sent == before


@pytest.mark.case("C74")
@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"{}",
        b"{\n}\n",
        b"[1]\n",
        b'{"type": "user"\n',
        pytest.param(b"[" * 200_000 + b"\n", id="deep"),
        history("\xff").replace(b"\\u00ff", b"\xff"),
        history("x") * 2,
    ],
)
def test_a_line_that_claude_would_end_at_is_not_written(world: World, line: bytes) -> None:
    """It is no line, or no JSON object."""
    host = world.host()
    session = world.session(host, "first")
    with pytest.raises(NotWritten) as error:
        write(world, host, session, line)
    assert error.value.session_id == session.session_id
    world.answered(host, host.send(session.session_id, "second"))
    assert world.memory(host, session) == ["first", "second"]


@pytest.mark.case("C59")
def test_only_the_session_s_own_headless_is_written_to(world: World) -> None:
    """Not another process with its pid, another session's, or one that is gone."""
    host = world.host()
    session = world.session(host, "first")
    headless = world.headless(host, session)
    others = [
        replace(headless, pid=headless.pid + 1),
        replace(headless, start_time=1.0),
        replace(headless, start_time=None),
        replace(headless, session_id=str(uuid.uuid4())),
    ]
    for other in others:
        with pytest.raises(NotWritten, match="is not the session's headless"), host.session_lock(session.session_id, 5):
            host.write(other, history("x"))
    assert marked(world.headless(host, session)) == marked(headless)
    end_process(headless.pid)
    with pytest.raises(NotWritten, match="is not the session's headless"):
        host.write(headless, history("x"))


@pytest.mark.case("C74")
@pytest.mark.parametrize("error", [NoReader("nobody reads it"), PipeFull("the process does not read"), OSError(5, "broken")], ids=repr)
def test_what_was_refused_is_no_input(world: World, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it reached the process, unless that is not known; what was an input before stays one."""
    host = world.host()
    session = world.session(host, "first")
    write(world, host, session, history("one"))
    before = marked(world.headless(host, session))

    def fail(pipe: Pipe, line: bytes) -> None:
        raise error

    monkeypatch.setattr(Pipe, "write", fail)
    for line, noted in ((history("one"), []), (answer("said"), [] if not isinstance(error, OSError) else [(SAID, True)])):
        with pytest.raises(NotWritten) as caught:
            write(world, host, session, line)
        assert caught.value.reason == str(error)
        assert marked(world.headless(host, session)) == before + noted
    assert not head_of(host, session).jammed


@pytest.mark.case("C74")
def test_without_a_fifo_nothing_is_written(world: World) -> None:
    """Nor when it cannot be opened."""
    host = world.host()
    session = world.session(host, "first")
    before, fifo = world.headless(host, session).sent, head_of(host, session).fifo
    fifo.unlink()
    with pytest.raises(NotWritten, match="nobody reads it"):
        write(world, host, session, history("one"))
    fifo.mkdir()
    with pytest.raises(NotWritten, match=f"{fifo}: "):
        write(world, host, session, history("one"))
    assert world.headless(host, session).sent == before


def test_a_line_larger_than_any_pipe_arrives(world: World) -> None:
    """It is completed as it is read."""
    host = world.host()
    session = world.session(host, "first")
    text = "very long " * 500_000
    write(world, host, session, history(text), history("after", str(uuid.uuid4())))
    assert not head_of(host, session).jammed
    acknowledged(world, host, session, 3)
    assert text in [
        record["message"]["content"][0]["text"] for record in world.home.records(session.session_id) if record["type"] == "user"
    ]


@pytest.mark.case("C74")
def test_half_a_line_keeps_everything_else_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the very text before which the plugin wrote it; it may have been taken, so it stays an input."""
    monkeypatch.setattr(pipes, "FINISH_SECONDS", 0.05)
    told: list[NotWritten] = []

    def feed(ccc: Host, injection: Injection) -> None:
        with pytest.raises(NotWritten) as error:
            ccc.write(injection.headless, history("long " * 2_000_000))
        told.append(error.value)

    host = world.host(Answering(None, feed))
    session = world.session(host, "first")
    pid = world.headless(host, session).pid
    os.kill(pid, signal.SIGSTOP)
    message = host.send(session.session_id, "second")
    assert "stopped reading after" in told[0].reason
    assert (message.state, message.hold and message.hold.signs) == ("held", ("half a line in its FIFO",))
    assert marked(world.headless(host, session))[1:] == [(HISTORY, True)]
    with pytest.raises(NotWritten, match="half of an earlier line"):
        write(world, host, session, history("short"))
    os.killpg(pid, signal.SIGKILL)
    world.answered(host, message)
    assert world.memory(host, session) == ["first", "second"]


def test_a_delivery_proves_nothing_of_another_line(world: World) -> None:
    """A host was killed in the middle of history behind a message: that arrives, and the half is still there."""
    host = world.host()
    session = world.session(host, "first")
    head = head_of(host, session)
    os.kill(head.pid or 0, signal.SIGSTOP)
    message = host.send(session.session_id, "second")
    host.store.heads.jam(head.id, True, HISTORY)
    os.kill(head.pid or 0, signal.SIGCONT)
    world.answered(host, message)
    assert head_of(host, session).jammed
    assert host.send(session.session_id, "third").state == "held"
    host.store.heads.jam(head.id, True, message.message_id)
    host.store.heads.jam(head.id, False)
    assert head_of(host, session).jammed_by is None


def test_a_line_that_is_no_input_jams_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of a long control request is as bad."""
    monkeypatch.setattr(pipes, "FINISH_SECONDS", 0.05)
    host = world.host()
    session = world.session(host, "first")
    os.kill(world.headless(host, session).pid, signal.SIGSTOP)
    request = {"type": "control_request", "request_id": "1", "request": {"subtype": "x" * 5_000_000}}
    with pytest.raises(NotWritten):
        write(world, host, session, json.dumps(request).encode() + b"\n")
    assert head_of(host, session).jammed_by == "no input"
    os.kill(world.headless(host, session).pid, signal.SIGCONT)
