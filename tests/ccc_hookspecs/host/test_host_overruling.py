"""A person overrules what they were told the cost of, and nothing else."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from ccc_hookspecs import Hold
from ccc_hookspecs.host import talking
from ccc_hookspecs.host.output import Output
from ccc_hookspecs.host.stopping import Stop
from tests.ccc_hookspecs.host.world import Answering, World


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
    assert (held.state, held.hold.cost) == ("held", f"process {head.pid} is ended with whatever it does")
    host.drive(session.session_id)
    assert host.agents.known(session.session_id) is not None
    host.overrule(held)
    world.answered(host, held)
    assert world.headless(host, session).pid != head.pid
    assert len(world.prompts(session)) == (2 if gone == "fifo" else 1)


@pytest.mark.parametrize(("release", "text"), [("2.1.61", "second"), ("2.1.168", "/cost")])
def test_a_turn_that_does_not_end_may_be_ended(world: World, release: str, text: str) -> None:
    """A text that would leave no trace in it waits, says for which process, and is told of once; a fresh process gets it when overruled."""
    world.simulator.release = release
    host = world.host()
    session = world.session(host, "first")
    world.until(host, host.send(session.session_id, "RUN: sleep 60"))
    pid = world.headless(host, session).pid
    held = host.send(session.session_id, text)
    assert held.hold is not None
    assert (held.state, held.hold.signs, held.hold.cost) == ("held", (f"process {pid}",), f"process {pid} is ended with whatever it does")
    before = host.store.database.fingerprint()
    for _ in range(3):
        host.drive(session.session_id)
    assert host.store.database.fingerprint() == before
    assert len(host.store.journal.entries(what="held")) == 1
    assert host.active() == {session.session_id}
    host.overrule(held)
    world.until(host, held)
    assert world.headless(host, session).pid != pid


def test_a_person_may_overrule_an_open_terminal(world: World) -> None:
    """The cost is told; the text goes to a headless, and the terminal is left alone."""
    session = world.resumable()
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
    session = world.resumable()
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
    session = world.resumable()
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
    talking.overrule(host, Output(as_json=False), session.session_id, Stop())
    told = capsys.readouterr().err
    assert 0 < told.index(f"the cost: {held.hold and held.hold.cost}") < told.index(f"the cost: {hold.cost}")
    assert [injection.overrule for injection in plugin.asked[1:]] == [False, True]
    world.answered(host, held)
    assert terminal.alive
