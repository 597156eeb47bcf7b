"""Mechanism (4), `retire_stale.use_time`: before a text goes into a headless, has another writer advanced the session?

The correctness backbone: it needs no dashboard, no earlier sighting and no saved state.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict

from ccc_hookspecs.config import PluginSettings
from ccc_hookspecs.signals import emit, headless_kept, injection_held
from ccc_hookspecs.specs import Host, hookimpl
from ccc_hookspecs.values import (
    Decision,
    Deferral,
    Deliver,
    Headless,
    HeldInjection,
    Hold,
    Injection,
    Kept,
    Outcome,
    Respawn,
    RetirementFailure,
)
from ccc_plugins.retire_stale.evidence.observer import Judgement
from ccc_plugins.retire_stale.flow import Flow, is_gone
from ccc_plugins.retire_stale.judgement.decision import course
from ccc_plugins.retire_stale.judgement.idleness import sign_kind
from ccc_plugins.retire_stale.plugin import plugin

NAME = "retire_stale.use_time"

log = logging.getLogger(__name__)


def configure(settings: PluginSettings) -> None:
    """Take the settings of `[plugins.retire_stale]`."""
    plugin.configure(settings)


@hookimpl
def pre_inject(ccc: Host, injection: Injection) -> Decision | None:
    """Deliver to a fresh headless; retire a stale one that is idle and have a fresh one started; hold while it is busy."""
    if injection.headless.engine != "claude" or not injection.headless.owned:
        return None
    flow = plugin.flow(ccc)
    if flow.evidence.is_fresh(ccc, injection.headless):
        holds.drop(injection)
        return _first_input(ccc, flow, injection.headless)
    return _decide(ccc, flow, injection)


def _first_input(ccc: Host, flow: Flow, headless: Headless) -> Deliver | None:
    """A process that was resumed and was given nothing yet gets the turns that its branch lacks, whoever retired the one before."""
    if headless.sent != () or headless.resumed is False or flow.settings.mode == "shadow":
        return None
    given = flow.catch_up(ccc, headless)
    return Deliver(catch_up=given.text, catch_up_turns=given.turns) if given is not None else None


def _decide(ccc: Host, flow: Flow, injection: Injection) -> Decision | None:
    judgement = flow.evidence.judge(ccc, injection.headless)
    way = course(judgement.attribution.verdict, judgement.idleness.verdict, resumable=judgement.resumable)
    if way == "hold" and injection.overrule and judgement.resumable:
        way = "respawn"
    if flow.settings.mode == "shadow" and way != "deliver":
        _report_only(injection, judgement)
        return None
    if way == "respawn":
        return _respawn(ccc, flow, injection, judgement)
    return _hold(injection, judgement) if way == "hold" else _deliver_unproven(injection, judgement)


def _respawn(ccc: Host, flow: Flow, injection: Injection, judgement: Judgement) -> Decision:
    overruled = frozenset(map(sign_kind, judgement.idleness.signs)) if injection.overrule else None
    reason = f"{judgement.attribution.verdict}: {judgement.attribution.reason}"
    outcome = flow.retire(ccc, injection.headless, mechanism=NAME, reason=reason, wanted=_objection, overruled=overruled)
    if is_gone(outcome):
        holds.drop(injection)
        given = flow.catch_up(ccc, injection.headless)
        flow.forget(injection.headless)
        return Respawn(reason=reason, catch_up=given.text if given else None, catch_up_turns=given.turns if given else ())
    return _not_retired(injection, judgement, outcome)


def _objection(judgement: Judgement) -> str | None:
    if judgement.attribution.verdict == "fresh":
        return "it has seen everything by now"
    return None if judgement.resumable else "its last turn is not on disk"


def _not_retired(injection: Injection, judgement: Judgement, outcome: Outcome) -> Decision:
    """The process lives: a stale one never gets the text, one that is not known to be stale does."""
    facts = outcome.facts or judgement.facts()
    if facts.attribution != "stale" and not isinstance(outcome, RetirementFailure):
        return Deliver()
    signs = facts.signs if isinstance(outcome, Deferral) else (outcome.reason,)
    return _held(injection, f"{judgement.attribution.reason}; not retired: {outcome.reason}", signs, judgement)


def _hold(injection: Injection, judgement: Judgement) -> Hold:
    waits_for = judgement.idleness.signs if judgement.resumable else ("its last turn is not on disk", *judgement.idleness.signs)
    return _held(injection, judgement.attribution.reason, waits_for, judgement)


def _held(injection: Injection, reason: str, signs: tuple[str, ...], judgement: Judgement) -> Hold:
    cost = "overruling ends the headless with what it still does: " + "; ".join(signs)
    hold = Hold(reason=reason, signs=signs, lingering=judgement.idleness.lingering, cost=cost)
    holds.keep(injection, hold)
    return hold


def _deliver_unproven(injection: Injection, judgement: Judgement) -> Deliver:
    reason = f"delivered although {judgement.attribution.verdict}: {judgement.attribution.reason}"
    _say_kept(injection, judgement, reason)
    return Deliver()


def _report_only(injection: Injection, judgement: Judgement) -> None:
    would = judgement.idleness.verdict == "idle"
    _say_kept(injection, judgement, f"shadow mode: {judgement.attribution.verdict}: {judgement.attribution.reason}", would_retire=would)


def _say_kept(injection: Injection, judgement: Judgement, reason: str, *, would_retire: bool = False) -> None:
    extra = {"ccc_session": injection.session_id, "ccc_mechanism": NAME, "ccc_reason": reason}
    log.info("session %s: %s; %s", injection.session_id, reason, "; ".join(judgement.idleness.signs), extra=extra)
    kept = Kept(headless=injection.headless, mechanism=NAME, reason=reason, facts=judgement.facts(), would_retire=would_retire)
    emit(headless_kept, NAME, kept)


class Holds:
    """The injections held back, so that each is said when it begins and when its signs change. In memory, bounded."""

    def __init__(self, remembered: int = 4096) -> None:
        self._lock = threading.Lock()
        self._remembered = remembered
        self._held: OrderedDict[str, tuple[float, tuple[str, ...]]] = OrderedDict()

    def keep(self, injection: Injection, hold: Hold) -> None:
        """Note a hold, log it and send `injection_held` when it is news."""
        kinds = tuple(map(sign_kind, hold.signs))
        with self._lock:
            since, before = self._held.pop(injection.message_id, (time.time(), None))
            self._held[injection.message_id] = since, kinds
            if len(self._held) > self._remembered:
                self._held.popitem(last=False)
        if before != kinds:
            extra = {"ccc_session": injection.session_id, "ccc_mechanism": NAME, "ccc_reason": hold.reason}
            log.info("session %s: held: %s; waits for: %s", injection.session_id, hold.reason, "; ".join(hold.signs), extra=extra)
            event = HeldInjection(session_id=injection.session_id, message_id=injection.message_id, hold=hold, since=since)
            emit(injection_held, NAME, event)

    def drop(self, injection: Injection) -> None:
        """This one is held no more."""
        with self._lock:
            self._held.pop(injection.message_id, None)


holds = Holds()
