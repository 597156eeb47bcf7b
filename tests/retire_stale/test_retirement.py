"""The ladder on the ordinary way down: judged, stopped, judged again, ended, released."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from ccc_hookspecs.outcomes import Deferral, Kept, Retirement, RetirementFailure
from ccc_plugins.retire_stale.deferrals import Deferrals
from ccc_plugins.retire_stale.retirement import ALREADY_EXITED, is_gone
from ccc_plugins.retire_stale.settings import Settings
from ccc_plugins.retire_stale.signalling import Handle
from tests.retire_stale.conftest import FACTS

if TYPE_CHECKING:
    from tests.retire_stale.conftest import Lab, Look

FRESH = replace(FACTS["idle"], attribution="fresh")
"""What a look says of an idle headless that knows everything: it is told to end by SIGTERM, any other is killed."""


def test_idle_is_retired_released_and_left_for_its_parent_to_reap(lab: Lab, system: str) -> None:
    """An idle, fresh headless exits by SIGTERM, is released once, and its parent still reads its own exit code."""
    fake = lab.fake()
    outcome = lab.retire(fake.headless, FRESH)
    assert isinstance(outcome, Retirement)
    assert (outcome.rung, outcome.exit_code, outcome.facts.idleness) == ("terminate", 143, "idle")
    assert 0 <= outcome.seconds < 5
    assert is_gone(outcome)
    assert lab.host.gone == [fake.headless]
    assert lab.looks == 2
    assert fake.process.wait(5) == 143


def test_second_look_is_at_a_process_that_stands_still(lab: Lab, system: str) -> None:
    """The process runs at the first look and is stopped at the second."""
    fake = lab.fake()
    states: list[str] = []

    def look() -> str:
        states.append(fake.state())
        return "idle"

    assert isinstance(lab.retire(fake.headless, look), Retirement)
    assert states[0] in ("sleeping", "running")
    assert states[1:] == ["stopped"]


@pytest.mark.case("C84")
@pytest.mark.parametrize(("look", "reason", "signs"), [("busy", "busy", ("open turn",)), ("unknown", "idleness unknown", ())])
def test_busy_or_unknown_is_deferred_untouched(lab: Lab, look: str, reason: str, signs: tuple[str, ...]) -> None:
    """A process not proven idle gets no signal at all, and the deferral says why."""
    fake = lab.fake()
    outcome = lab.retire(fake.headless, look)
    assert isinstance(outcome, Deferral)
    assert (outcome.reason, outcome.facts.signs) == (reason, signs)
    assert fake.goes_on
    assert lab.looks == 1
    assert lab.journal.attempts() == ()
    assert lab.host.gone == []


@pytest.mark.case("C84")
def test_deferred_is_retired_once_it_is_idle(lab: Lab) -> None:
    """The headless that was kept for its work is retired by the next try after that work ended."""
    fake = lab.fake()
    assert isinstance(lab.retire(fake.headless, "busy", "idle"), Deferral)
    assert isinstance(lab.retire(fake.headless, "idle"), Retirement)


@pytest.mark.parametrize("look", ["busy", "unknown"])
def test_turn_begun_between_the_looks_lets_it_go_on(lab: Lab, system: str, look: str) -> None:
    """A sign of work at the second look ends in SIGCONT and a deferral that carries the sign."""
    fake = lab.fake()
    outcome = lab.retire(fake.headless, "idle", look)
    assert isinstance(outcome, Deferral)
    assert outcome.facts.idleness == look
    assert fake.goes_on
    assert [attempt.outcome for attempt in lab.journal.attempts()] == ["deferred"]


@pytest.mark.case("C86")
@pytest.mark.parametrize("answers", [("the terminal wrote nothing",), (None, "the terminal wrote nothing")])
def test_no_longer_wanted_is_kept(lab: Lab, answers: tuple[str | None, ...]) -> None:
    """The wish is asked again at each look, and a withdrawn one keeps the process."""
    fake, given = lab.fake(), iter(answers)
    outcome = lab.retire(fake.headless, wanted=lambda facts: next(given))
    assert isinstance(outcome, Kept)
    assert (outcome.reason, outcome.would_retire) == ("the terminal wrote nothing", False)
    assert not is_gone(outcome)
    assert fake.goes_on


@pytest.mark.case("C79")
def test_waits_until_the_transcript_holds_what_the_log_shows(lab: Lab) -> None:
    """The process runs on, unsignalled, until its last messages are in the transcript; only then it is ended."""
    fake = lab.fake()
    states: list[str] = []

    def settled() -> bool:
        states.append(fake.state())
        return len(states) >= 4

    assert isinstance(lab.retire(fake.headless, settled=settled), Retirement)
    assert len(states) == 5
    assert "stopped" not in states[:4]
    assert not fake.alive


@pytest.mark.case("C79")
def test_not_settled_in_time_is_deferred(lab: Lab) -> None:
    """A transcript that never catches up keeps the process, without a signal."""
    lab.settings = Settings(settle_seconds=0.1)
    fake = lab.fake()
    outcome = lab.retire(fake.headless, settled=lambda: False)
    assert isinstance(outcome, Deferral)
    assert outcome.reason == "the transcript does not hold yet what the log shows"
    assert fake.goes_on
    assert lab.journal.attempts() == ()


@pytest.mark.case("C50")
def test_zombie_counts_as_exited(lab: Lab, system: str) -> None:
    """A process that exited and was not reaped is released without a look or a signal, and stays for its parent to reap."""
    fake = lab.fake()
    fake.kill_unreaped()
    outcome = lab.retire(fake.headless)
    assert isinstance(outcome, Kept)
    assert outcome.reason == ALREADY_EXITED
    assert is_gone(outcome)
    assert lab.looks == 0
    assert lab.host.gone == [fake.headless]
    assert fake.process.wait(5) == -signal.SIGKILL


@pytest.mark.parametrize(("look", "code"), [(FRESH, 143), ("idle", -signal.SIGKILL)], ids=["fresh", "stale"])
def test_stopped_by_somebody_else_and_idle_is_ended(lab: Lab, system: str, look: Look, code: int) -> None:
    """A process found stopped exits like any other when it is idle."""
    fake = lab.fake()
    fake.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, fake.headless.pid, os.WSTOPPED | os.WNOWAIT)
    outcome = lab.retire(fake.headless, look)
    assert isinstance(outcome, Retirement)
    assert outcome.exit_code == code


def test_stopped_by_somebody_else_and_busy_stays_stopped(lab: Lab, system: str) -> None:
    """Whoever stopped the process finds it stopped still, and no later start of a host continues it."""
    fake = lab.fake()
    fake.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, fake.headless.pid, os.WSTOPPED | os.WNOWAIT)
    assert isinstance(lab.retire(fake.headless, "idle", "busy"), Deferral)
    assert fake.state() == "stopped"
    assert [attempt.frozen for attempt in lab.journal.attempts()] == [False]


def test_shadow_mode_reports_and_touches_nothing(lab: Lab, heard: list[tuple[str, str, Any]]) -> None:
    """In shadow mode the verdict is reported as what would happen; no signal, no proposal, no journal."""
    fake = lab.fake()
    lab.settings = Settings(mode="shadow")
    outcome = lab.retire(fake.headless)
    assert isinstance(outcome, Kept)
    assert outcome.would_retire
    assert outcome.facts is not None
    assert outcome.facts.idleness == "idle"
    assert fake.goes_on
    assert not lab.journal.store.exists()
    assert [name for name, _, _ in heard] == ["headless_kept"]


def test_shadow_mode_says_no_more_than_would_happen(lab: Lab) -> None:
    """A busy process is deferred in shadow mode too, and would not be retired."""
    fake = lab.fake()
    lab.settings = Settings(mode="shadow")
    assert isinstance(lab.retire(fake.headless, "busy"), Deferral)


def test_shadow_mode_releases_nothing(lab: Lab) -> None:
    """In shadow mode a process that has exited is left for its host to find."""
    fake = lab.fake()
    fake.kill_unreaped()
    lab.settings = Settings(mode="shadow")
    outcome = lab.retire(fake.headless)
    assert isinstance(outcome, Kept)
    assert not is_gone(outcome)
    assert lab.host.gone == []


def test_process_that_cannot_be_stopped_is_let_go(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not stand still in time is deferred, and continued."""
    fake = lab.fake()
    lab.settings = Settings(freeze_seconds=0.02)
    monkeypatch.setattr(Handle, "stopped", lambda self: False)
    outcome = lab.retire(fake.headless)
    assert isinstance(outcome, Deferral)
    assert outcome.reason == "it could not be stopped for a second look"
    assert fake.goes_on


def test_signal_that_is_refused_is_a_failure(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel forbids ends as a recorded failure, not as an exception."""

    def forbid(self: Handle, signum: signal.Signals) -> bool:
        if signum == signal.SIGCONT:
            return True
        raise PermissionError(1, "Operation not permitted")

    fake = lab.fake()
    monkeypatch.setattr(Handle, "send", forbid)
    outcome = lab.retire(fake.headless)
    assert isinstance(outcome, RetirementFailure)
    assert (outcome.rung, outcome.reason) == ("freeze", "could not be signalled: Operation not permitted")
    assert [attempt.outcome for attempt in lab.journal.attempts()] == ["failed"]
    assert not lab.journal.retired_by_us(fake.headless.pid, fake.headless.start_time or 0)


@pytest.mark.parametrize(("look", "code"), [(FRESH, 143), ("idle", -signal.SIGKILL)], ids=["fresh", "stale"])
def test_exit_is_seen_although_the_host_reaps_at_once(lab: Lab, system: str, look: Look, code: int) -> None:
    """A host that collects its children by itself does not hide the exit; only the exit code may then be unknown."""
    handler = signal.signal(signal.SIGCHLD, lambda signum, frame: None)
    fake = lab.fake()
    signal.signal(signal.SIGCHLD, lambda signum, frame: fake.process.poll())
    try:
        outcome = lab.retire(fake.headless, look)
    finally:
        signal.signal(signal.SIGCHLD, handler)
    assert isinstance(outcome, Retirement)
    assert outcome.exit_code in (None, code)
    assert fake.process.wait(5) == code


def test_release_that_raises_does_not_undo_the_retirement(lab: Lab) -> None:
    """The process is gone whatever the host makes of it, and the outcome says so."""
    fake = lab.fake()

    def fail() -> None:
        raise RuntimeError("the host's table is locked")

    lab.host.on_release = fail
    assert isinstance(lab.retire(fake.headless), Retirement)
    assert [attempt.outcome for attempt in lab.journal.attempts()] == ["retired"]


def test_retired_process_is_no_longer_deferred(lab: Lab) -> None:
    """The deferrals of a process go with it."""
    fake, deferrals = lab.fake(), Deferrals(lab.journal.store)
    deferrals.add(fake.headless, mechanism="retire_stale.terminal_launch", reason="a terminal was opened", since=5.0)
    busy = lab.retire(fake.headless, "busy", "idle")
    assert isinstance(busy, Deferral)
    assert busy.since == 5.0
    assert isinstance(lab.retire(fake.headless), Retirement)
    assert deferrals.all() == ()
