"""A fresh process is not taken for a stale one, whatever the process before it was retired for and on whichever release."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from ccc_hookspecs.testing.harness import ClaudeHome, Simulator, simulated
from ccc_hookspecs.testing.simulator import MEASURED
from ccc_hookspecs.values import Deliver, Respawn
from ccc_plugins.retire_stale.judgement.history import takes_history
from ccc_plugins.retire_stale.plugin import plugin
from tests.retire_stale.mechanisms.conftest import Stage


@pytest.fixture(params=MEASURED)
def simulator(claude_home: ClaudeHome, request: pytest.FixtureRequest) -> Iterator[Simulator]:
    with simulated(claude_home, release=request.param) as running:
        yield running


def _turn(stage: Stage) -> None:
    stage.take_over("from terminal")


def _compact(stage: Stage) -> None:
    _typed(stage, "/compact")


def _turn_and_clear(stage: Stage) -> None:
    _typed(stage, "from terminal", "/clear", "in another session")


def _local_command(stage: Stage) -> None:
    _typed(stage, "from terminal", "/context")


def _killed(stage: Stage) -> None:
    terminal = stage.terminal("from terminal")
    terminal.type("SLOW 30")
    terminal.wait_busy()
    terminal.kill()


def _one_shot(stage: Stage) -> None:
    stage.simulator.one_shot(stage.head.session_id, "from a one-shot")


def _both_at_once(stage: Stage) -> None:
    stage.work("SLOW 1")
    stage.take_over("from terminal")
    stage.head.wait_idle()


def _typed(stage: Stage, *texts: str) -> None:
    terminal = stage.terminal()
    for text in texts:
        terminal.type(text)
        terminal.wait_idle()
    terminal.exit()


def _replaced(stage: Stage, decision: object, *, forked: bool) -> None:
    """A fresh process takes over, and where its branch lacks turns it is given them with its first text."""
    assert isinstance(decision, Respawn)
    stage.resume()
    first = stage.inject()
    assert first is None or isinstance(first, Deliver)
    given = first.catch_up if first is not None else None
    assert (given is not None) == forked
    stage.head.ask(given or "first")


@pytest.mark.parametrize(
    "rounds",
    [(_turn, _turn, _turn), (_compact, _local_command, _killed), (_one_shot, _turn_and_clear), (_both_at_once, _turn, _both_at_once)],
    ids=["turns", "commands and a kill", "one-shot and clear", "forks"],
)
def test_after_each_take_over_the_fresh_process_stays(stage: Stage, rounds: tuple[Callable[[Stage], None], ...]) -> None:
    """Round after round the stale process is replaced once, or healed where both wrote; then it answers text after text."""
    for take_over in rounds:
        take_over(stage)
        decision = stage.inject()
        healed = take_over is _both_at_once and takes_history(stage.head.release.name)
        # A compaction that nobody went on from is not read by whoever resumes the session, where a `last-prompt` names another record.
        if healed or (take_over is _compact and stage.head.release.name in ("2.1.275", "2.1.332")):
            assert decision == Deliver()
        else:
            _replaced(stage, decision, forked=take_over is _both_at_once)
        stage.head.ask(f"after {take_over.__name__}")
        for number in range(2):
            assert stage.inject() is None
            stage.head.ask(f"again {number}")
    assert stage.inject() is None
    assert plugin.flow(stage.host).evidence.judge(stage.host, stage.head.headless).idleness.verdict == "idle"


@pytest.mark.parametrize("known", ["no size", "neither size, start nor whether it resumed"])
def test_a_host_that_notes_little_keeps_its_fresh_process_too(stage: Stage, known: str) -> None:
    """What the host did not note at the spawn is found from the files, so that a fresh process is not replaced again."""
    stage.take_over("from terminal")
    assert isinstance(stage.inject(), Respawn)
    stage.resume()
    for number in range(3):
        value = replace(stage.head.headless, transcript_size=None)
        if known != "no size":
            value = replace(value, spawned_at=None, resumed=None)
        stage.host.adopt(value)
        assert not isinstance(stage.inject(), Respawn)
        assert stage.head.alive
        stage.head.ask(f"text {number}")
