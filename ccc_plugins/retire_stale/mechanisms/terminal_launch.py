"""Mechanism (2), `retire_stale.terminal_launch`: a terminal is about to open, so retire the idle headless first.

Then the terminal loads a final transcript. A busy headless is remembered, on disk, and retired once it is idle; unless the
terminal went away by then without having written anything.
"""

from __future__ import annotations

import logging
import time

from ccc_hookspecs.errors import SessionLockTimeout
from ccc_hookspecs.outcomes import Deferral, Kept, Outcome
from ccc_hookspecs.specs import Host, hookimpl
from ccc_hookspecs.values import Headless, TerminalLaunch, Tick
from ccc_plugins.retire_stale.deferrals import DeferredRetirement
from ccc_plugins.retire_stale.flow import NOT_ITS_HEADLESS, Flow, is_gone, waits_for
from ccc_plugins.retire_stale.identity import presence
from ccc_plugins.retire_stale.order import UNREADABLE
from ccc_plugins.retire_stale.plugin import plugin
from ccc_plugins.retire_stale.retirement import deferred_since

NAME = "retire_stale.terminal_launch"
REASON = "a terminal opens on the session"

log = logging.getLogger(__name__)

TERMINAL_START_SECONDS = 60.0
"""How long a terminal that was launched may take to be seen among the processes, before it counts as gone."""
LOOK_SECONDS = 0.2
"""Seconds between two looks while a launch waits for a busy headless."""

configure = plugin.configure


@hookimpl
def on_terminal_launch(ccc: Host, launch: TerminalLaunch) -> None:
    """Retire the session's idle headless before its terminal starts; remember a busy one."""
    headless = launch.headless or ccc.headless_for(launch.session_id)
    if headless is None or headless.engine != "claude" or not headless.owned:
        return
    flow = plugin.flow(ccc)
    if flow.settings.mode == "shadow":
        _try(ccc, flow, headless)
        return
    # A terminal launched before may have gone since; this one has its own time to start.
    flow.deferrals.restart(headless, NAME)
    end = time.monotonic() + flow.settings.launch_wait_seconds
    while (outcome := _try(ccc, flow, headless)) is None or not _is_settled(outcome):
        signs = ("it could not be looked at",) if outcome is None else waits_for(outcome)
        flow.deferrals.add(headless, mechanism=NAME, reason=REASON, signs=signs)
        if not isinstance(outcome, Deferral) or time.monotonic() >= end:
            return
        time.sleep(LOOK_SECONDS)


def _try(ccc: Host, flow: Flow, headless: Headless) -> Outcome | None:
    """Try to retire it; None when it could not be looked at."""
    try:
        return flow.retire_for_terminal(ccc, headless, mechanism=NAME, reason=REASON, lock_seconds=flow.settings.lock_seconds)
    except SessionLockTimeout:
        since = deferred_since(headless, NAME, flow.reporter, flow.deferrals)
        in_use = Deferral(headless=headless, mechanism=NAME, reason="the session is in use", facts=UNREADABLE, since=since)
        flow.reporter.report(in_use)
        return in_use
    except Exception:  # the terminal starts all the same, and then it is to be looked at again
        log.exception("session %s could not be looked at", headless.session_id)
        return None


def _is_settled(outcome: Outcome) -> bool:
    """Whether nothing is left to do; a passing trouble, a veto and a process that does not die are asked about again."""
    return is_gone(outcome) or (isinstance(outcome, Kept) and outcome.reason == NOT_ITS_HEADLESS)


@hookimpl
def on_tick(ccc: Host, tick: Tick) -> None:
    """Retire what a launch had to leave, each as soon as it is idle."""
    flow = plugin.flow(ccc)
    flow.begin(tick)
    # What another host on this directory remembered is not for shadow mode to end.
    deferred = flow.deferrals.all(NAME) if flow.settings.mode == "act" else ()
    agents = {h.pid: h for h in ccc.headless_agents()} if deferred else {}
    for deferral in deferred:
        try:
            if _is_over(ccc, flow, deferral, agents.get(deferral.pid)):
                flow.deferrals.drop(deferral)
        except SessionLockTimeout:
            log.debug("session %s: in use, left to the next tick", deferral.session_id)
        except Exception:  # one session must not keep the others from being looked at
            log.exception("the deferred retirement of session %s could not be looked at", deferral.session_id)


def _is_over(ccc: Host, flow: Flow, deferral: DeferredRetirement, headless: Headless | None) -> bool:
    """Retire what was deferred if it can be; whether that is over and done with. Raises `SessionLockTimeout`."""
    if headless is None:
        # Another process of the host may know it.
        return presence(deferral.pid, deferral.start_time) == "gone"
    if not deferral.is_of(headless):
        return True
    if not headless.owned:
        return False
    if not _still_meant(ccc, flow, deferral, headless):
        flow.reporter.end_deferral(headless, NAME, "the terminal went away and wrote nothing")
        return True
    return _is_settled(flow.retire_for_terminal(ccc, headless, mechanism=NAME, reason=REASON, lock_seconds=0, view=flow.view()))


def _still_meant(ccc: Host, flow: Flow, deferral: DeferredRetirement, headless: Headless) -> bool:
    """Whether the terminal is there, may be starting, or has written."""
    starting = time.time() - deferral.since < TERMINAL_START_SECONDS
    return starting or flow.evidence.taken_over(ccc, headless, flow.view()) or not flow.evidence.is_fresh(ccc, headless)
