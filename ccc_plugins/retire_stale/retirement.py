"""Ending one headless: the ladder from verdict to confirmed exit. With `thawing` the only code of the plugin that signals a process."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

from ccc_hookspecs.outcomes import Deferral, Facts, Healed, Kept, Outcome, Proposal, Retirement, RetirementFailure, Rung
from ccc_hookspecs.signals import emit, retirement_proposed
from ccc_hookspecs.specs import Host
from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.deferrals import Deferrals
from ccc_plugins.retire_stale.identity import child_exit_code, never_signalled, real_uid
from ccc_plugins.retire_stale.journal import AlreadyClaimed, Ending, Journal
from ccc_plugins.retire_stale.order import UNREADABLE, Order, Process
from ccc_plugins.retire_stale.reporter import Reporter
from ccc_plugins.retire_stale.settings import Settings
from ccc_plugins.retire_stale.signalling import Handle, Pack
from ccc_plugins.retire_stale.store import StoreError
from ccc_plugins.retire_stale.thawing import thaw

log = logging.getLogger(__name__)

__all__ = ["ALREADY_EXITED", "Order", "deferred_since", "is_gone", "retire", "thaw"]

ALREADY_EXITED = "already exited"
"""The reason of a `Kept` whose process was found gone: it is `released`, and a fresh one may be started."""

SETTLE_LOOK_SECONDS = 0.02
"""Seconds between two looks at whether the transcript has caught up with the log."""


def retire(ccc: Host, order: Order, settings: Settings, journal: Journal, reporter: Reporter | None = None) -> Outcome:
    """Retire an idle headless, or say why not; the outcome is logged and sent as a signal through `reporter`.

    The caller holds the session's lock. `reporter` None says every outcome, also a repeated one.

    `Retirement`: the process is gone and `released`. `Deferral`: it is busy or may be; it was left as it was found.
    `Kept`: with the reason; with `ALREADY_EXITED` it is gone and `released` (see `is_gone`). `RetirementFailure`: it lives
    although it was signalled, or could not be signalled.

    A process that is told to end writes into its session as it ends, and that leads every later `--resume` to its own branch. So only
    one that is known to be fresh is told. Any other is killed while it stands still, and what it started is told to end.

    Only the process of that pid and start time is signalled, with those that `Order.below` and `Order.descendants` name, and only after
    the intent is in the journal. It is never reaped. One that somebody else had stopped is judged like any other: idle, it is ended; else
    it stays stopped. In shadow mode nothing is signalled, `released` or recorded.
    """
    reporter = reporter or Reporter()
    outcome = _Ladder(ccc, order, settings, journal, reporter).climb()
    reporter.report(outcome)
    return outcome


def is_gone(outcome: Outcome) -> bool:
    """Whether the process is gone and `released` after this outcome, so that a fresh one may be started."""
    return isinstance(outcome, Retirement) or (isinstance(outcome, Kept) and outcome.reason == ALREADY_EXITED)


def deferred_since(headless: Headless, mechanism: str, reporter: Reporter, deferrals: Deferrals) -> float:
    """When a deferral of this process that is said now began, in seconds since the epoch: as it was said or stored first, else now."""
    return reporter.since(headless, mechanism) or deferrals.since(headless) or time.time()


class _Ladder:
    """One retirement. Each step answers the outcome that ends it, or None to go on."""

    def __init__(self, ccc: Host, order: Order, settings: Settings, journal: Journal, reporter: Reporter) -> None:
        self._ccc, self._order, self._settings, self._journal = ccc, order, settings, journal
        self._headless = order.headless
        self._below: tuple[Process, ...] = ()
        self._deferrals = Deferrals(journal.store)
        self._facts: Facts | None = None
        self._rung: Rung = "judge"
        self._verdict_at = time.monotonic()
        self._since = deferred_since(order.headless, order.mechanism, reporter, self._deferrals)
        self._wake = True
        self._ended: tuple[float, int | None] = (0.0, None)

    def climb(self) -> Outcome:
        with closing(Pack(Handle(self._headless.pid, self._headless.start_time))) as self._process:
            steps = (self._check_identity, self._check_below, self._judge, self._propose, self._settle)
            return next((outcome for step in steps if (outcome := step()) is not None), None) or self._end_recorded()

    def _enter(self, rung: Rung) -> None:
        self._rung = rung
        log.debug("%s: process %d of session %s: %s", self._order.mechanism, self._headless.pid, self._headless.session_id, rung)

    # --- before anything is signalled

    def _check_identity(self) -> Outcome | None:
        self._enter("identity")
        if (reason := never_signalled(self._headless)) is not None:
            return self._kept(reason)
        found = self._process.presence()
        if found != "alive":
            return self._exited() if found == "gone" else self._kept("identity unknown")
        return None if real_uid(self._headless.pid) == os.getuid() else self._kept("not known to run for this user")

    def _check_below(self) -> Outcome | None:
        self._facts = UNREADABLE
        below = self._order.processes_below()
        if below is None or not self._process.take_in(below):
            return self._deferral("it is not known which processes must end with it")
        self._below, self._facts = below, None
        others = [pid for pid, _ in below if real_uid(pid) != os.getuid()]
        return self._kept("what runs below it is not known to run for this user") if others else None

    def _judge(self) -> Outcome | None:
        self._enter("judge")
        outcome = self._look()
        self._verdict_at = time.monotonic()
        return self._kept("shadow mode", would_retire=True) if outcome is None and self._settings.mode == "shadow" else outcome

    def _look(self) -> Kept | Deferral | None:
        """Judge the process as it is now; None when it is idle and still to be retired."""
        self._facts = facts = self._order.facts()
        if (reason := self._order.objection(facts)) is not None:
            return self._kept(reason)
        return None if facts.idleness == "idle" else self._deferral("busy" if facts.idleness == "busy" else "idleness unknown")

    def _propose(self) -> Outcome | None:
        mechanism, facts = self._order.mechanism, self._known_facts()
        proposal = Proposal(headless=self._headless, mechanism=mechanism, reason=self._order.reason, facts=facts)
        vetoes = emit(retirement_proposed, mechanism, proposal)
        return self._kept(f"vetoed: {vetoes[0].reason}") if vetoes else None

    def _settle(self) -> Outcome | None:
        self._enter("settle")
        end = time.monotonic() + self._settings.settle_seconds
        while not self._order.is_settled():
            if self._process.wait_exit(SETTLE_LOOK_SECONDS):
                return self._exited()
            if time.monotonic() >= end:
                return self._unsettled()
        return None

    def _unsettled(self) -> Deferral | None:
        return self._deferral("the transcript does not hold yet what the log shows") if self._order.may_wait() else None

    # --- with the intent recorded

    def _end_recorded(self) -> Outcome:
        self._enter("freeze")
        try:
            attempts = self._begin()
        except AlreadyClaimed as error:
            return self._kept(str(error))
        except StoreError as error:
            return self._kept(f"the journal cannot be used: {error}")
        outcome: Outcome | None = None
        try:
            outcome = self._end()
            return outcome
        finally:
            code, runs = outcome.exit_code if isinstance(outcome, Retirement) else None, False
            try:
                runs = self._leave_running()
            finally:
                if runs:
                    self._finish(attempts, _ending(outcome), code)
                else:
                    self._journal.leave_open(attempts)

    def _begin(self) -> list[int]:
        """Record the intent: an attempt for each process that will be signalled, that of the headless itself first."""
        processes = [(self._headless.pid, self._headless.start_time), *self._below]
        # In this order: a thaw in between then leaves us with a process that we stop ourselves.
        stopped_by_us = any(self._journal.may_be_frozen(pid, started or 0) for pid, started in processes)
        self._wake = stopped_by_us or not self._process.stopped()
        begun: list[int] = []
        try:
            for pid, started in processes:
                of = replace(self._headless, pid=pid, start_time=started)
                begun.append(self._journal.begin(of, mechanism=self._order.mechanism, reason=self._order.reason, freezes=self._wake))
        except (AlreadyClaimed, StoreError):
            self._finish(begun, "kept", None)
            raise
        return begun

    def _finish(self, attempts: list[int], ending: Ending, exit_code: int | None) -> None:
        for attempt in attempts:
            self._journal.finish(attempt, outcome=ending, rung=self._rung, exit_code=exit_code if attempt == attempts[0] else None)

    def _end(self) -> Outcome:
        try:
            return self._terminate() or self._kill() or self._await_end() or self._retired()
        except OSError as error:
            return self._failure(f"could not be signalled: {error.strerror}")

    @contextmanager
    def _frozen(self) -> Iterator[bool]:
        """The process stands still inside. Yields False when it does not: it has exited, or did not stop in time."""
        try:
            yield self._process.send(signal.SIGSTOP) and self._process.wait_stopped(self._settings.freeze_seconds)
        finally:
            if self._wake:
                self._process.send(signal.SIGCONT)

    def _leave_running(self) -> bool:
        """Continue what is still stopped because something, such as a second ^C, broke into the end of the second look; True when that may
        be done with. Where it is broken off too, or refused, the attempt stays open, so that the process is continued later.
        """
        try:
            if self._wake:
                self._process.send(signal.SIGCONT)
        except OSError:
            log.exception("process %d of session %s could not be continued", self._headless.pid, self._headless.session_id)
            return False
        return True

    def _terminate(self) -> Outcome | None:
        """Send the stopped process, if it is idle, SIGTERM where it is fresh, SIGKILL where that is not known; None when sent."""
        with self._frozen() as stopped:
            if not stopped:
                return self._exited() if self._process.wait_exit(0) else self._deferral("it could not be stopped for a second look")
            self._enter("rejudge")
            if (outcome := self._look()) is not None:
                return outcome
            # A turn may have come and gone since the wait, or another program may have continued the process.
            if not self._order.is_settled() and (outcome := self._unsettled()) is not None:
                return outcome
            fresh = self._known_facts().attribution == "fresh"
            if not fresh:
                self._take_along()
            if not self._process.stopped():
                return self._exited() if self._process.wait_exit(0) else self._deferral("it was continued during the second look")
            self._enter("terminate" if fresh else "kill")
            self._wake = True
            if self._process.end(signal.SIGTERM if fresh else signal.SIGKILL):
                return None
            return self._exited() if self._process.wait_exit(0) else self._deferral("it could not be told to end")

    def _take_along(self) -> None:
        """Look for what the stopped process started, so that it ends with it."""
        found = self._order.descendants_of(self._below or ((self._headless.pid, self._headless.start_time),))
        if found is None:
            log.warning("%s: it is not known what process %d started: that one alone is ended", self._order.mechanism, self._headless.pid)
            return
        self._process.take_along(process for process in found if self._is_ours(process))

    def _is_ours(self, process: Process) -> bool:
        pid, started = process
        return never_signalled(replace(self._headless, pid=pid, start_time=started)) is None and real_uid(pid) == os.getuid()

    def _kill(self) -> Outcome | None:
        """Send SIGKILL to a process that SIGTERM did not end in time, if it is idle still; None when it was sent, or was not needed."""
        if self._rung != "terminate" or self._process.wait_exit(self._settings.terminate_seconds):
            return None
        self._enter("kill")
        late = f"did not exit within {self._settings.terminate_seconds:g} s of SIGTERM"
        with self._frozen() as stopped:
            if not stopped:
                return None if self._process.wait_exit(0) else self._failure(f"{late}, and could not be stopped for another look")
            if (outcome := self._look()) is not None:
                return self._failure(f"{late}, and is not killed: {outcome.reason}")
            if not self._process.stopped():
                return self._failure(f"{late}, and was continued during another look")
            log.warning("%s: process %d %s: SIGKILL", self._order.mechanism, self._headless.pid, late)
            self._process.send_to_group(signal.SIGKILL)
        return None

    def _await_end(self) -> Outcome | None:
        """Wait for the exit, and see to the end of what was taken along; None when the process has exited."""
        gone = self._process.wait_exit(self._settings.kill_seconds)
        self._ended = time.monotonic() - self._verdict_at, child_exit_code(self._headless.pid)
        self._process.end_along(self._settings.terminate_seconds)
        return None if gone else self._failure("did not exit")

    # --- outcomes

    def _retired(self) -> Retirement:
        seconds, exit_code = self._ended
        self._release()
        order, facts = self._order, self._known_facts()
        return Retirement(
            headless=self._headless,
            mechanism=order.mechanism,
            reason=order.reason,
            facts=facts,
            rung=self._rung,
            seconds=seconds,
            exit_code=exit_code,
        )

    def _exited(self) -> Kept:
        if self._settings.mode == "shadow":
            return self._kept("shadow mode; it has exited, and is for its host to find")
        if (reason := self._order.objection_to_exit()) is not None:
            return self._kept(reason)
        self._release()
        return self._kept(ALREADY_EXITED)

    def _release(self) -> None:
        log.debug("%s: process %d of session %s: released", self._order.mechanism, self._headless.pid, self._headless.session_id)
        try:
            self._ccc.released(self._headless)
        except Exception:  # the process is gone, whatever the host makes of it
            log.exception("the host failed to release process %d of session %s", self._headless.pid, self._headless.session_id)
        self._deferrals.drop(self._headless)

    def _kept(self, reason: str, *, would_retire: bool = False) -> Kept:
        mechanism = self._order.mechanism
        return Kept(headless=self._headless, mechanism=mechanism, reason=reason, facts=self._facts, would_retire=would_retire)

    def _deferral(self, reason: str) -> Deferral:
        mechanism, facts = self._order.mechanism, self._known_facts()
        return Deferral(headless=self._headless, mechanism=mechanism, reason=reason, facts=facts, since=self._since)

    def _failure(self, reason: str) -> RetirementFailure:
        mechanism, facts = self._order.mechanism, self._facts
        return RetirementFailure(headless=self._headless, mechanism=mechanism, reason=reason, rung=self._rung, facts=facts)

    def _known_facts(self) -> Facts:
        assert self._facts is not None
        return self._facts


def _ending(outcome: Outcome | None) -> Ending:
    match outcome:
        case Retirement():
            return "retired"
        case Deferral():
            return "deferred"
        case Kept():
            return "exited" if outcome.reason == ALREADY_EXITED else "kept"
        case RetirementFailure():
            return "failed"
        case Healed() | None:  # what ends a process heals none
            return "interrupted"
