"""A deferral that was said ends in a signal, and is not forgotten over a passing trouble."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator

import pytest

from ccc_hookspecs.outcomes import Veto
from ccc_hookspecs.signals import headless_kept, retirement_deferred, retirement_failed, retirement_proposed
from ccc_plugins.retire_stale import flow
from ccc_plugins.retire_stale.evidence.evidence import Evidence
from ccc_plugins.retire_stale.mechanisms import terminal_launch, watcher
from ccc_plugins.retire_stale.plugin import plugin
from ccc_plugins.retire_stale.signalling import Handle
from tests.retire_stale.mechanisms.conftest import Stage


def stored(stage: Stage) -> int:
    return len(plugin.flow(stage.host).deferrals.all())


def veto(mechanism: str, event: object) -> Veto:
    return Veto(reason="a demo is running")


def test_the_watcher_says_when_the_terminal_of_a_deferral_has_closed(stage: Stage) -> None:
    """A host that takes a deferred process for busy learns that nothing is waited for any more, once."""
    terminal = stage.terminal()
    stage.work("SLOW 1")
    stage.tick(watcher, times=3)
    assert len(stage.signals.of(retirement_deferred)) == 1
    terminal.exit()
    stage.head.wait_idle()
    stage.tick(watcher, times=3)
    assert [kept.mechanism for kept in stage.signals.of(headless_kept)] == [watcher.NAME]


def test_a_launch_says_when_its_terminal_never_came(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.work("SLOW 1")
    stage.launch()
    stage.head.wait_idle()
    monkeypatch.setattr(terminal_launch, "TERMINAL_START_SECONDS", 0.0)
    stage.tick(terminal_launch, times=3)
    assert [kept.mechanism for kept in stage.signals.of(headless_kept)] == [terminal_launch.NAME]
    assert stored(stage) == 0


def test_a_reason_that_was_said_before_is_said_again_when_it_ends_a_deferral(stage: Stage) -> None:
    """Vetoed, then busy, then vetoed for the same reason: the second veto ends the wait."""
    with retirement_proposed.connected_to(veto):
        stage.terminal()
        stage.tick(watcher, times=3)
        stage.work("SLOW 1")
        stage.tick(watcher)
        stage.head.wait_idle()
        stage.tick(watcher, times=2)
    assert len(stage.signals.of(retirement_deferred)) == 1
    assert [kept.reason for kept in stage.signals.of(headless_kept)] == ["vetoed: a demo is running"] * 2


def test_a_deferral_keeps_the_time_of_its_beginning(stage: Stage) -> None:
    """Whatever the process is busy with by now."""
    stage.terminal()
    stage.keep_busy("RUN: sleep 60")
    stage.tick(watcher, times=3)
    stage.end_tools()
    stage.head.wait_idle()
    stage.work("SLOW 2")
    stage.tick(watcher, times=2)
    found = stage.signals.of(retirement_deferred)
    assert len(found) > 1
    assert len({deferral.since for deferral in found}) == 1


# --- passing troubles ---------------------------------------------------------------------------------------------------------


def refuse_sigterm(patch: pytest.MonkeyPatch) -> None:
    """The system lets nobody end a process."""
    send = Handle.send

    def refused(self: Handle, signum: signal.Signals) -> bool:
        if signum == signal.SIGTERM:
            raise PermissionError(1, "Operation not permitted")
        return send(self, signum)

    patch.setattr(Handle, "send", refused)


@contextlib.contextmanager
def evidence_that_fails(stage: Stage, patch: pytest.MonkeyPatch) -> Iterator[None]:
    def judge(*_: object) -> None:
        raise OSError(24, "Too many open files")

    with patch.context() as patched:
        patched.setattr(Evidence, "judge", judge)
        yield


@contextlib.contextmanager
def a_signal_that_is_refused(stage: Stage, patch: pytest.MonkeyPatch) -> Iterator[None]:
    patch.setattr(flow, "FAILED_REST_SECONDS", 0.0)
    with patch.context() as patched:
        refuse_sigterm(patched)
        yield
    assert len(stage.signals.of(retirement_failed)) == 1


@contextlib.contextmanager
def a_journal_in_use(stage: Stage, patch: pytest.MonkeyPatch) -> Iterator[None]:
    db = sqlite3.connect(plugin.flow(stage.host).journal.store.path, isolation_level=None)
    with contextlib.closing(db):
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("ROLLBACK")


@contextlib.contextmanager
def a_veto(stage: Stage, patch: pytest.MonkeyPatch) -> Iterator[None]:
    with retirement_proposed.connected_to(veto):
        yield


def test_what_cannot_be_ended_is_let_alone_for_a_while(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt takes the session from everybody else, and fails in the end: ticks do not repeat it one by one."""
    stage.terminal()
    with monkeypatch.context() as patched:
        refuse_sigterm(patched)
        stage.tick(watcher, times=6)
    assert len(stage.signals.of(retirement_failed)) == 1


def test_a_session_in_use_is_said_once(stage: Stage) -> None:
    """However often a launch looks at it while it waits."""
    stage.use(lock_seconds=0.0, launch_wait_seconds=1.0)
    with stage.host.session_lock(stage.head.session_id, 0):
        launching = threading.Thread(target=stage.launch)
        launching.start()
        launching.join(20)
    assert len(stage.signals.of(retirement_deferred)) == 1


def test_a_look_that_failed_says_nothing_of_the_terminal(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is open still, and the deferral stands."""
    stage.terminal()
    stage.work("SLOW 3")
    stage.tick(watcher, times=3)
    with monkeypatch.context() as patched:

        def taken_over(*_: object) -> bool:
            raise OSError(24, "Too many open files")

        patched.setattr(Evidence, "taken_over", taken_over)
        stage.tick(watcher)
    assert len(stage.signals.of(retirement_deferred)) == 1
    assert stage.signals.of(headless_kept) == []


TROUBLES = [evidence_that_fails, a_signal_that_is_refused, a_journal_in_use, a_veto]
CASES = [(trouble, at) for trouble in TROUBLES for at in ("launch", "tick") if (trouble, at) != (a_journal_in_use, "launch")]
"""While the journal is in use, a launch can remember nothing either."""
Trouble = Callable[[Stage, pytest.MonkeyPatch], contextlib.AbstractContextManager[None]]


@pytest.mark.case("C84")
@pytest.mark.parametrize(("trouble", "at"), CASES)
def test_a_launch_asks_again_after_a_passing_trouble(stage: Stage, monkeypatch: pytest.MonkeyPatch, trouble: Trouble, at: str) -> None:
    """With this mechanism alone, the idle headless is retired by the tick after it."""
    if at == "tick":
        stage.work("SLOW 1")
        stage.launch()
        stage.head.wait_idle()
    with trouble(stage, monkeypatch):
        stage.launch() if at == "launch" else stage.tick(terminal_launch)
    assert stage.head.alive
    assert stored(stage) == 1
    stage.tick(terminal_launch)
    assert not stage.head.alive
    assert stored(stage) == 0
