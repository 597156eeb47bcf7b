"""What is typed into a terminal that sits in tmux, and when."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator

import pytest

from ccc_hookspecs.host.records import Session
from ccc_hookspecs.host.terminals import Terminal, terminal_on
from ccc_hookspecs.host.tmux import typable
from ccc_hookspecs.testing.harness import wait_until
from tests.ccc_hookspecs.host.world import World

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


@needs_tmux
def test_a_text_goes_to_the_terminal_that_sits_in_tmux(world: World, tmux: Tmux) -> None:
    """It is typed there and taken as one turn; no headless is started beside it."""
    session = world.resumable()
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
    session = world.resumable()
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
    session = world.resumable()
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
    session = world.resumable()
    tmux.terminal(session)
    held = world.host().send(session.session_id, "second")
    assert held.hold is not None
    assert "/clear" in held.hold.reason


@needs_tmux
def test_slash_commands_are_not_typed(world: World, tmux: Tmux) -> None:
    """In a terminal some open a dialog, in which the next text would be keys."""
    session = world.resumable()
    tmux.terminal(session)
    held = world.host().send(session.session_id, "/cost")
    assert held.hold is not None
    assert "/cost" not in tmux.screen()


@needs_tmux
def test_what_a_terminal_did_not_take_is_owed_once_it_left_the_session(world: World, tmux: Tmux) -> None:
    """A host died before it typed, and the terminal went on to another session by `/clear`: nobody there will take it."""
    session = world.resumable()
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
    session = world.resumable()
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
