"""Shadow mode: everything is judged and said, and nothing is changed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from ccc_hookspecs.signals import retirement_proposed
from ccc_plugins.retire_stale.mechanisms import terminal_launch
from ccc_plugins.retire_stale.plugin import plugin
from ccc_plugins.retire_stale.signalling import Handle
from tests.retire_stale.mechanisms.conftest import Stage


def _idle(stage: Stage) -> None:
    stage.terminal()


def _stale(stage: Stage) -> None:
    stage.terminal("from terminal")


def _busy(stage: Stage) -> None:
    stage.terminal("from terminal")
    stage.work("SLOW 30")


def _both(stage: Stage) -> None:
    stage.work("SLOW 1")
    stage.terminal("from terminal")
    stage.head.wait_idle()


def _exited(stage: Stage) -> None:
    stage.terminal()
    agent = stage.head.headless
    stage.head.kill()
    stage.host.adopt(agent)


@pytest.mark.parametrize("situation", [_idle, _stale, _busy, _both, _exited], ids=lambda f: f.__name__)
def test_shadow_mode_changes_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch, situation: Callable[[Stage], None]) -> None:
    """No process is signalled, nothing is released, remembered or proposed, no start is delayed, and every text is let through."""
    signals: list[signal.Signals] = []
    proposals: list[object] = []

    def send(self: Handle, signum: signal.Signals) -> bool:
        signals.append(signum)
        return False

    monkeypatch.setattr(Handle, "send", send)
    stage.use(mode="shadow", launch_wait_seconds=20.0)
    situation(stage)
    with retirement_proposed.connected_to(lambda sender, event: proposals.append(event)):
        began = time.monotonic()
        stage.launch()
        assert time.monotonic() - began < 10
        stage.tick(times=3)
        stage.tick(terminal_launch, times=2)
        assert stage.inject() is None
        assert stage.inject(overrule=True) is None
    assert signals == []
    assert proposals == []
    assert stage.host.releases == []
    assert os.listdir(stage.host.state_dir) == []


def test_what_shadow_mode_saw_is_not_acted_on_later(stage: Stage) -> None:
    """A busy headless that a launch in shadow mode would have deferred is no deferral once the mode is changed."""
    stage.use(mode="shadow")
    stage.work("SLOW 1")
    stage.launch()
    stage.head.wait_idle()
    stage.use(mode="act")
    stage.tick(terminal_launch)
    assert stage.head.alive


def test_what_an_acting_host_remembered_is_left_to_it(stage: Stage) -> None:
    """Of two hosts on one state directory, the one in shadow mode neither ends nor renews the other's deferral."""
    stage.terminal()
    stage.work("SLOW 1")
    stage.launch()
    (before,) = plugin.flow(stage.host).deferrals.all()
    stage.head.wait_idle()
    stage.use(mode="shadow")
    stage.launch()
    stage.tick(terminal_launch, times=2)
    assert plugin.flow(stage.host).deferrals.all() == (before,)
    stage.use(mode="act")
    stage.tick(terminal_launch)
    assert not stage.head.alive
