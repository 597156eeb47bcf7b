"""Several hosts on one state directory, and hosts that die at the worst moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ccc_hookspecs.outcomes import Deferral, Kept, Retirement
from ccc_hookspecs.processes import start_time
from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.journal import Attempt, Ending
from ccc_plugins.retire_stale.retirement import ALREADY_EXITED, thaw
from ccc_plugins.retire_stale.signalling import Handle
from ccc_plugins.retire_stale.store import StoreError

if TYPE_CHECKING:
    from tests.retire_stale.conftest import Fake, Lab

ROOT = Path(__file__).parents[2]


@contextmanager
def other_host(lab: Lab, headless: Headless, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A host process that is ready to retire this headless as soon as it is told to."""
    arguments = [str(lab.host.state_dir), str(headless.pid), str(headless.start_time), headless.session_id, *options]
    command = [sys.executable, "-m", "tests.retire_stale.retire_once", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
        try:
            assert said(host) == "ready"
            yield host
        finally:
            host.kill()


def tell(host: subprocess.Popen[str]) -> None:
    assert host.stdin is not None
    host.stdin.write("go\n")
    host.stdin.flush()


def said(host: subprocess.Popen[str]) -> str:
    assert host.stdout is not None
    return host.stdout.readline().rstrip("\n")


def crash_while_frozen(lab: Lab, fake: Fake) -> None:
    """Have a host die by SIGKILL between its SIGSTOP and its SIGCONT; whoever started that host has not reaped it."""
    with other_host(lab, fake.headless, "--hang") as host:
        tell(host)
        assert said(host) == "frozen"
        assert thaw(lab.journal) == ()
        assert fake.state() == "stopped"
        host.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, host.pid, os.WEXITED | os.WNOWAIT)
        assert fake.state() == "stopped"
        assert lab.journal.may_be_frozen(fake.headless.pid, fake.headless.start_time or 0)


@pytest.mark.case("C86", "C89")
@pytest.mark.parametrize("lock", [(), ("--unlocked",)], ids=["with the lock", "without it"])
def test_two_hosts_retire_one_headless_once(lab: Lab, lock: tuple[str, ...]) -> None:
    """Of two hosts that retire the same headless at once one acts, and the other says why it did not."""
    fake = lab.fake()
    with other_host(lab, fake.headless, *lock) as one, other_host(lab, fake.headless, *lock) as two:
        tell(one)
        tell(two)
        outcomes = [said(one).split("\t"), said(two).split("\t")]
        one.wait(10)
        two.wait(10)
    assert Counter(kind for kind, _ in outcomes) == {"Retirement": 1, "Kept": 1}
    kept = next(reason for kind, reason in outcomes if kind == "Kept")
    assert kept == ALREADY_EXITED or kept.startswith("is being retired by process ")
    assert [attempt.outcome for attempt in lab.journal.attempts()].count("retired") == 1
    assert fake.process.wait(5) == -signal.SIGKILL


@pytest.mark.case("C89")
def test_headless_that_another_host_is_retiring_is_left_to_it(lab: Lab) -> None:
    """An open intent of a live host keeps everybody else's hands off, even without the lock."""
    fake = lab.fake()
    with other_host(lab, fake.headless, "--hang") as host:
        tell(host)
        assert said(host) == "frozen"
        unlocked = replace(fake.headless, session_id="00000000-0000-4000-8000-000000000000")
        outcome = lab.retire(unlocked)
        assert isinstance(outcome, Kept)
        assert outcome.reason == f"is being retired by process {host.pid}"
        assert fake.state() == "stopped"
        assert lab.host.gone == []


def test_process_left_stopped_by_a_crash_is_continued_once(lab: Lab) -> None:
    """The next host continues what the dead one had stopped, exactly once, and then retires it like any other."""
    fake = lab.fake()
    crash_while_frozen(lab, fake)
    assert [attempt.pid for attempt in thaw(lab.journal)] == [fake.headless.pid]
    assert fake.goes_on
    _stop(fake)
    assert thaw(lab.journal) == ()
    assert fake.state() == "stopped"
    assert [attempt.outcome for attempt in lab.journal.attempts()] == ["thawed"]
    assert isinstance(lab.retire(fake.headless), Retirement)


@pytest.mark.parametrize(("look", "kind"), [("idle", Retirement), ("busy", Deferral)])
def test_process_left_stopped_by_a_crash_can_be_retired_before_any_thaw(lab: Lab, look: str, kind: type[object]) -> None:
    """A stop that was ours is not taken for somebody else's: found busy, the process goes on."""
    fake = lab.fake()
    crash_while_frozen(lab, fake)
    assert isinstance(lab.retire(fake.headless, "idle", look), kind)
    assert fake.goes_on == (look == "busy")
    assert [attempt.outcome for attempt in lab.journal.attempts()][1] == "abandoned"
    assert thaw(lab.journal) == ()


@pytest.mark.case("C59")
def test_pid_that_is_another_process_now_is_not_continued(lab: Lab) -> None:
    """A stopped process that merely has the recorded pid stays as it is."""
    fake = lab.fake()
    assert fake.headless.start_time is not None
    _abandoned(lab, replace(fake.headless, start_time=fake.headless.start_time - 1), freezes=True)
    _stop(fake)
    assert thaw(lab.journal) == ()
    assert fake.state() == "stopped"
    assert [attempt.outcome for attempt in lab.journal.attempts()] == ["retired"]


def test_stop_that_was_not_ours_is_not_undone(lab: Lab) -> None:
    """A process that somebody else had stopped before the dead host came to it stays stopped."""
    fake = lab.fake()
    _stop(fake)
    _abandoned(lab, fake.headless, freezes=False)
    assert thaw(lab.journal) == ()
    assert fake.state() == "stopped"


def test_intent_whose_host_died_before_the_stop_is_closed(lab: Lab) -> None:
    """An intent that never came to a signal is closed, and a later exit of the process is not taken for our doing."""
    fake = lab.fake()
    _abandoned(lab, fake.headless, freezes=True)
    assert thaw(lab.journal) == ()
    assert [attempt.outcome for attempt in lab.journal.attempts()] == ["abandoned"]
    assert not lab.journal.retired_by_us(fake.headless.pid, fake.headless.start_time or 0)
    assert fake.goes_on


def _stop(fake: Fake) -> None:
    """Stop it as somebody else would, and wait until it stands still."""
    fake.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, fake.headless.pid, os.WSTOPPED)


def _abandoned(lab: Lab, headless: Headless, *, freezes: bool) -> None:
    """An intent recorded by a host that has died since."""
    lab.journal.begin(headless, mechanism="retire_stale.watcher", reason="a terminal took a turn", freezes=freezes)
    with subprocess.Popen(["sleep", "60"]) as dead:
        started = start_time(dead.pid)
        dead.kill()
    with lab.journal.store.writing() as db:
        db.execute("UPDATE attempts SET host_pid = ?, host_start_time = ?", (dead.pid, started))


def test_thaw_without_a_journal_makes_none(lab: Lab) -> None:
    """A host that never retired anything gets no file by starting."""
    assert thaw(lab.journal) == ()
    assert not lab.journal.store.exists()


def test_thaw_survives_a_corrupt_journal(lab: Lab) -> None:
    """A journal that cannot be read stops no host from starting."""
    lab.journal.store.path.write_bytes(b"not a database" * 100)
    assert thaw(lab.journal) == ()


def test_refused_continue_is_logged_and_the_rest_is_settled(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process that may not be continued does not keep the others stopped."""
    one, two = lab.fake(), lab.fake()
    for fake in (one, two):
        _abandoned(lab, fake.headless, freezes=True)
        _stop(fake)
    send = Handle.send
    refused: list[int] = []

    def refuse_once(self: Handle, signum: signal.Signals) -> bool:
        if not refused:
            refused.append(self.pid)
            raise PermissionError(1, "Operation not permitted")
        return send(self, signum)

    monkeypatch.setattr(Handle, "send", refuse_once)
    assert len(thaw(lab.journal)) == 1
    assert sorted(fake.goes_on for fake in (one, two)) == [False, True]


def test_settling_does_not_take_a_deciders_error_for_its_own(lab: Lab) -> None:
    """An error while deciding rolls everything back, so that the next start tries again."""
    fake = lab.fake()
    _abandoned(lab, fake.headless, freezes=True)

    def fail(attempt: Attempt) -> Ending:
        raise OSError("no")

    with pytest.raises(StoreError):
        lab.journal.settle_abandoned(fail)
    assert [attempt.outcome for attempt in lab.journal.attempts()] == [None]
