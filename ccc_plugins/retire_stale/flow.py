"""From a headless to an outcome: evidence, judgement, retirement. What the three mechanisms share, for one host."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ccc_hookspecs.specs import Host
from ccc_hookspecs.values import Facts, Headless, Outcome, Tick
from ccc_plugins.retire_stale.catch_up import CatchUp, catch_up
from ccc_plugins.retire_stale.deferrals import Deferrals
from ccc_plugins.retire_stale.evidence.branches import lost_prompts, read_tree, turns_of
from ccc_plugins.retire_stale.evidence.evidence import Evidence
from ccc_plugins.retire_stale.evidence.observer import Judgement
from ccc_plugins.retire_stale.journal import Journal
from ccc_plugins.retire_stale.judgement.idleness import sign_kind
from ccc_plugins.retire_stale.order import Order
from ccc_plugins.retire_stale.reporter import Reporter
from ccc_plugins.retire_stale.retirement import is_gone, retire, thaw
from ccc_plugins.retire_stale.settings import Settings

if TYPE_CHECKING:
    from ccc_plugins.retire_stale.evidence.surroundings import View

log = logging.getLogger(__name__)

Wanted = Callable[[Judgement], str | None]
"""None when a judgement still asks for the retirement, else the reason to keep the process."""


class Flow:
    """The evidence, the journal and the deferrals of one host, and what is done with them."""

    def __init__(self, state_dir: Path, settings: Settings) -> None:
        self.settings = settings
        self.evidence = Evidence(settings.cpu_look_seconds)
        self.journal = Journal(state_dir)
        self.deferrals = Deferrals(self.journal.store)
        self.reporter = Reporter()
        self._view: tuple[Tick, View] | None = None
        thaw(self.journal)

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
        """Retire a headless if it is idle and `wanted`. The caller holds the session's lock.

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
        )
        return retire(ccc, order, self.settings, self.journal, self.reporter)

    def catch_up(self, ccc: Host, headless: Headless) -> CatchUp | None:
        """The turns that a `--resume` lacks as the transcript is now; None when it lacks nothing, or when that is switched off.

        For a headless that has exited, or for one that was just resumed and wrote nothing yet.
        """
        path = self.evidence.transcript_of(ccc, headless)
        if path is None or not self.settings.catch_up:
            return None
        tree = read_tree(path)
        turns = turns_of(path, tree, lost_prompts(tree, tree.release))
        given = catch_up(turns, self.settings.catch_up_limit)
        if given is not None and given.cut:
            log.info("session %s: the catch-up leaves out the %d oldest turns", headless.session_id, given.cut)
        return given

    def view(self, tick: Tick) -> View:
        """The processes at this tick: one snapshot, shared by the mechanisms that the tick calls."""
        if self._view is None or self._view[0] != tick:
            self._view = tick, self.evidence.probe.view()
        return self._view[1]

    def forget(self, headless: Headless) -> None:
        """The process is gone."""
        self.evidence.forget(headless)


@dataclass(slots=True)
class _Look:
    """One headless under judgement for a retirement."""

    evidence: Evidence
    ccc: Host
    headless: Headless
    wanted: Wanted
    overruled: frozenset[str] | None
    view: View | None
    judgement: Judgement | None = field(default=None, init=False)

    def facts(self) -> Facts:
        view, self.view = self.view, None
        self.judgement = self.evidence.judge(self.ccc, self.headless, view)
        facts = self.judgement.facts()
        if self.overruled is None or facts.idleness == "idle" or not {sign_kind(s) for s in facts.signs} <= self.overruled:
            return facts
        return replace(facts, idleness="idle", signs=tuple(f"overruled: {sign}" for sign in facts.signs))

    def objection(self, _: Facts) -> str | None:
        return "not judged" if self.judgement is None else self.wanted(self.judgement)


__all__ = ["Flow", "Wanted", "is_gone"]
