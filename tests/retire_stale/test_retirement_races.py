"""What others do to a headless while it is being retired, and what a wrapper runs below the process that the host knows."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ccc_hookspecs.outcomes import Deferral, Facts, Kept, Retirement, RetirementFailure
from ccc_hookspecs.processes import start_time
from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.identity import state
from ccc_plugins.retire_stale.journal import AlreadyClaimed, Journal
from ccc_plugins.retire_stale.retirement import thaw
from ccc_plugins.retire_stale.signalling import Handle, Pack
from ccc_plugins.retire_stale.store import StoreError
from tests.retire_stale.conftest import FACTS

if TYPE_CHECKING:
    from tests.retire_stale.conftest import Fake, Lab, Look

FRESH = replace(FACTS["idle"], attribution="fresh")
"""What a look says of an idle headless that knows everything: it is told to end by SIGTERM, any other is killed."""


def test_process_that_somebody_continues_during_the_second_look_is_not_ended(lab: Lab, system: str) -> None:
    """What was seen of a process that did not stand still proves nothing, so no SIGTERM follows."""
    fake = lab.fake()

    def meddled_with() -> str:
        fake.process.send_signal(signal.SIGCONT)
        return "idle"

    outcome = lab.retire(fake.headless, "idle", meddled_with)
    assert isinstance(outcome, Deferral)
    assert outcome.reason == "it was continued during the second look"
    assert fake.goes_on


def test_process_that_somebody_continues_during_the_third_look_is_not_killed(lab: Lab, system: str) -> None:
    """The same before SIGKILL; the failure is recorded and the process is not released."""
    fake = lab.fake("--ignore-term")
    lab.settings = type(lab.settings)(terminate_seconds=0.1)

    def meddled_with() -> str:
        fake.process.send_signal(signal.SIGCONT)
        return "idle"

    outcome = lab.retire(fake.headless, FRESH, FRESH, meddled_with)
    assert isinstance(outcome, RetirementFailure)
    assert outcome.reason.endswith("was continued during another look")
    assert fake.goes_on
    assert lab.host.gone == []


def test_turn_that_came_and_went_before_the_stop_must_have_settled_too(lab: Lab) -> None:
    """When the transcript lags behind again at the stopped process, that is let go on."""
    fake = lab.fake()
    answers = iter([True])
    outcome = lab.retire(fake.headless, settled=lambda: next(answers, False))
    assert isinstance(outcome, Deferral)
    assert outcome.reason == "the transcript does not hold yet what the log shows"
    assert fake.goes_on


def test_what_need_not_settle_is_waited_for_and_then_ended(lab: Lab) -> None:
    """A process whose last answer will never stand in this transcript is ended after the wait."""
    lab.settings = replace(lab.settings, settle_seconds=0.1)
    fake = lab.fake()
    looks: list[str] = []

    def never() -> bool:
        looks.append(fake.state())
        return False

    assert isinstance(lab.retire(fake.headless, settled=never, must_settle=lambda: False), Retirement)
    assert len(looks) > 2


@pytest.mark.parametrize(("look", "end"), [(FRESH, signal.SIGTERM), ("idle", signal.SIGKILL)], ids=["fresh", "stale"])
def test_process_that_cannot_be_told_to_end_is_not_taken_for_gone(
    lab: Lab, system: str, monkeypatch: pytest.MonkeyPatch, look: Look, end: signal.Signals
) -> None:
    """A signal that was not sent, as when nothing can be read of the process any more, releases nothing."""
    fake = lab.fake()
    really = Handle.send
    monkeypatch.setattr(Handle, "send", lambda self, signum: signum != end and really(self, signum))
    outcome = lab.retire(fake.headless, look)
    assert isinstance(outcome, Deferral)
    assert outcome.reason == "it could not be told to end"
    assert lab.host.gone == []
    assert fake.goes_on


def below(fake: Fake, *children: int) -> tuple[tuple[int, float | None], ...]:
    return tuple((fake.children[one], fake.children_started[one]) for one in children)


@pytest.mark.parametrize("found", [FRESH, FACTS["idle"]], ids=["fresh", "stale"])
def test_what_a_wrapper_runs_ends_with_it(lab: Lab, system: str, found: Facts) -> None:
    """Both stand still at the second look, both are ended, and each has its intent in the journal."""
    fake = lab.fake("--wraps", "--children", "same", "same")
    states: list[str | None] = []

    def look() -> Facts:
        states.append(state(fake.children[0]))
        return found

    assert isinstance(lab.retire(fake.headless, "idle", look, below=lambda: below(fake, 0)), Retirement)
    assert states == ["T"]
    assert not fake.alive
    assert not fake.child_alive(0)
    assert fake.child_alive(1)
    assert {attempt.pid for attempt in lab.journal.attempts()} == {fake.headless.pid, fake.children[0]}
    assert {attempt.outcome for attempt in lab.journal.attempts()} == {"retired"}


def test_what_a_wrapper_runs_goes_on_with_it(lab: Lab, system: str) -> None:
    """When the second look finds work, neither is left stopped."""
    fake = lab.fake("--wraps", "--children", "same")
    assert isinstance(lab.retire(fake.headless, "idle", "busy", below=lambda: below(fake, 0)), Deferral)
    assert fake.goes_on
    assert state(fake.children[0]) == "S"


def test_an_interrupt_between_the_two_leaves_neither_stopped(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process below goes on first; what breaks in before the wrapper does too is made up for."""
    fake, send = lab.fake("--wraps", "--children", "same"), Handle.send
    broken: list[signal.Signals] = []

    def interrupted(self: Handle, signum: signal.Signals) -> bool:
        if signum == signal.SIGCONT and self.pid == fake.headless.pid and not broken:
            broken.append(signum)
            raise KeyboardInterrupt
        return send(self, signum)

    monkeypatch.setattr(Handle, "send", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lab.retire(fake.headless, "idle", "busy", below=lambda: below(fake, 0))
    assert broken
    assert fake.goes_on
    assert state(fake.children[0]) == "S"


def test_an_attempt_stays_open_while_the_process_cannot_be_continued(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it is found stopped later; and that it failed is said."""
    fake, send = lab.fake(), Handle.send

    def refused(self: Handle, signum: signal.Signals) -> bool:
        if signum == signal.SIGCONT:
            raise PermissionError(1, "Operation not permitted")
        return send(self, signum)

    with monkeypatch.context() as patched:
        patched.setattr(Handle, "send", refused)
        outcome = lab.retire(fake.headless, "idle", "busy")
    assert isinstance(outcome, RetirementFailure)
    assert [(attempt.outcome, attempt.frozen) for attempt in lab.journal.attempts()] == [(None, True)]
    assert [attempt.pid for attempt in thaw(lab.journal)] == [fake.headless.pid]
    assert fake.goes_on
    assert thaw(lab.journal) == ()


@pytest.mark.parametrize(("look", "kind"), [("busy", RetirementFailure), ("idle", Retirement)])
def test_a_wrapper_lives_as_long_as_what_it_runs(lab: Lab, look: str, kind: type[object]) -> None:
    """The process below alone is told to end; when it does not, both go on together or are killed together."""
    wrapper, worker = lab.fake(), lab.fake("--ignore-term")
    lab.settings = type(lab.settings)(terminate_seconds=0.1)
    outcome = lab.retire(wrapper.headless, FRESH, FRESH, look, below=lambda: ((worker.headless.pid, worker.headless.start_time),))
    assert isinstance(outcome, kind)
    assert (wrapper.goes_on, worker.goes_on) == ((True, True) if look == "busy" else (False, False))
    assert len(lab.host.gone) == (look == "idle")


@pytest.mark.parametrize("answer", ["raises", "another process", "unknown identity"])
def test_unless_it_is_known_what_must_end_with_it_nothing_is_signalled(lab: Lab, answer: str) -> None:
    """A wrapper whose processes cannot be told for sure is deferred untouched."""
    fake = lab.fake("--wraps", "--children", "same")

    def unsure() -> tuple[tuple[int, float | None], ...]:
        if answer == "raises":
            raise OSError("too many open files")
        return ((fake.children[0], fake.children_started[0] - 1 if answer == "another process" else None),)

    outcome = lab.retire(fake.headless, below=unsure)
    assert isinstance(outcome, Deferral)
    assert outcome.reason == "it is not known which processes must end with it"
    assert fake.goes_on
    assert lab.looks == 0


def test_what_runs_for_another_user_keeps_the_wrapper(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process below that is not ours is not signalled, and so its wrapper is not either."""
    fake = lab.fake("--wraps", "--children", "same")
    other = {fake.children[0]: os.getuid() + 1}
    monkeypatch.setattr("ccc_plugins.retire_stale.retirement.real_uid", lambda pid: other.get(pid, os.getuid()))
    outcome = lab.retire(fake.headless, below=lambda: below(fake, 0))
    assert isinstance(outcome, Kept)
    assert outcome.reason == "what runs below it is not known to run for this user"
    assert fake.goes_on


@pytest.mark.parametrize("error", [AlreadyClaimed(4242), StoreError(Path("journal"), "locked")], ids=lambda error: type(error).__name__)
def test_intent_that_can_only_be_recorded_in_part_signals_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """When one of the two intents cannot be recorded, the other is closed and both processes stay as they are."""
    fake = lab.fake("--wraps", "--children", "same")
    really = Journal.begin

    def begin(self: Journal, headless: Headless, **rest: object) -> int:
        if headless.pid != fake.headless.pid:
            raise error
        return really(self, headless, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Journal, "begin", begin)
    assert isinstance(lab.retire(fake.headless, below=lambda: below(fake, 0)), Kept)
    assert [attempt.outcome for attempt in lab.journal.attempts()] == ["kept"]
    assert fake.goes_on
    assert fake.child_alive(0)


def test_signal_that_one_process_refuses_still_reaches_the_others(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pack whose first process may not be signalled is continued all the same, and says that something was refused."""
    one, two = lab.fake(), lab.fake()
    really = Handle.send

    def send(self: Handle, signum: signal.Signals) -> bool:
        if self.pid == two.headless.pid:
            raise PermissionError(1, "Operation not permitted")
        return really(self, signum)

    with closing(Pack(Handle(one.headless.pid, one.headless.start_time))) as pack:
        assert pack.take_in([(two.headless.pid, start_time(two.headless.pid))])
        assert pack.send(signal.SIGSTOP)
        assert pack.wait_stopped(5)
        monkeypatch.setattr(Handle, "send", send)
        with pytest.raises(PermissionError):
            pack.send(signal.SIGCONT)
        monkeypatch.undo()
        assert one.goes_on
        pack.send(signal.SIGCONT)
