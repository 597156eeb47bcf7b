"""Continuing what a host that died between SIGSTOP and SIGCONT left stopped."""

from __future__ import annotations

import logging
import signal
from contextlib import closing

from ccc_plugins.retire_stale.journal import Attempt, Ending, Journal
from ccc_plugins.retire_stale.signalling import Handle
from ccc_plugins.retire_stale.store import StoreError

log = logging.getLogger(__name__)


def thaw(journal: Journal) -> tuple[Attempt, ...]:
    """Continue the processes that a host which died left stopped, each once; returns their attempts. To be called when a host starts,
    and from time to time, as another host on the same directory may die. One read of the journal when there is nothing to do.

    Only a process of the recorded pid and start time that still stands still is continued, and only when its host is
    gone by pid and start time. Never raises; what cannot be done is logged.
    """
    try:
        settled = journal.settle_abandoned(_thaw)
    except StoreError as error:
        journal.store.complain("processes that a host left stopped cannot be looked for", error)
        return ()
    return tuple(attempt for attempt, ending in settled if ending == "thawed")


def _thaw(attempt: Attempt) -> Ending:
    with closing(Handle(attempt.pid, attempt.start_time)) as process:
        if (found := process.presence()) != "alive":
            return "retired" if found == "gone" else "abandoned"
        try:
            thawed = attempt.frozen and process.stopped() and process.send(signal.SIGCONT)
        except OSError as error:
            log.warning("process %d of session %s stays stopped: %s", attempt.pid, attempt.session_id, error)
            return "abandoned"
    if thawed:
        log.warning("continued process %d of session %s, which a host that died had stopped", attempt.pid, attempt.session_id)
    return "thawed" if thawed else "abandoned"
