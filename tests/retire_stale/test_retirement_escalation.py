"""The ladder's last rungs: a process that SIGTERM does not end, and what may be ended with it."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from ccc_hookspecs.outcomes import Deferral, Kept, Retirement, RetirementFailure
from ccc_hookspecs.processes import start_time
from ccc_hookspecs.signals import retirement_proposed
from ccc_plugins.retire_stale.retirement import ALREADY_EXITED
from ccc_plugins.retire_stale.settings import Settings
from ccc_plugins.retire_stale.signalling import Handle
from tests.retire_stale.conftest import FACTS

if TYPE_CHECKING:
    from ccc_hookspecs.outcomes import Facts
    from tests.retire_stale.conftest import Fake, Lab

FRESH = replace(FACTS["idle"], attribution="fresh")
"""What a look says of an idle headless that knows everything: it is told to end by SIGTERM, any other is killed."""
SHORT = Settings(settle_seconds=0.1, terminate_seconds=0.15, kill_seconds=5.0)


@pytest.fixture
def impatient(lab: Lab) -> Lab:
    """A lab whose grace after SIGTERM is short."""
    lab.settings = SHORT
    return lab


def test_late_exit_within_the_grace_needs_no_kill(lab: Lab, system: str) -> None:
    """A process that takes its time after SIGTERM is waited for, and its own exit code stands."""
    fake = lab.fake("--exit-after", "0.3")
    outcome = lab.retire(fake.headless, FRESH)
    assert isinstance(outcome, Retirement)
    assert (outcome.rung, outcome.exit_code) == ("terminate", 143)
    assert outcome.seconds >= 0.3


@pytest.mark.case("C80")
def test_sigterm_ignored_ends_in_a_kill_after_another_look(impatient: Lab, system: str) -> None:
    """Past the grace the process is judged a third time, standing still, and then killed."""
    fake = impatient.fake("--ignore-term")
    states: list[str] = []

    def look() -> Facts:
        states.append(fake.state())
        return FRESH

    outcome = impatient.retire(fake.headless, look)
    assert isinstance(outcome, Retirement)
    assert (outcome.rung, outcome.exit_code) == ("kill", -signal.SIGKILL)
    assert states[1:] == ["stopped", "stopped"]
    assert [(attempt.outcome, attempt.rung) for attempt in impatient.journal.attempts()] == [("retired", "kill")]
    assert impatient.host.gone == [fake.headless]


@pytest.mark.case("C80")
@pytest.mark.parametrize("look", ["busy", "unknown"])
def test_work_begun_after_sigterm_is_not_killed(impatient: Lab, system: str, look: str) -> None:
    """A process that ignores SIGTERM and works again is a recorded failure; it goes on and is not released."""
    fake = impatient.fake("--ignore-term")
    outcome = impatient.retire(fake.headless, FRESH, FRESH, look)
    assert isinstance(outcome, RetirementFailure)
    assert outcome.rung == "kill"
    assert outcome.reason.startswith("did not exit within 0.15 s of SIGTERM, and is not killed: ")
    assert outcome.facts is not None
    assert outcome.facts.idleness == look
    assert fake.goes_on
    assert impatient.host.gone == []
    assert [attempt.outcome for attempt in impatient.journal.attempts()] == ["failed"]


def test_withdrawn_wish_stops_the_kill(impatient: Lab) -> None:
    """When the third look finds that the retirement is no longer wanted, the process lives."""
    fake, answers = impatient.fake("--ignore-term"), iter([None, None, "nothing foreign landed"])
    outcome = impatient.retire(fake.headless, FRESH, wanted=lambda facts: next(answers))
    assert isinstance(outcome, RetirementFailure)
    assert outcome.reason.endswith("is not killed: nothing foreign landed")
    assert fake.goes_on


@pytest.mark.case("C80")
def test_process_that_does_not_die_is_a_recorded_failure(impatient: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that outlives SIGKILL, as in uninterruptible sleep, is reported and not released, so that no second writer is started."""
    impatient.settings = Settings(terminate_seconds=0.1, kill_seconds=0.1)
    fake = impatient.fake("--ignore-term")
    monkeypatch.setattr(Handle, "send_to_group", lambda self, signum: True)
    outcome = impatient.retire(fake.headless, FRESH)
    assert isinstance(outcome, RetirementFailure)
    assert (outcome.rung, outcome.reason) == ("kill", "did not exit")
    assert impatient.host.gone == []
    assert fake.goes_on


def test_process_that_cannot_be_stopped_is_not_killed(impatient: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a last look at a process that stands still there is no SIGKILL."""
    fake = impatient.fake("--ignore-term")
    really, first = Handle.wait_stopped, iter([True])
    monkeypatch.setattr(Handle, "wait_stopped", lambda self, seconds: next(first, False) and really(self, seconds))
    outcome = impatient.retire(fake.headless, FRESH)
    assert isinstance(outcome, RetirementFailure)
    assert outcome.reason.endswith("could not be stopped for another look")
    assert fake.goes_on


def test_exit_during_the_last_stop_is_no_failure(impatient: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that exits just as it is stopped for the last look is retired by its SIGTERM."""
    fake = impatient.fake("--ignore-term")
    really, first = Handle.wait_stopped, iter([True])

    def wait_stopped(self: Handle, seconds: float) -> bool:
        if next(first, False):
            return really(self, seconds)
        fake.kill_unreaped()
        return False

    monkeypatch.setattr(Handle, "wait_stopped", wait_stopped)
    outcome = impatient.retire(fake.headless, FRESH)
    assert isinstance(outcome, Retirement)
    assert not fake.alive


@pytest.mark.case("C81", "C82")
def test_kill_takes_its_own_group_along_and_nothing_else(impatient: Lab, system: str) -> None:
    """What the killed process started in its group ends with it; its background session and another's servers go on."""
    fake = impatient.fake("--ignore-term", "--children", "same", "same", "own")
    terminal = impatient.fake("--children", "same")
    outcome = impatient.retire(fake.headless, FRESH)
    assert isinstance(outcome, Retirement)
    assert outcome.rung == "kill"
    _wait_until_gone(fake, 2)
    assert fake.child_alive(2)
    assert terminal.goes_on
    assert terminal.child_alive(0)


def _wait_until_gone(fake: Fake, children: int) -> None:
    """Wait for the end of the first children, which are nobody's to wait for here."""
    end = time.monotonic() + 10
    while any(fake.child_alive(index) for index in range(children)):
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.case("C82")
def test_process_in_our_own_group_is_killed_alone(impatient: Lab, system: str) -> None:
    """A headless that shares the host's group never causes a group signal: the host and the group's others live."""
    fake = impatient.fake("--ignore-term", "--children", "same", start_new_session=False)
    sibling = impatient.fake(start_new_session=False)
    assert os.getpgid(fake.headless.pid) == os.getpgrp()
    assert isinstance(impatient.retire(fake.headless, FRESH), Retirement)
    assert sibling.goes_on
    assert fake.child_alive(0)


@pytest.mark.case("C82")
def test_process_in_a_foreign_group_is_killed_alone(impatient: Lab, system: str) -> None:
    """A headless in a group that another process leads does not take that group along."""
    # A group can only be joined within one session, so both are of ours.
    leader = impatient.fake(start_new_session=False, process_group=0)
    fake = impatient.fake("--ignore-term", start_new_session=False, process_group=leader.headless.pid)
    assert os.getpgid(fake.headless.pid) == leader.headless.pid
    assert isinstance(impatient.retire(fake.headless, FRESH), Retirement)
    assert leader.goes_on


@pytest.mark.parametrize("at", ["judge", "veto", "settle", "rejudge"])
def test_process_that_dies_on_the_way_down_is_released_as_exited(lab: Lab, system: str, at: str) -> None:
    """At whichever rung somebody else ends it, the outcome is that it exited, and not that we retired it."""
    fake = lab.fake()

    def die_at(rung: str) -> str:
        if rung == at:
            fake.kill_unreaped()
        return "idle"

    def proposed(sender: str, event: Any) -> None:
        die_at("veto")

    with retirement_proposed.connected_to(proposed):
        outcome = lab.retire(fake.headless, lambda: die_at("judge"), lambda: die_at("rejudge"), settled=lambda: die_at("settle") == "idle")
    assert isinstance(outcome, Kept)
    assert outcome.reason == ALREADY_EXITED
    assert lab.host.gone == [fake.headless]
    assert not lab.journal.retired_by_us(fake.headless.pid, fake.headless.start_time or 0)


def test_process_that_dies_while_it_settles_is_not_waited_for(lab: Lab) -> None:
    """The exit ends the wait for a transcript that will not change any more."""
    lab.settings = Settings(settle_seconds=30)
    fake = lab.fake()

    def settled() -> bool:
        fake.kill_unreaped() if fake.alive else None
        return False

    outcome = lab.retire(fake.headless, settled=settled)
    assert isinstance(outcome, Kept)
    assert outcome.reason == ALREADY_EXITED


@pytest.mark.parametrize("question", ["judge", "settled", "wanted"])
def test_question_that_raises_leaves_the_process_alone(lab: Lab, question: str) -> None:
    """Evidence that cannot be read is unknown, which keeps the process and reaches no caller."""
    lab.settings = SHORT
    fake = lab.fake()

    def fail(*args: object) -> Any:
        raise OSError("the transcript's disk is gone")

    outcome = lab.retire(fake.headless, fail) if question == "judge" else lab.retire(fake.headless, **{question: fail})
    assert isinstance(outcome, Deferral | Kept)
    assert fake.goes_on
    assert lab.journal.attempts() == ()


def test_judge_that_raises_at_the_stopped_process_lets_it_go_on(lab: Lab, system: str) -> None:
    """An error between SIGSTOP and SIGTERM ends in SIGCONT and a deferral."""
    fake = lab.fake()

    def fail() -> str:
        raise RuntimeError("no more memory")

    outcome = lab.retire(fake.headless, "idle", fail)
    assert isinstance(outcome, Deferral)
    assert outcome.facts.idleness == "unknown"
    assert fake.goes_on


def test_interrupt_at_the_stopped_process_lets_it_go_on(lab: Lab, system: str) -> None:
    """Ctrl-C in the host between SIGSTOP and SIGTERM goes up as it should, and leaves nothing stopped."""
    fake = lab.fake()

    def interrupted() -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lab.retire(fake.headless, "idle", interrupted)
    assert fake.goes_on
    assert [(attempt.outcome, attempt.frozen) for attempt in lab.journal.attempts()] == [("interrupted", False)]


def test_a_second_interrupt_at_the_stopped_process_lets_it_go_on_too(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """It breaks into the moment at which the process is continued; the journal is closed only when it runs."""
    fake, wait_exit = lab.fake(), Handle.wait_exit
    breaks: list[int] = []

    def interrupted() -> str:
        breaks.append(1)
        raise KeyboardInterrupt

    def interrupted_again(self: Handle, seconds: float) -> bool:
        if breaks and len(breaks) < 2 and self.stopped():
            interrupted()
        return wait_exit(self, seconds)

    monkeypatch.setattr(Handle, "wait_exit", interrupted_again)
    with pytest.raises(KeyboardInterrupt):
        lab.retire(fake.headless, "idle", interrupted)
    assert len(breaks) == 2
    assert fake.state() != "stopped"
    assert [(attempt.outcome, attempt.frozen) for attempt in lab.journal.attempts()] == [("interrupted", False)]


def test_unreadable_process_table_does_not_leave_it_stopped(lab: Lab, system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was stopped is continued even when its identity cannot be read any more, as with all descriptors in use."""
    fake = lab.fake()
    readable = [True]
    monkeypatch.setattr("ccc_plugins.retire_stale.identity.start_time", lambda pid: start_time(pid) if readable[0] else None)

    def blind() -> str:
        readable[0] = False
        return "unknown"

    assert isinstance(lab.retire(fake.headless, "idle", blind), Deferral)
    readable[0] = True
    assert fake.goes_on
