"""From a headless to an outcome: evidence, judgement, retirement. What the three mechanisms share, for one host."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ccc_hookspecs.outcomes import Deferral, Facts, Healed, Kept, Outcome, Proposal, RetirementFailure, Veto
from ccc_hookspecs.signals import emit, healing_proposed
from ccc_hookspecs.specs import Host
from ccc_hookspecs.values import Headless, Tick
from ccc_plugins.retire_stale.catch_up import catch_up
from ccc_plugins.retire_stale.deferrals import Deferrals
from ccc_plugins.retire_stale.evidence.branches import read_tree, turns_of
from ccc_plugins.retire_stale.evidence.checkpoints import Checkpoints
from ccc_plugins.retire_stale.evidence.children import descendants
from ccc_plugins.retire_stale.evidence.evidence import Evidence
from ccc_plugins.retire_stale.evidence.frames import Frame
from ccc_plugins.retire_stale.evidence.observer import Judgement
from ccc_plugins.retire_stale.healing import Patient, Unfinished, give
from ccc_plugins.retire_stale.holds import Holds
from ccc_plugins.retire_stale.identity import state
from ccc_plugins.retire_stale.journal import Journal
from ccc_plugins.retire_stale.judgement.branches import Tree, lacking, resumed_leaf
from ccc_plugins.retire_stale.judgement.history import Lack, takes_history
from ccc_plugins.retire_stale.judgement.idleness import sign_kind
from ccc_plugins.retire_stale.order import Order, Process
from ccc_plugins.retire_stale.reporter import Reporter
from ccc_plugins.retire_stale.retirement import is_gone, retire, thaw
from ccc_plugins.retire_stale.settings import Settings
from ccc_plugins.retire_stale.sightings import Sightings

if TYPE_CHECKING:
    from ccc_plugins.retire_stale.evidence.surroundings import View

__all__ = ["NOT_ITS_HEADLESS", "Flow", "Wanted", "is_gone", "waits_for"]

log = logging.getLogger(__name__)

FAILED_REST_SECONDS = 60.0
"""How long a process that could not be ended is let alone by ticks and launches; each attempt takes its session for some seconds."""

TELLS_RELEASE_SECONDS = 5.0
"""How long a process that was just started may take to tell its release in the registry; 0.3 to 0.9 s were measured."""
TELLS_RELEASE_LOOK = 0.05
"""Seconds between two looks for it."""

NOT_ITS_HEADLESS = "no longer the session's headless"
"""The reason of a `Kept` for a process that the host knows for this session no more."""

Wanted = Callable[[Judgement], str | None]
"""None when a judgement still asks for the retirement, else the reason to keep the process."""


class Flow:
    """The evidence, the journal and the memory of one host, and what is done with them. Making one reads and starts nothing."""

    def __init__(self, state_dir: Path, settings: Settings) -> None:
        self.settings = settings
        self.evidence = Evidence(settings.cpu_look_seconds, Checkpoints(state_dir / "retire_stale.checkpoints"))
        self.journal = Journal(state_dir)
        self.deferrals = Deferrals(self.journal.store)
        self.reporter = Reporter()
        self.holds = Holds()
        self.sightings = Sightings()
        self._rests: dict[tuple[int, float | None], float] = {}
        self._whole: set[tuple[int, float | None]] = set()
        self._healing_rests: dict[tuple[int, float | None], float] = {}
        self._view: View | None = None
        self._tick: Tick | None = None

    def mend(self) -> None:
        """Continue the processes that a host which died meanwhile left stopped."""
        thaw(self.journal)

    def mend_stopped(self, headless: Headless) -> None:
        """The same when this headless stands still: a host that died may be why, and nothing that is written to it would be answered."""
        if state(headless.pid) == "T":
            self.mend()

    def begin(self, tick: Tick) -> None:
        """The first of the mechanisms that get a tick looks anew for what is to be mended, and so at the processes."""
        if self._tick != tick:
            self._tick, self._view = tick, None
            self.mend()

    def view(self) -> View:
        """The processes at the tick that began last: one snapshot, shared by the mechanisms that it calls."""
        if self._view is None:
            self._view = self.evidence.probe.view()
        return self._view

    def retire(
        self,
        ccc: Host,
        headless: Headless,
        *,
        mechanism: str,
        reason: str,
        wanted: Wanted,
        overruled: frozenset[str] | None = None,
        view: View | None = None,
    ) -> Outcome:
        """Retire a headless if it is idle and `wanted`. The caller holds the session's lock, and took the value with it held.

        `overruled`: the kinds of signs of work (`sign_kind`) that a person chose to end; only a sign of another kind keeps it busy then.
        `view`: the processes for the first look; every later one looks anew.
        """
        look = _Look(self.evidence, ccc, headless, wanted, overruled, view)
        order = Order(
            headless=headless,
            mechanism=mechanism,
            reason=reason,
            judge=look.facts,
            settled=lambda: self.evidence.settled(ccc, headless),
            wanted=look.objection,
            must_settle=look.must_settle,
            below=look.below,
            descendants=look.descendants,
            left_behind=lambda: self.evidence.probe.view().left_behind(headless),
        )
        return retire(ccc, order, self.settings, self.journal, self.reporter)

    def retire_for_terminal(
        self, ccc: Host, headless: Headless, *, mechanism: str, reason: str, lock_seconds: float, view: View | None = None
    ) -> Outcome:
        """Retire an idle headless for the sake of a terminal, taking the session's lock. Raises `SessionLockTimeout`.

        The host is asked for the headless again with the lock held: before, a text may have been on its way into it.
        """
        with ccc.session_lock(headless.session_id, lock_seconds):
            now = _as_known_now(ccc, headless)
            if now is None:
                return Kept(headless=headless, mechanism=mechanism, reason=NOT_ITS_HEADLESS)
            if time.monotonic() < self._rests.get((now.pid, now.start_time), 0.0):
                return Kept(headless=headless, mechanism=mechanism, reason="it could not be ended a moment ago")
            self._heal_before_the_end(ccc, now, mechanism, reason, view)
            outcome = self.retire(ccc, now, mechanism=mechanism, reason=reason, wanted=_on_disk, view=view)
        if is_gone(outcome):
            self.forget(now)
        elif isinstance(outcome, RetirementFailure):
            self._rests[now.pid, now.start_time] = time.monotonic() + FAILED_REST_SECONDS
        return outcome

    def _heal_before_the_end(self, ccc: Host, headless: Headless, mechanism: str, reason: str, view: View | None) -> None:
        """Where whoever reads the transcript next would lack turns, have the process that is about to be ended bring them together."""
        if self.settings.heal == "never" or self.settings.mode == "shadow" or self.evidence.is_fresh(ccc, headless):
            return
        judgement = self.evidence.judge(ccc, headless, view)
        if judgement.idleness.verdict == "idle" and judgement.may_heal and self.lack(ccc, headless)[0].forked:
            self.heal(ccc, headless, judgement, mechanism=mechanism, reason=reason)

    def lack(self, ccc: Host, headless: Headless, *, settle: bool = False) -> tuple[Lack, tuple[Frame, ...]]:
        """As `Evidence.lack`; that it cannot be told, where it cannot."""
        try:
            return self.evidence.lack(ccc, headless, settle=settle)
        except Exception:  # whatever a transcript holds, what is left is to go on without
            log.exception("session %s: what its process lacks could not be told", headless.session_id)
            return Lack(obstacle="what it lacks cannot be told"), ()

    def heal(self, ccc: Host, headless: Headless, judgement: Judgement, *, mechanism: str, reason: str) -> str | None:
        """Give a headless what it lacks; None when it has all of it now, else why not. The caller holds the session's lock.

        `judgement`: of the process as it is now, which says that this may be done (`may_heal`).
        """
        key, began_at = (headless.pid, headless.start_time), time.monotonic()
        if began_at < self._healing_rests.get(key, 0.0):
            return "it did not take what it was given a moment ago"
        vetoes: tuple[Veto, ...] | None = None
        given, turns = 0, tuple[str, ...]()
        while True:
            missing, frames = self.lack(ccc, headless, settle=True)
            if missing.obstacle is not None:
                return missing.obstacle
            if not frames:
                break
            if sum(len(frame.line) for frame in frames) > self.settings.heal_limit << 20:
                return "it lacks more than may be given at once"
            if vetoes is None:
                proposal = Proposal(headless=headless, mechanism=mechanism, reason=reason, facts=judgement.facts())
                if vetoes := emit(healing_proposed, mechanism, proposal):
                    return f"vetoed: {vetoes[0].reason}"
            try:
                self._give(ccc, headless, frames, began_at)
            except Unfinished as error:
                log.warning("%s: session %s: process %d was not healed: %s", mechanism, headless.session_id, headless.pid, error)
                self._healing_rests[key] = time.monotonic() + FAILED_REST_SECONDS
                return str(error)
            headless = _as_known_now(ccc, headless) or headless
            given, turns = given + len(frames), (*turns, *missing.turns)
        if given:
            self._report_healing(headless, judgement, mechanism, reason, turns, given, time.monotonic() - began_at)
        return None if self.evidence.is_fresh(ccc, headless) else "it does not know everything yet"

    def is_whole(self, headless: Headless) -> bool:
        """Whether it was seen that this process read everything that was said before it was started, or cannot be given the rest."""
        return (headless.pid, headless.start_time) in self._whole

    def make_whole(self, ccc: Host, headless: Headless, *, mechanism: str) -> bool:
        """Give a fresh process what was said before its start and it did not read; True when it has all of it now."""
        missing, frames = self.lack(ccc, headless)
        in_vain = missing.obstacle is not None or not takes_history(missing.release)
        is_settled = not self.settings.catch_up if in_vain else not frames
        if missing.seen and is_settled:
            self._whole.add((headless.pid, headless.start_time))
        if missing.obstacle is None and not frames:
            return True
        if missing.obstacle is not None or (judgement := self._when_ready(ccc, headless, missing.release)) is None:
            return False
        reason = "the branch that it reads lacks turns"
        return self.heal(ccc, headless, judgement, mechanism=mechanism, reason=reason) is None

    def _when_ready(self, ccc: Host, headless: Headless, release: str | None) -> Judgement | None:
        """Judge a process that may have been started a moment ago; None when it cannot be healed.

        It tells its release within a second; where that of the session's last writer does not, nothing is waited for.
        """
        end = time.monotonic() + TELLS_RELEASE_SECONDS
        while not (judgement := self.evidence.judge(ccc, headless)).may_heal:
            if judgement.takes_history or not takes_history(release) or time.monotonic() >= end:
                return None
            time.sleep(TELLS_RELEASE_LOOK)
        return judgement

    def _give(self, ccc: Host, headless: Headless, frames: tuple[Frame, ...], began_at: float) -> None:
        transcript = self.evidence.transcript_of(ccc, headless)
        if transcript is None or headless.stdout_log is None:
            raise Unfinished("its files are not known")
        give(ccc, Patient(headless, headless.stdout_log, transcript, began_at + self.settings.heal_seconds), frames)

    def _report_healing(
        self, headless: Headless, judgement: Judgement, mechanism: str, reason: str, turns: tuple[str, ...], records: int, seconds: float
    ) -> None:
        self.journal.note_healing(headless, mechanism=mechanism, reason=reason)
        facts = judgement.facts()
        outcome = Healed(headless=headless, mechanism=mechanism, reason=reason, facts=facts, turns=turns, records=records, seconds=seconds)
        self.reporter.report(outcome)

    def catch_up(self, ccc: Host, headless: Headless) -> str | None:
        """The turns that a fresh process lacks, as a text to go before its next one; None when it lacks nothing, when it may have been
        given that already, or when that is switched off. Never raises: there is nothing better to do with the text than to deliver it.
        """
        try:
            return self._catch_up(ccc, headless)
        except Exception:  # whatever a transcript holds, what is left is to go on without
            log.exception("session %s: what a fresh process lacks could not be told", headless.session_id)
            return None

    def _catch_up(self, ccc: Host, headless: Headless) -> str | None:
        headless = _as_known_now(ccc, headless) or headless
        path = self.evidence.transcript_of(ccc, headless) if self.settings.catch_up else None
        if path is None or self._may_yet_be_told(ccc, headless, tree := read_tree(path)):
            return None
        own = [sent.message_id for sent in headless.sent or () if not sent.history]
        taken = [tree.nodes[message_id] for message_id in own if message_id in tree.nodes]
        leaf = self.lack(ccc, headless)[0].leaf or resumed_leaf(tree, tree.release)
        lost = () if any(entry.gives_back is not None for entry in taken) else lacking(tree, leaf)
        given = catch_up(turns_of(path, tree, lost), self.settings.catch_up_limit)
        if given is None:
            if own:
                self._whole.add((headless.pid, headless.start_time))
            return None
        log.info("session %s: a text gives back %d turns and leaves out %d", headless.session_id, len(given.turns), given.cut)
        return given.text

    def _may_yet_be_told(self, ccc: Host, headless: Headless, tree: Tree) -> bool:
        """Whether something may be on its way into a process that tells it what it lacks."""
        if headless.sent is not None and all(sent.message_id in tree.nodes for sent in headless.sent):
            return False
        return not self.evidence.judge(ccc, headless).idleness.between_turns

    def forget(self, headless: Headless) -> None:
        """The process is gone."""
        self.evidence.forget(headless)
        key = (headless.pid, headless.start_time)
        self._rests.pop(key, None)
        self._healing_rests.pop(key, None)
        self._whole.discard(key)


def waits_for(outcome: Outcome) -> tuple[str, ...]:
    """What keeps a process that was not retired: the signs of work, or where there are none the outcome's own reason."""
    at_work = isinstance(outcome, Deferral) and outcome.facts.idleness != "idle" and outcome.facts.signs
    return at_work or (outcome.reason,)


def _as_known_now(ccc: Host, headless: Headless) -> Headless | None:
    """The value of the same process of the same session as the host has it now; None when it is that no longer."""
    first = ccc.headless_for(headless.session_id)
    known = [first] if first is not None and _same(first, headless) else ccc.headless_agents()
    return next((other for other in known if _same(other, headless)), None)


def _same(one: Headless, other: Headless) -> bool:
    return (one.pid, one.start_time, one.session_id) == (other.pid, other.start_time, other.session_id)


def _on_disk(judgement: Judgement) -> str | None:
    """A terminal can only go on with what is on disk; what is busy may yet come to stand there."""
    lost = judgement.idleness.verdict == "idle" and not judgement.on_disk
    return "its history is not on disk" if lost else None


@dataclass(slots=True)
class _Look:
    """One headless under judgement for a retirement. `view`: the processes as they were before the first look, when they are known."""

    evidence: Evidence
    ccc: Host
    headless: Headless
    wanted: Wanted
    overruled: frozenset[str] | None
    view: View | None
    judgement: Judgement | None = field(default=None, init=False)

    def below(self) -> tuple[Process, ...]:
        """See `Order.below`; one snapshot serves this and the first judgement."""
        self.view = self.view or self.evidence.probe.view()
        return self.view.claude_below(self.headless)

    def descendants(self, workers: tuple[Process, ...]) -> tuple[Process, ...] | None:
        """See `Order.descendants`."""
        return descendants(self.evidence.probe.view().table, [pid for pid, _ in workers])

    def facts(self) -> Facts:
        view, self.view = self.view, None
        self.judgement = self.evidence.judge(self.ccc, self.headless, view)
        facts = self.judgement.facts()
        if self.overruled is None or facts.idleness == "idle" or not {sign_kind(s) for s in facts.signs} <= self.overruled:
            return facts
        return replace(facts, idleness="idle", signs=tuple(f"overruled: {sign}" for sign in facts.signs))

    def objection(self, _: Facts) -> str | None:
        # What could not be judged is not known to be idle either, which puts it off.
        return None if self.judgement is None else self.wanted(self.judgement)

    def must_settle(self) -> bool:
        """Whether what the log shows must stand in the transcript first.

        Not when a person wants the process ended, nor when it went on to another session: what it does there stands in another file.
        """
        moved = self.judgement is not None and self.judgement.attribution.verdict == "stale" and not self.judgement.attribution.count
        return self.overruled is None and not moved
