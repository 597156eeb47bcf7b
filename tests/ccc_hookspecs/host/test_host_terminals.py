"""While a terminal has a session open, texts go to it, or wait and say so."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ccc_hookspecs.host import talking
from ccc_hookspecs.host.errors import HostError
from ccc_hookspecs.host.output import Output
from ccc_hookspecs.host.records import Session
from ccc_hookspecs.host.terminals import Terminal, terminal_on
from ccc_hookspecs.host.tmux import typable
from ccc_hookspecs.processes import start_time
from ccc_hookspecs.testing.harness import wait_until
from ccc_hookspecs.testing.recording import CapturedSignals
from ccc_hookspecs.values import Hold
from tests.ccc_hookspecs.host.world import Answering, World, end_process

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Tmux:
    """A tmux server of this test's own."""

    def __init__(self, world: World) -> None:
        self.world = world

    def run(self, *arguments: str) -> str:
        environ = self.world.environ(TMUX_TMPDIR=os.environ["TMUX_TMPDIR"])
        done = subprocess.run(["tmux", "-f", "/dev/null", *arguments], env=environ, capture_output=True, text=True, check=True, timeout=30)
        return done.stdout

    def terminal(self, session: Session) -> Terminal:
        """A `claude` on this session in a pane, run by a shell as people do."""
        command = f"cd {session.cwd} && {self.world.claude} --resume {session.session_id}; sleep 60"
        self.run("new-session", "-d", "-x", "150", "-y", "40", command)
        wait_until(lambda: terminal_on(session) is not None and ">" in self.screen(), "the terminal")
        found = terminal_on(session)
        assert found is not None
        return found

    def screen(self) -> str:
        return self.run("capture-pane", "-p")


@pytest.fixture
def tmux(world: World) -> Iterator[Tmux]:
    made = Tmux(world)
    yield made
    subprocess.run(["tmux", "kill-server"], env=world.environ(TMUX_TMPDIR=os.environ["TMUX_TMPDIR"]), capture_output=True)


def resumable(world: World) -> Session:
    """A session with one turn and no headless."""
    host = world.host()
    session = world.session(host, "first")
    end_process(world.headless(host, session).pid)
    host.recover()
    return session


@needs_tmux
def test_a_text_goes_to_the_terminal_that_sits_in_tmux(world: World, tmux: Tmux) -> None:
    """It is typed there and taken as one turn; no headless is started beside it."""
    session = resumable(world)
    tmux.terminal(session)
    host = world.host()
    message = world.until(host, host.send(session.session_id, "typed; $HOME 'and' \"so\" -l"))
    assert message.proof == "taken by the terminal"
    assert host.headless_for(session.session_id) is None
    said = [record["message"]["content"] for record in world.home.records(session.session_id) if record["type"] == "user"]
    assert len(said) == 2
    assert "typed; $HOME 'and' \"so\" -l" in str(said[-1])
    wait_until(lambda: "SEEN" in tmux.screen(), "an answer")


@needs_tmux
@pytest.mark.case("C56")
def test_a_stopped_terminal_is_not_typed_into(world: World, tmux: Tmux) -> None:
    """Its keys would go to the shell around it; the text waits and says so."""
    session = resumable(world)
    terminal = tmux.terminal(session)
    os.kill(terminal.pid, signal.SIGSTOP)
    host = world.host()
    held = host.send(session.session_id, "rm -rf something")
    assert held.state == "held"
    os.kill(terminal.pid, signal.SIGCONT)
    assert "rm -rf" not in tmux.screen()
    world.until(host, held)


@needs_tmux
def test_a_terminal_that_is_not_idle_is_not_typed_into(world: World, tmux: Tmux) -> None:
    """It may show a question, and the keys would be an answer; the text goes in once it is idle."""
    session = resumable(world)
    tmux.terminal(session)
    tmux.run("send-keys", "SLOW 2", "Enter")
    wait_until(lambda: (terminal_on(session) or Terminal(pid=1, start_time=0.0)).status == "busy", "busy")
    host = world.host()
    held = host.send(session.session_id, "second")
    assert held.hold is not None
    assert "busy" in held.hold.reason
    assert world.until(host, held).proof == "taken by the terminal"


@needs_tmux
@pytest.mark.case("C16")
def test_a_terminal_that_may_have_left_the_session_is_not_typed_into(world: World, tmux: Tmux) -> None:
    """A 2.1.119 still names the session that it left by `/clear`; the text would go into another conversation."""
    world.simulator.release = "2.1.119"
    session = resumable(world)
    tmux.terminal(session)
    held = world.host().send(session.session_id, "second")
    assert held.hold is not None
    assert "/clear" in held.hold.reason


@needs_tmux
def test_slash_commands_are_not_typed(world: World, tmux: Tmux) -> None:
    """In a terminal some open a dialog, in which the next text would be keys."""
    session = resumable(world)
    tmux.terminal(session)
    held = world.host().send(session.session_id, "/cost")
    assert held.hold is not None
    assert "/cost" not in tmux.screen()


def test_a_text_waits_for_a_terminal_outside_tmux(world: World, captured_signals: CapturedSignals) -> None:
    """It says which, and is delivered in order once the terminal has gone, to a process that knows its turns."""
    session = resumable(world)
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


def test_a_person_may_overrule_an_open_terminal(world: World) -> None:
    """The cost is told; the text goes to a headless, and the terminal is left alone."""
    session = resumable(world)
    terminal = world.simulator.terminal(session.session_id)
    host = world.host()
    held = host.send(session.session_id, "second")
    assert held.hold is not None
    assert "terminal" in str(held.hold.cost)
    host.overrule(held)
    world.until(host, held)
    assert terminal.alive


def test_overruling_one_terminal_does_not_overrule_another(world: World) -> None:
    """Its cost was not told: the text waits for the terminal that is open by then."""
    session = resumable(world)
    first = world.simulator.terminal(session.session_id)
    host = world.host()
    shown = host.send(session.session_id, "second")
    first.exit()
    second = world.simulator.terminal(session.session_id)
    host.overrule(shown)
    now = world.now(host, shown)
    assert now.hold is not None
    assert (now.state, now.hold.signs, host.headless_for(session.session_id)) == ("held", (f"process {second.pid}",), None)


def test_giving_up_on_a_process_does_not_overrule_a_terminal(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was told is that the process ends, and not that the text goes in beside a terminal which was opened meanwhile."""
    monkeypatch.setattr("ccc_hookspecs.host.records.STUCK_SECONDS", 0.0)
    host = world.host()
    session = world.session(host, "first")
    os.kill(world.headless(host, session).pid, signal.SIGSTOP)
    shown = host.send(session.session_id, "second")
    terminal = world.simulator.terminal(session.session_id)
    host.overrule(shown)
    assert (world.now(host, shown).state, host.headless_for(session.session_id)) == ("held", None)
    terminal.exit()
    world.answered(host, shown)


def test_an_overruling_that_came_to_nothing_is_not_kept(world: World) -> None:
    """No process could be started; what is tried later waits for a terminal again."""
    session = resumable(world)
    terminal = world.simulator.terminal(session.session_id)
    host = world.host()
    shown = host.send(session.session_id, "second")
    program = Path(world.claude)
    program.chmod(0o600)
    host.overrule(shown)
    program.chmod(0o755)
    assert world.now(host, shown).state == "queued"
    host.push(session.session_id)
    assert (world.now(host, shown).state, terminal.alive) == ("held", True)


def test_each_cost_is_told_before_it_is_paid(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Behind the terminal's hold is a plugin's: that one is told in its turn, and only then goes to the plugin as overruled."""
    hold = Hold(reason="busy", signs=("a task",), cost="the task is ended")
    plugin = Answering(None, hold)
    host = world.host(plugin)
    session = world.session(host, "first")
    terminal = world.simulator.terminal(session.session_id)
    held = host.send(session.session_id, "second")
    assert len(plugin.asked) == 1
    talking.overrule(host, Output(as_json=False), session.session_id, threading.Event())
    told = capsys.readouterr().err
    assert 0 < told.index(f"the cost: {held.hold and held.hold.cost}") < told.index(f"the cost: {hold.cost}")
    assert [injection.overrule for injection in plugin.asked[1:]] == [False, True]
    world.answered(host, held)
    assert terminal.alive


@pytest.mark.case("C47")
def test_a_registry_record_alone_is_no_terminal(world: World) -> None:
    """One left behind by a process that is gone, or whose pid is another's by now, holds nothing up."""
    session = resumable(world)
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
    session = resumable(world)
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
    session = resumable(world)
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


@needs_tmux
def test_what_a_terminal_did_not_take_is_owed_once_it_left_the_session(world: World, tmux: Tmux) -> None:
    """A host died before it typed, and the terminal went on to another session by `/clear`: nobody there will take it."""
    session = resumable(world)
    terminal = tmux.terminal(session)
    host = world.host()
    message = host.store.outbox.add(session.session_id, "second")
    host.store.outbox.intend_typed(message, terminal.key, transcript_offset=world.home.transcript(session.session_id).stat().st_size)
    host.drive(session.session_id)
    assert world.now(host, message).state == "written"
    tmux.run("send-keys", "/clear", "Enter")
    wait_until(lambda: terminal_on(session) is None, "it left")
    world.answered(host, message)
    assert world.memory(host, session) == ["first", "second"]


@needs_tmux
def test_what_a_terminal_did_not_take_may_be_given_again(world: World, tmux: Tmux, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person is told that it may be there twice, and has it typed once more, or drops it."""
    monkeypatch.setattr("ccc_hookspecs.host.records.STUCK_SECONDS", 0.0)
    session = resumable(world)
    terminal = tmux.terminal(session)
    host = world.host()
    message = host.store.outbox.add(session.session_id, "second")
    offset = world.home.transcript(session.session_id).stat().st_size
    shown = host.store.outbox.intend_typed(message, terminal.key, transcript_offset=offset)
    host.overrule(shown)
    assert world.until(host, shown).proof == "taken by the terminal"
    assert "second" in tmux.screen()
    other = host.store.outbox.intend_typed(host.store.outbox.add(session.session_id, "third"), terminal.key, transcript_offset=offset)
    assert host.drop(other.message_id) == other


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


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("plain", "plain "),
        ("!ls", " !ls "),
        ("# note", " # note "),
        ("/compact", "/compact "),
        ("ends with \\", "ends with \\ "),
        ("esc \x1b[A and \x03 ^C", "esc [A and  ^C "),
        ("two\r\nlines\n", "two\nlines "),
    ],
)
def test_a_text_is_typed_as_a_text(text: str, typed: str) -> None:
    """Nothing in it works as a key, as another input mode, or as the end of the line."""
    assert typable(text) == typed


def test_the_directory_for_tmux_is_this_tests_own(world: World) -> None:
    """No test sees, or types into, the panes of whoever runs it."""
    assert Path(os.environ["TMUX_TMPDIR"]).is_relative_to(world.state.parent)
    assert "TMUX" not in os.environ
