"""Mechanism (5), `retire_stale.watcher`: on every tick, a live headless beside a live terminal on one session, idle, is retired.

It frees what an idle process holds (about 200 MB resident on 2.1.332), whether or not a dashboard is open.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from ccc_hookspecs.config import PluginSettings
from ccc_hookspecs.errors import SessionLockTimeout
from ccc_hookspecs.specs import Host, hookimpl
from ccc_hookspecs.values import Headless, Tick
from ccc_plugins.retire_stale.evidence.observer import Judgement
from ccc_plugins.retire_stale.flow import Flow, is_gone
from ccc_plugins.retire_stale.plugin import plugin

if TYPE_CHECKING:
    from ccc_plugins.retire_stale.evidence.surroundings import View

NAME = "retire_stale.watcher"
REASON = "a terminal is open on the session"

log = logging.getLogger(__name__)


def configure(settings: PluginSettings) -> None:
    """Take the settings of `[plugins.retire_stale]`."""
    plugin.configure(settings)


@hookimpl
def on_tick(ccc: Host, tick: Tick) -> None:
    """Look at every headless of this host; one process snapshot serves them all."""
    agents = [h for h in ccc.headless_agents() if h.engine == "claude" and h.owned]
    flow = plugin.flow(ccc)
    beside = _beside_a_terminal(ccc, flow, agents, tick) if agents else []
    for headless in sightings.confirmed(beside, flow.settings.watcher_confirm_ticks):
        try:
            _retire(ccc, flow, headless, flow.view(tick))
        except Exception:
            log.exception("session %s could not be looked at", headless.session_id)


def _beside_a_terminal(ccc: Host, flow: Flow, agents: list[Headless], tick: Tick) -> list[Headless]:
    view = flow.view(tick)
    found = []
    for headless in agents:
        try:
            if flow.evidence.taken_over(ccc, headless, view):
                found.append(headless)
        except Exception:
            log.exception("session %s could not be looked at", headless.session_id)
    return found


def _retire(ccc: Host, flow: Flow, headless: Headless, view: View) -> None:
    """One try; a session whose lock is taken is in use, and waits for the next tick."""
    try:
        with ccc.session_lock(headless.session_id, 0):
            outcome = flow.retire(ccc, headless, mechanism=NAME, reason=REASON, wanted=_resumable, view=view)
    except SessionLockTimeout:
        log.debug("session %s: in use, left to the next tick", headless.session_id)
        return
    if is_gone(outcome):
        flow.forget(headless)


def _resumable(judgement: Judgement) -> str | None:
    """A terminal can only go on with what is on disk; what is busy may yet come to stand there."""
    lost = judgement.idleness.verdict == "idle" and not judgement.on_disk
    return "its history is not on disk" if lost else None


class Sightings:
    """How many ticks in a row each headless was seen beside a terminal: one sample may be a process at its start."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[tuple[int, float | None], int] = {}

    def confirmed(self, beside: list[Headless], ticks: int) -> list[Headless]:
        """Note this tick's; those seen in `ticks` ticks in a row, this one among them."""
        with self._lock:
            self._seen = {(h.pid, h.start_time): self._seen.get((h.pid, h.start_time), 0) + 1 for h in beside}
            return [h for h in beside if self._seen[h.pid, h.start_time] >= ticks]


sightings = Sightings()
