"""Mechanism (2), `retire_stale.terminal_launch`: a terminal is about to open, so retire the idle headless first.

Then the terminal loads a final transcript. A busy headless is remembered, on disk, and retired once it is idle; unless the
terminal went away by then without having written anything.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from ccc_hookspecs.config import PluginSettings
from ccc_hookspecs.errors import SessionLockTimeout
from ccc_hookspecs.specs import Host, hookimpl
from ccc_hookspecs.values import Deferral, Headless, Outcome, TerminalLaunch, Tick
from ccc_plugins.retire_stale.deferrals import DeferredRetirement
from ccc_plugins.retire_stale.evidence.observer import Judgement
from ccc_plugins.retire_stale.flow import Flow, is_gone
from ccc_plugins.retire_stale.plugin import plugin

if TYPE_CHECKING:
    from ccc_plugins.retire_stale.evidence.surroundings import View

NAME = "retire_stale.terminal_launch"
REASON = "a terminal opens on the session"

log = logging.getLogger(__name__)

TERMINAL_START_SECONDS = 60.0
"""How long a terminal that was launched may take to be seen among the processes, before it counts as gone."""
LOOK_SECONDS = 0.2
"""Seconds between two looks while a launch waits for a busy headless."""


def configure(settings: PluginSettings) -> None:
    """Take the settings of `[plugins.retire_stale]`."""
    plugin.configure(settings)


@hookimpl
def on_terminal_launch(ccc: Host, launch: TerminalLaunch) -> None:
    """Retire the session's idle headless before its terminal starts; remember a busy one."""
    headless = launch.headless or ccc.headless_for(launch.session_id)
    if headless is None or headless.engine != "claude" or not headless.owned:
        return
    flow = plugin.flow(ccc)
    end = time.monotonic() + flow.settings.launch_wait_seconds
    while (outcome := _retire(ccc, flow, headless, flow.settings.lock_seconds)) is not None:
        if not isinstance(outcome, Deferral):
            return
        _remember(flow, outcome.headless, outcome.facts.signs)
        if time.monotonic() >= end:
            return
        time.sleep(LOOK_SECONDS)
    _remember(flow, headless, ("the session is in use",))


@hookimpl
def on_tick(ccc: Host, tick: Tick) -> None:
    """Retire what a launch had to leave, each as soon as it is idle."""
    flow = plugin.flow(ccc)
    deferred = flow.deferrals.all(NAME)
    if not deferred:
        return
    agents = {(h.pid, h.session_id): h for h in ccc.headless_agents()}
    for deferral in deferred:
        try:
            _honour(ccc, flow, deferral, agents.get((deferral.pid, deferral.session_id)), tick)
        except Exception:
            log.exception("the deferred retirement of session %s could not be looked at", deferral.session_id)


def _honour(ccc: Host, flow: Flow, deferral: DeferredRetirement, headless: Headless | None, tick: Tick) -> None:
    if headless is None or not deferral.is_of(headless):
        flow.deferrals.drop(deferral)
    elif headless.owned and _still_meant(ccc, flow, deferral, headless, tick):
        outcome = _retire(ccc, flow, headless, 0, flow.view(tick))
        if outcome is not None and not isinstance(outcome, Deferral):
            flow.deferrals.drop(deferral)


def _still_meant(ccc: Host, flow: Flow, deferral: DeferredRetirement, headless: Headless, tick: Tick) -> bool:
    """Whether the terminal is there or has written; drops the deferral when neither."""
    if time.time() - deferral.since < TERMINAL_START_SECONDS:
        return True
    if flow.evidence.taken_over(ccc, headless, flow.view(tick)) or not flow.evidence.is_fresh(ccc, headless):
        return True
    log.debug("session %s: the terminal went away and wrote nothing; its headless is kept", deferral.session_id)
    flow.deferrals.drop(deferral)
    return False


def _retire(ccc: Host, flow: Flow, headless: Headless, lock_seconds: float, view: View | None = None) -> Outcome | None:
    """One try; None when the session's lock was taken."""
    try:
        with ccc.session_lock(headless.session_id, lock_seconds):
            outcome = flow.retire(ccc, headless, mechanism=NAME, reason=REASON, wanted=_resumable, view=view)
    except SessionLockTimeout:
        return None
    if is_gone(outcome):
        flow.forget(headless)
    return outcome


def _resumable(judgement: Judgement) -> str | None:
    """A terminal can only go on with what is on disk; what is busy may yet come to stand there."""
    lost = judgement.idleness.verdict == "idle" and not judgement.on_disk
    return "its history is not on disk" if lost else None


def _remember(flow: Flow, headless: Headless, signs: tuple[str, ...]) -> None:
    flow.deferrals.add(headless, mechanism=NAME, reason=REASON, signs=signs)
