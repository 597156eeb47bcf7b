"""Mechanism (4), `retire_stale.use_time`: before a text goes into a headless, has another writer advanced the session?

The correctness backbone: it needs no dashboard, no earlier sighting and no saved state.
"""

from __future__ import annotations

import logging

from ccc_hookspecs.claude.text import is_command
from ccc_hookspecs.outcomes import Kept, Outcome, RetirementFailure
from ccc_hookspecs.specs import Host, hookimpl
from ccc_hookspecs.values import Decision, Deliver, Hold, Injection, Respawn
from ccc_plugins.retire_stale.evidence.observer import Judgement
from ccc_plugins.retire_stale.flow import Flow, is_gone, waits_for
from ccc_plugins.retire_stale.judgement.decision import Course, course
from ccc_plugins.retire_stale.judgement.idleness import sign_kind
from ccc_plugins.retire_stale.plugin import plugin

NAME = "retire_stale.use_time"

log = logging.getLogger(__name__)

configure = plugin.configure


@hookimpl
def pre_inject(ccc: Host, injection: Injection) -> Decision | None:
    """Deliver to a fresh headless; retire a stale one that is idle and have a fresh one started; heal one that cannot be ended, or hold."""
    headless = injection.headless
    if headless.engine != "claude" or not headless.owned:
        return None
    flow = plugin.flow(ccc)
    flow.mend_stopped(headless)
    seen = flow.evidence.attribution(ccc, headless)
    if seen.verdict == "fresh":
        flow.holds.drop(injection)
        flow.reporter.end_deferral(headless, NAME, "it has seen everything by now")
        return _to_fresh(ccc, flow, injection)
    try:
        return _decide(ccc, flow, injection)
    except Exception as error:
        if seen.verdict != "stale" or flow.settings.mode == "shadow":
            raise
        # Raising counts as no answer, and the text would go to a process that is known to be stale.
        log.exception("session %s could not be looked at", injection.session_id)
        return _held(flow, injection, Hold(reason=f"{seen.reason}; not retired: {type(error).__name__}"))


def _to_fresh(ccc: Host, flow: Flow, injection: Injection) -> Deliver | None:
    """A process that was resumed gets the turns that its branch lacks, whoever forked the transcript before: as history, else as a text.

    Which branch it read is expected at first, and seen as soon as it wrote something itself; so that is looked at until then.
    """
    headless = injection.headless
    if headless.resumed is False or flow.settings.mode == "shadow" or flow.is_whole(headless):
        return None
    if flow.settings.heal != "never" and flow.make_whole(ccc, headless, mechanism=NAME):
        return None
    if is_command(injection.text):
        return None
    given = flow.catch_up(ccc, headless)
    return Deliver(catch_up=given) if given is not None else None


def _decide(ccc: Host, flow: Flow, injection: Injection) -> Decision | None:
    judgement = flow.evidence.judge(ccc, injection.headless)
    way = course(judgement.attribution.verdict, judgement.idleness.verdict, resumable=judgement.resumable)
    heals = _heals(ccc, flow, injection, judgement, way)
    if flow.settings.mode == "shadow":
        return _deliver(flow, injection, judgement, would_retire=way == "respawn" and not heals, would_heal=heals)
    if heals and _heal(ccc, flow, injection, judgement):
        return Deliver()
    if way == "hold" and injection.overrule:
        way = "respawn"
    if way == "deliver":
        return _deliver(flow, injection, judgement)
    return _respawn(ccc, flow, injection, judgement) if way == "respawn" else _hold(flow, injection, judgement)


def _heals(ccc: Host, flow: Flow, injection: Injection, judgement: Judgement, way: Course) -> bool:
    """Whether to give a stale process what it lacks: where it cannot be ended, where the next one would lack turns, where that is nothing.

    One that is idle makes room for a process that goes on from a compaction, which is shorter.
    """
    heal = flow.settings.heal
    if judgement.attribution.verdict != "stale" or heal == "never" or not judgement.may_heal:
        return False
    if heal == "always" or way == "hold":
        return True
    lacking, frames = flow.lack(ccc, injection.headless)
    return lacking.obstacle is None and (lacking.forked or not (frames or lacking.compacted))


def _heal(ccc: Host, flow: Flow, injection: Injection, judgement: Judgement) -> bool:
    why_not = flow.heal(ccc, injection.headless, judgement, mechanism=NAME, reason=f"stale: {judgement.attribution.reason}")
    if why_not is None:
        flow.holds.drop(injection)
        flow.reporter.end_deferral(injection.headless, NAME, "it was given everything")
    return why_not is None


def _deliver(
    flow: Flow, injection: Injection, judgement: Judgement, *, would_retire: bool = False, would_heal: bool = False
) -> Decision | None:
    """To one that is not known to have seen everything, or that only shadow mode delivers to; and say so."""
    shadow, seen = flow.settings.mode == "shadow", judgement.attribution
    reason = f"{'shadow mode' if shadow else 'delivered although'}: {seen.verdict}: {seen.reason}"
    would = {"would_retire": would_retire, "would_heal": would_heal}
    flow.reporter.report(Kept(headless=injection.headless, mechanism=NAME, reason=reason, facts=judgement.facts(), **would))
    return None if shadow else Deliver()


def _respawn(ccc: Host, flow: Flow, injection: Injection, judgement: Judgement) -> Decision:
    overruled = frozenset(map(sign_kind, judgement.idleness.signs)) if injection.overrule else None
    reason = f"{judgement.attribution.verdict}: {judgement.attribution.reason}"
    wanted = _objection if overruled is None else _seen_everything
    outcome = flow.retire(ccc, injection.headless, mechanism=NAME, reason=reason, wanted=wanted, overruled=overruled)
    if not is_gone(outcome):
        return _not_retired(flow, injection, judgement, outcome)
    flow.holds.drop(injection)
    flow.forget(injection.headless)
    return Respawn(reason=reason)


def _objection(judgement: Judgement) -> str | None:
    return _seen_everything(judgement) or (None if judgement.resumable else "its last turn is not on disk")


def _seen_everything(judgement: Judgement) -> str | None:
    return "it has seen everything by now" if judgement.attribution.verdict == "fresh" else None


def _not_retired(flow: Flow, injection: Injection, judgement: Judgement, outcome: Outcome) -> Decision:
    """The process lives: one that was found stale never gets the text, unless it turned out to be fresh; any other does."""
    facts = outcome.facts or judgement.facts()
    stale = facts.attribution == "stale" or (judgement.attribution.verdict == "stale" and facts.attribution != "fresh")
    if not stale and not isinstance(outcome, RetirementFailure):
        return Deliver()
    signs = waits_for(outcome)
    reason = f"{judgement.attribution.reason}; not retired: {outcome.reason}"
    return _held(flow, injection, Hold(reason=reason, signs=signs, lingering=judgement.idleness.lingering, cost=_cost(signs)))


def _hold(flow: Flow, injection: Injection, judgement: Judgement) -> Hold:
    signs = judgement.idleness.signs if judgement.resumable else ("its last turn is not on disk", *judgement.idleness.signs)
    hold = Hold(reason=judgement.attribution.reason, signs=signs, lingering=judgement.idleness.lingering, cost=_cost(signs))
    return _held(flow, injection, hold)


def _held(flow: Flow, injection: Injection, hold: Hold) -> Hold:
    flow.holds.keep(injection, hold, mechanism=NAME)
    return hold


def _cost(signs: tuple[str, ...]) -> str:
    return "overruling ends the headless with what it still does: " + "; ".join(signs)
