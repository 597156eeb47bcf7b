"""The launch mechanism against simulated Claude Code processes."""

from __future__ import annotations

import time

import pytest

from ccc_hookspecs.signals import headless_retired, retirement_deferred
from ccc_plugins.retire_stale.mechanisms import terminal_launch
from ccc_plugins.retire_stale.plugin import plugin
from tests.retire_stale.mechanisms.conftest import Stage


def deferred(stage: Stage) -> int:
    return len(plugin.flow(stage.host).deferrals.all())


def test_an_idle_headless_is_gone_before_the_terminal_starts(stage: Stage) -> None:
    """The launch returns with the headless retired and released, so that the terminal loads a final transcript."""
    stage.launch()
    assert not stage.head.alive
    assert [gone.pid for gone in stage.host.releases] == [stage.head.pid]
    (retirement,) = stage.signals.of(headless_retired)
    assert retirement.mechanism == terminal_launch.NAME
    assert deferred(stage) == 0


@pytest.mark.case("C84", "C86")
def test_a_busy_headless_is_retired_by_a_tick_once_it_is_idle(stage: Stage) -> None:
    """A busy headless is let finish, said to be deferred, and retired by the mechanism's own tick, with the watcher off."""
    stage.work("SLOW 2")
    stage.launch()
    assert stage.head.alive
    (deferral,) = stage.signals.of(retirement_deferred)
    assert any("turn open" in sign for sign in deferral.facts.signs)
    stage.tick(terminal_launch)
    assert stage.head.alive
    stage.head.wait_idle()
    stage.tick(terminal_launch)
    assert not stage.head.alive
    assert deferred(stage) == 0
    assert len(stage.signals.of(retirement_deferred)) == 1


@pytest.mark.case("C86")
def test_a_deferral_survives_a_restart_of_the_host(stage: Stage) -> None:
    """A host that starts anew on the same state directory retires what the one before had put off."""
    stage.work("SLOW 1")
    stage.launch()
    stage.head.wait_idle()
    stage.use(lock_seconds=1.0)
    stage.tick(terminal_launch)
    assert not stage.head.alive


@pytest.mark.case("C86")
def test_a_deferral_is_dropped_when_the_terminal_left_without_writing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that came and went without a turn leaves the headless its session."""
    monkeypatch.setattr(terminal_launch, "TERMINAL_START_SECONDS", 0.0)
    stage.work("SLOW 1")
    stage.launch()
    stage.head.wait_idle()
    stage.tick(terminal_launch)
    assert stage.head.alive
    assert deferred(stage) == 0


@pytest.mark.case("C86")
def test_a_second_terminal_has_its_own_time_to_start(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch long after the first, whose terminal went away, is not taken for that one's leftover."""
    stage.work("SLOW 2")
    stage.launch()
    long_after = time.time() + terminal_launch.TERMINAL_START_SECONDS + 1
    monkeypatch.setattr("time.time", lambda: long_after)
    stage.launch()
    stage.tick(terminal_launch)
    assert deferred(stage) == 1
    monkeypatch.undo()
    stage.head.wait_idle()
    stage.tick(terminal_launch)
    assert not stage.head.alive


def test_a_deferral_stands_when_the_terminal_wrote_and_left(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that took a turn and left has made the headless stale: the deferral is honoured."""
    monkeypatch.setattr(terminal_launch, "TERMINAL_START_SECONDS", 0.0)
    stage.work("SLOW 2")
    stage.launch()
    stage.take_over("from terminal")
    stage.head.wait_idle()
    stage.tick(terminal_launch)
    assert not stage.head.alive


def test_a_launch_may_wait_for_a_busy_headless(stage: Stage) -> None:
    """With `launch_wait_seconds` the launch returns as soon as the headless was idle and is gone."""
    stage.use(launch_wait_seconds=20.0)
    stage.work("SLOW 1")
    began = time.monotonic()
    stage.launch()
    assert not stage.head.alive
    assert time.monotonic() - began < 15


def test_a_session_in_use_is_left_to_a_later_tick(stage: Stage) -> None:
    """A session whose lock somebody holds is not waited for beyond `lock_seconds`, and is not forgotten."""
    import threading

    stage.use(lock_seconds=0.1)
    with stage.host.session_lock(stage.head.session_id, 0):
        launching = threading.Thread(target=stage.launch)
        launching.start()
        launching.join(10)
        assert stage.head.alive
    assert deferred(stage) == 1
    (deferral,) = stage.signals.of(retirement_deferred)
    assert deferral.reason == "the session is in use"
    stage.tick(terminal_launch)
    assert not stage.head.alive


def test_shadow_mode_lets_the_headless_live(stage: Stage) -> None:
    """In shadow mode a launch ends nothing and remembers nothing."""
    stage.use(mode="shadow")
    stage.launch()
    assert stage.head.alive
    assert deferred(stage) == 0


@pytest.mark.case("C91")
def test_a_headless_whose_history_is_not_on_disk_is_kept(stage: Stage) -> None:
    """Without a transcript there is nothing that a terminal could take over."""
    stage.head.home.transcript(stage.head.session_id).unlink()
    stage.launch()
    assert stage.head.alive
