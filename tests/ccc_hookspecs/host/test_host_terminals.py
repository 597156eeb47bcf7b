"""While a terminal has a session open, texts go to it, or wait and say so."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ccc_hookspecs.host.errors import HostError
from ccc_hookspecs.host.terminals import Terminal, terminal_on
from ccc_hookspecs.processes import start_time
from ccc_hookspecs.testing.recording import CapturedSignals
from tests.ccc_hookspecs.host.world import Answering, World


def test_a_text_waits_for_a_terminal_outside_tmux(world: World, captured_signals: CapturedSignals) -> None:
    """It says which, and is delivered in order once the terminal has gone, to a process that knows its turns."""
    session = world.resumable()
    terminal = world.simulator.terminal(session.session_id)
    terminal.ask("from the terminal")
    host = world.host()
    held = host.send(session.session_id, "second")
    assert held.hold is not None
    assert f"process {terminal.pid}" in held.hold.signs
    assert [event.message_id for event in captured_signals.of("injection_held")] == [held.message_id]
    terminal.exit()
    world.answered(host, held)
    assert world.memory(host, session) == ["first", "from the terminal", "second"]


@pytest.mark.case("C47")
def test_a_registry_record_alone_is_no_terminal(world: World) -> None:
    """One left behind by a process that is gone, or whose pid is another's by now, holds nothing up."""
    session = world.resumable()
    terminal = world.simulator.terminal(session.session_id)
    record = (world.home.config_dir / "sessions" / f"{terminal.pid}.json").read_text()
    terminal.kill()
    (world.home.config_dir / "sessions" / f"{terminal.pid}.json").write_text(record)
    assert terminal_on(session) is None
    own = record.replace(f'"pid":{terminal.pid}', f'"pid":{os.getpid()}')
    (world.home.config_dir / "sessions" / f"{os.getpid()}.json").write_text(own)
    assert terminal_on(session) is None


def test_a_headless_is_no_terminal(world: World) -> None:
    """It is in the registry too, and is told apart by how it was started."""
    host = world.host()
    session = world.session(host, "first")
    assert list((world.home.config_dir / "sessions").glob("*.json"))
    assert terminal_on(session) is None


@pytest.mark.case("C76")
def test_no_second_headless_is_started_beside_somebody_elses(world: World) -> None:
    """A headless that another host started has the session: the text waits until it is gone; it is not signalled."""
    session = world.resumable()
    other = world.simulator.headless(session.session_id)
    other.ask("from elsewhere")
    host = world.host()
    held = host.send(session.session_id, "second")
    assert held.hold is not None
    assert held.hold.signs == (f"process {other.pid}",)
    assert other.alive
    other.stop()
    world.answered(host, held)
    assert world.memory(host, session) == ["first", "from elsewhere", "second"]


def test_what_was_typed_into_a_terminal_that_ended_is_owed_again(world: World) -> None:
    """Without a record of it, it goes to a headless."""
    session = world.resumable()
    terminal = world.simulator.terminal(session.session_id)
    host = world.host()
    message = host.store.outbox.add(session.session_id, "second")
    key = Terminal(pid=terminal.pid, start_time=start_time(terminal.pid) or 0.0).key
    host.store.outbox.intend_typed(message, key, transcript_offset=world.home.transcript(session.session_id).stat().st_size)
    host.drive(session.session_id)
    assert world.now(host, message).state == "written"
    terminal.exit()
    world.answered(host, message)
    assert world.memory(host, session) == ["first", "second"]


def test_plugins_hear_of_a_terminal_before_it_starts(world: World) -> None:
    """The hook gets the session, its headless and its directory; the command resumes the session without a headless's environment."""
    plugin = Answering()
    host = world.host(plugin)
    session = world.session(host, "first")
    arguments, environ = host.launch_terminal(session)
    (launch,) = plugin.launches
    assert (launch.session_id, launch.headless, launch.cwd) == (session.session_id, world.headless(host, session), session.cwd)
    assert arguments == [world.claude, "--resume", session.session_id]
    assert "CCC_HOST_HEAD" not in environ


def test_a_terminal_needs_something_to_load(world: World) -> None:
    """A session without a transcript cannot be resumed; the error says to send something first."""
    host = world.host()
    with pytest.raises(HostError, match="ccc-host send"):
        host.launch_terminal(host.begin(world.home.project))


def test_a_terminal_waits_for_the_transcript_of_a_first_answer(world: World) -> None:
    """Claude Code writes it a moment after the answer was printed, so a terminal opened right then is not turned away."""
    plugin = Answering()
    host = world.host(plugin)
    session = world.session(host, "first")
    transcript = world.home.transcript(session.session_id)
    kept_back = transcript.rename(transcript.with_suffix(".later"))
    comes = threading.Timer(0.2, kept_back.rename, (transcript,))
    comes.start()
    host.launch_terminal(session)
    comes.join()
    assert len(plugin.launches) == 1


def test_the_directory_for_tmux_is_this_tests_own(world: World) -> None:
    """No test sees, or types into, the panes of whoever runs it."""
    assert Path(os.environ["TMUX_TMPDIR"]).is_relative_to(world.state.parent)
    assert "TMUX" not in os.environ
