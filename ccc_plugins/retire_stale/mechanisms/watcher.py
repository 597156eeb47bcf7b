"""Mechanism (5), `retire_stale.watcher`: on every tick, a live headless beside a live terminal on one session, idle, is retired.

It frees what an idle process holds (about 200 MB resident on 2.1.332), whether or not a dashboard is open.
"""

from __future__ import annotations

import logging

from ccc_hookspecs.errors import SessionLockTimeout
from ccc_hookspecs.specs import Host, hookimpl
from ccc_hookspecs.values import Headless, Tick
from ccc_plugins.retire_stale.flow import Flow
from ccc_plugins.retire_stale.plugin import plugin

NAME = "retire_stale.watcher"
REASON = "a terminal is open on the session"

log = logging.getLogger(__name__)

configure = plugin.configure


@hookimpl
def on_tick(ccc: Host, tick: Tick) -> None:
    """Look at every headless of this host; one process snapshot serves them all."""
    flow = plugin.flow(ccc)
    flow.begin(tick)
    beside = []
    for headless in ccc.headless_agents():
        if headless.engine == "claude" and headless.owned:
            seen = _beside_a_terminal(ccc, flow, headless)
            if seen:
                beside.append(headless)
            elif seen is False:
                flow.reporter.end_deferral(headless, NAME, "no terminal is open on the session any more")
    for headless in flow.sightings.confirmed(beside, flow.settings.watcher_confirm_ticks):
        try:
            flow.retire_for_terminal(ccc, headless, mechanism=NAME, reason=REASON, lock_seconds=0, view=flow.view())
        except SessionLockTimeout:
            log.debug("session %s: in use, left to the next tick", headless.session_id)
        except Exception:  # one session must not keep the others from being looked at
            log.exception("session %s could not be looked at", headless.session_id)


def _beside_a_terminal(ccc: Host, flow: Flow, headless: Headless) -> bool | None:
    """None when that could not be looked at."""
    try:
        return flow.evidence.taken_over(ccc, headless, flow.view())
    except Exception:  # as above
        log.exception("session %s could not be looked at", headless.session_id)
        return None
