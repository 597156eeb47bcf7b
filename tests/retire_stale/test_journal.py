"""What the journal says about retirements, and whom it lets begin one."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace

import pytest

from ccc_hookspecs.outcomes import Rung
from ccc_hookspecs.processes import start_time
from ccc_plugins.retire_stale.journal import AlreadyClaimed, Ending, Journal
from tests.retire_stale.conftest import HEADLESS, PID, STARTED, begin


def test_intent_and_its_end_are_kept_whole(journal: Journal) -> None:
    """An attempt holds who, why and since when from its begin, and how it ended from its finish."""
    attempt = begin(journal)
    (opened,) = journal.attempts()
    assert (opened.pid, opened.start_time, opened.session_id) == (PID, STARTED, HEADLESS.session_id)
    assert (opened.mechanism, opened.reason, opened.frozen) == ("retire_stale.watcher", "a terminal took a turn", True)
    assert (opened.host_pid, opened.host_start_time) == (os.getpid(), start_time(os.getpid()))
    assert (opened.rung, opened.outcome, opened.ended_at) == (None, None, None)
    assert journal.finish(attempt, outcome="retired", rung="terminate", exit_code=143)
    (closed,) = journal.attempts()
    assert (closed.outcome, closed.rung, closed.exit_code, closed.frozen) == ("retired", "terminate", 143, False)
    assert closed.ended_at is not None
    assert closed.ended_at >= closed.began_at == opened.began_at


@pytest.mark.case("C83")
@pytest.mark.parametrize(
    ("outcome", "rung", "ours"),
    [
        (None, "freeze", True),
        ("retired", "terminate", True),
        ("retired", "kill", True),
        ("failed", "terminate", True),
        ("failed", "kill", True),
        ("failed", "freeze", False),
        ("deferred", "rejudge", False),
        ("kept", "rejudge", False),
        ("exited", "freeze", False),
        ("interrupted", "rejudge", False),
        ("interrupted", "terminate", True),
    ],
)
def test_exit_is_ours_only_when_we_may_have_ended_it(journal: Journal, outcome: Ending | None, rung: Rung, ours: bool) -> None:
    """An open intent, a retirement and an attempt that had sent SIGTERM claim the exit; every other end leaves it to somebody else."""
    attempt = begin(journal)
    if outcome is not None:
        journal.finish(attempt, outcome=outcome, rung=rung)
    assert journal.retired_by_us(PID, STARTED) is ours
    assert not journal.retired_by_us(PID, STARTED + 0.01)
    assert not journal.retired_by_us(PID + 1, STARTED)


def test_last_attempt_decides_whose_exit_it_is(journal: Journal) -> None:
    """A later attempt that let the process go takes back what an earlier one claimed."""
    journal.finish(begin(journal), outcome="failed", rung="kill")
    journal.finish(begin(journal), outcome="deferred", rung="rejudge")
    assert not journal.retired_by_us(PID, STARTED)


def test_closed_attempt_stays_as_it_was_closed(journal: Journal) -> None:
    """A second finish does not overwrite the first."""
    attempt = begin(journal)
    journal.finish(attempt, outcome="retired", rung="kill")
    journal.finish(attempt, outcome="deferred", rung="rejudge")
    assert [one.outcome for one in journal.attempts()] == ["retired"]


def test_frozen_mark_lasts_as_long_as_the_attempt(journal: Journal) -> None:
    """A process may be frozen by us from its intent to its end, and not when the intent says that it was stopped before."""
    attempt = begin(journal)
    assert journal.may_be_frozen(PID, STARTED)
    journal.finish(attempt, outcome="deferred", rung="rejudge")
    assert not journal.may_be_frozen(PID, STARTED)
    begin(journal, freezes=False)
    assert not journal.may_be_frozen(PID, STARTED)


@pytest.mark.case("C89")
def test_open_intent_of_a_live_host_is_a_claim(journal: Journal) -> None:
    """While another process that lives has an open intent, nobody else gets one on the same headless, but on others."""
    begin(journal)
    with sleeper() as other:
        _hand_over(journal, other.pid, start_time(other.pid))
        with pytest.raises(AlreadyClaimed) as caught:
            begin(journal)
        assert caught.value.host_pid == other.pid
        begin(journal, replace(HEADLESS, start_time=18.0))
        other.kill()
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        begin(journal)
    assert [one.outcome for one in journal.attempts()] == [None, None, "abandoned"]


def test_claim_of_a_host_of_unknown_identity_stands_while_its_pid_is_in_use(journal: Journal) -> None:
    """Unknown is not dead: only a pid that nobody uses frees the claim."""
    begin(journal)
    with sleeper() as other:
        _hand_over(journal, other.pid, None)
        with pytest.raises(AlreadyClaimed):
            begin(journal)
        other.kill()
        other.wait(5)
        begin(journal)


def test_own_intent_that_could_not_be_closed_does_not_block(journal: Journal) -> None:
    """An open intent of this very process is taken over, since the session's lock lets only one thread come here."""
    begin(journal)
    begin(journal)
    assert [one.outcome for one in journal.attempts()] == [None, "abandoned"]


def sleeper() -> subprocess.Popen[bytes]:
    return _Sleeper(["sleep", "60"])


class _Sleeper(subprocess.Popen[bytes]):
    def __exit__(self, *args: object) -> None:
        self.kill()
        self.wait(10)


def _hand_over(journal: Journal, pid: int, started: float | None) -> None:
    """Make the open attempts another host's."""
    with journal.store.writing() as db:
        db.execute("UPDATE attempts SET host_pid = ?, host_start_time = ? WHERE outcome IS NULL", (pid, started))
