"""The watcher against simulated Claude Code processes."""

from __future__ import annotations

import signal
import threading

import psutil
import pytest

from ccc_hookspecs.signals import headless_retired, retirement_deferred
from ccc_hookspecs.testing.harness import wait_until
from ccc_plugins.retire_stale.mechanisms import watcher
from tests.retire_stale.mechanisms.conftest import Stage


def test_an_idle_headless_beside_a_terminal_is_retired(stage: Stage) -> None:
    """Seen in two ticks in a row beside a live terminal, an idle headless is retired; the terminal is not touched."""
    terminal = stage.terminal()
    stage.tick()
    assert stage.head.alive
    stage.tick()
    assert not stage.head.alive
    assert terminal.alive
    (retirement,) = stage.signals.of(headless_retired)
    assert retirement.mechanism == watcher.NAME


def test_without_a_terminal_nothing_happens(stage: Stage) -> None:
    """A lone headless, and one whose terminal has left, live on."""
    stage.tick(times=3)
    stage.take_over("from terminal")
    stage.tick(times=3)
    assert stage.head.alive
    assert stage.signals.names() == []


def test_a_busy_headless_beside_a_terminal_waits(stage: Stage) -> None:
    """A busy headless is never ended; the deferral is said once, and it goes when it is idle."""
    stage.terminal()
    stage.work("SLOW 2")
    stage.tick(times=4)
    assert stage.head.alive
    assert len(stage.signals.of(retirement_deferred)) == 1
    stage.head.wait_idle()
    stage.tick()
    assert not stage.head.alive


@pytest.mark.case("C55")
def test_one_sighting_is_not_enough(stage: Stage) -> None:
    """A terminal that is there in every other tick only is never acted on."""
    for _ in range(3):
        terminal = stage.terminal()
        stage.tick()
        terminal.exit()
        stage.tick()
    assert stage.head.alive


def test_an_inject_in_flight_is_not_waited_for(stage: Stage) -> None:
    """A session whose lock is taken is left to the next tick, at once."""
    stage.terminal()
    stage.tick()
    with stage.host.session_lock(stage.head.session_id, 0):
        sweep = threading.Thread(target=stage.tick)
        sweep.start()
        sweep.join(10)
        assert not sweep.is_alive()
        assert stage.head.alive
    stage.tick()
    assert not stage.head.alive


def test_one_bad_session_never_stops_the_sweep(stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A session that raises is logged, and the next one is looked at."""
    from ccc_plugins.retire_stale.flow import Flow

    other = stage.simulator.headless()
    other.ask("another session")
    stage.host.adopt(other)
    stage.terminal()
    stage.simulator.terminal(other.session_id)
    really = Flow.retire

    def failing(self: Flow, ccc: object, headless: object, **rest: object) -> object:
        if getattr(headless, "session_id", None) == stage.head.session_id:
            raise RuntimeError("broken evidence")
        return really(self, ccc, headless, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Flow, "retire", failing)
    stage.tick(times=2)
    assert stage.head.alive
    assert not other.alive
    assert "could not be looked at" in caplog.text


@pytest.mark.case("C56")
def test_a_suspended_terminal_takes_nothing_over(stage: Stage) -> None:
    """A terminal that sits stopped is not one that a person drives."""
    terminal = stage.terminal()
    terminal.signal(signal.SIGSTOP)
    wait_until(lambda: psutil.Process(terminal.pid).status() == psutil.STATUS_STOPPED, "the stop")
    stage.tick(times=3)
    assert stage.head.alive
    terminal.signal(signal.SIGCONT)


def test_shadow_mode_ends_nothing(stage: Stage) -> None:
    """In shadow mode the sweep reports once what it would retire."""
    stage.use(mode="shadow")
    stage.terminal()
    stage.tick(times=3)
    assert stage.head.alive
    assert stage.signals.names() == ["headless_kept"]
