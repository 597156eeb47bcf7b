"""How a command that waits for an answer ends when there is none to wait for."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import threading
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from ccc_hookspecs.host import talking
from ccc_hookspecs.host.commands import command_line
from ccc_hookspecs.host.errors import ExitCode
from ccc_hookspecs.host.host import EmbeddedHost
from ccc_hookspecs.host.output import Output
from ccc_hookspecs.host.records import Session
from ccc_hookspecs.host.stopping import Stop
from ccc_hookspecs.host.waiting import Wait
from ccc_hookspecs.testing.harness import wait_until
from tests.ccc_hookspecs.host.world import CCC_HOST, World, end_process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupting_never_loses_the_text(world: World, number: signal.Signals) -> None:
    """The command says where the message stands, and the next one takes it on."""
    session = world.started()
    world.run("send", session.session_id, "SLOW 90", "--no-wait")
    waiting = world.popen("send", session.session_id, "second")
    host = world.host()
    wait_until(lambda: any(message.text == "second" for message in host.store.outbox.open_of(session.session_id)), "kept")
    waiting.send_signal(number)
    _, told = waiting.communicate(timeout=60)
    assert waiting.returncode == ExitCode.INTERRUPTED
    (message,) = [message for message in host.store.outbox.open_of(session.session_id) if message.text == "second"]
    assert message.message_id in told
    end_process(world.headless(host, session).pid)
    done = world.run("send", session.session_id)
    assert done.returncode == 0
    assert world.prompts(session)[-1] == message.message_id


def test_a_failed_turn_has_its_own_exit_code(world: World) -> None:
    session = world.started()
    done = world.run("send", session.session_id, "FAIL400")
    assert done.returncode == ExitCode.TURN_FAILED
    assert "the turn failed" in done.stderr


def test_a_process_that_dies_in_the_turn_is_told(world: World) -> None:
    """The message was taken, so it is not sent again; the error says what to do."""
    session = world.started()
    done = world.run("send", session.session_id, "CRASH")
    assert done.returncode == ExitCode.CLAUDE
    assert "ended before it answered" in done.stderr
    assert len(world.prompts(session)) == 2


def test_a_text_behind_one_that_failed_tells_which(world: World) -> None:
    """It waits for what a person alone can undo, so the command ends, and names the message that is in the way."""
    session = world.started()
    host = world.host()
    end_process(world.headless(host, session).pid)
    first = world.run("--claude", "/bin/false", "send", session.session_id, "second")
    done = world.run("--claude", "/bin/false", "send", session.session_id, "third")
    assert (first.returncode, done.returncode) == (ExitCode.CLAUDE, ExitCode.CLAUDE)
    failed, behind = host.store.outbox.open_of(session.session_id)
    assert re.fullmatch(f"ccc-host: message {behind.message_id} is kept behind message {failed.message_id}: .+", told(done))
    ended = world.run("--json", "--claude", "/bin/false", "send", session.session_id)
    assert (ended.returncode, json.loads(ended.stdout)["blocked_by"]["message_id"]) == (ExitCode.CLAUDE, failed.message_id)
    assert world.run("send", session.session_id).returncode == 0
    assert world.prompts(session)[1:] == [failed.message_id, behind.message_id]


def told(done: subprocess.CompletedProcess[str]) -> str:
    """The line that a command ended with."""
    return done.stderr.splitlines()[-1]


def test_a_process_that_cannot_be_started_is_not_waited_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for minutes: the command ends with what is wrong, and the text goes on being tried; one behind it names it."""
    monkeypatch.setattr("ccc_hookspecs.host.waiting.START_SECONDS", 0.2)
    host, session = world.host(), world.resumable()
    program = Path(world.claude)
    kept = program.rename(program.with_suffix(".away"))
    first, behind = (host.send(session.session_id, text) for text in ("second", "third"))
    for message in (first, behind):
        outcome = Wait(host, message, Stop(), lambda text: None, lambda status: None).run()
        assert (outcome.ending, outcome.blocking and outcome.blocking.message_id) == ("unstarted", first.message_id)
    output = Output(as_json=False)
    assert talking.see_through(host, output, behind, Stop()) == ExitCode.CLAUDE
    kept.rename(program)
    world.answered(host, world.until(host, behind))


def test_an_answer_whose_log_is_gone_is_not_waited_for(world: World) -> None:
    """The text was delivered, as the transcript shows; the command says that it cannot show the answer."""
    session = world.started()
    host = world.host()
    waiting = world.popen("send", session.session_id, "SLOW 3")
    wait_until(lambda: len(world.prompts(session)) == 2, "taken")
    head = host.agents.known(session.session_id)
    assert head is not None
    head.log.unlink()
    _, said = waiting.communicate(timeout=60)
    assert (waiting.returncode, "log of the process is gone" in said) == (ExitCode.FAILED, True)


def test_a_session_that_another_process_is_at_all_the_while_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text is kept, and the wait for it ends."""
    monkeypatch.setattr("ccc_hookspecs.host.waiting.LOCK_SECONDS", 0.2)
    host, other = world.host(), world.host()
    session = world.session(host, "first")
    message = host.store.outbox.add(session.session_id, "second")
    outcomes: list[ExitCode] = []
    waits = threading.Thread(target=lambda: outcomes.append(talking.see_through(host, Output(as_json=False), message, Stop())), daemon=True)
    with other.session_lock(session.session_id, 5):
        waits.start()
        waits.join(60)
    assert outcomes == [ExitCode.LOCKED]
    assert world.now(host, message).state == "queued"


def test_a_terminal_that_cannot_be_opened_leaves_the_headless_alone(world: World) -> None:
    """The program or the session's directory is gone: the command says so before any plugin hears of a terminal."""
    host = world.host()
    place = world.home.root / "place"
    place.mkdir()
    session = host.begin(place)
    world.answered(host, host.send(session.session_id, "first"))
    for claude, away in (("/nowhere/claude", place), (world.claude, place.with_name("away"))):
        place.rename(away)
        done = world.run("--claude", claude, "terminal", session.session_id)
        assert (done.returncode, done.stderr.count("\n")) == (ExitCode.CLAUDE, 1)
        away.rename(place)
    assert host.headless_for(session.session_id) is not None


def test_breaking_off_never_breaks_into_a_retirement(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What plugins do before a terminal opens is done to its end; then there is no terminal."""
    session = world.session(world.host(), "first")
    told: list[str] = []

    def launch(host: EmbeddedHost, session: Session) -> tuple[list[str], dict[str, str]]:
        os.kill(os.getpid(), signal.SIGINT)
        told.append("retired")
        return ["/bin/false"], {}

    monkeypatch.setattr(EmbeddedHost, "launch_terminal", launch)
    done = CliRunner().invoke(command_line, ["--state", str(world.state), "terminal", session.session_id])
    assert (done.exit_code, told) == (ExitCode.INTERRUPTED, ["retired"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_breaking_off_while_a_text_is_read_has_its_exit_code(world: World, number: signal.Signals) -> None:
    """Nothing was kept."""
    session = world.started()
    command = [*CCC_HOST, "send", session.session_id, "-"]
    reading, writing = os.pipe()
    process = subprocess.Popen(command, env=world.environ(), stdin=reading, stderr=subprocess.PIPE, text=True)
    os.close(reading)
    os.write(writing, b"x" * 65536)
    # It has begun to read when there is room in the pipe again, and waits for more when it sleeps.
    select.select([], [writing], [], 60)
    wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_SLEEPING, "it waits for more")
    process.send_signal(number)
    assert (process.communicate(timeout=60)[1], process.returncode) == ("", ExitCode.INTERRUPTED)
    os.close(writing)
    assert world.host().store.outbox.open() == ()
