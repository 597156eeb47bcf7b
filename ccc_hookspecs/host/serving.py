"""`ccc-host serve`: the ticker, the holds and the recovery, until it is told to stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from blinker import NamedSignal

from ccc_hookspecs import signals
from ccc_hookspecs.host.errors import HostError
from ccc_hookspecs.host.host import EmbeddedHost
from ccc_hookspecs.ticker import Ticker

log = logging.getLogger(__name__)

PUMP_SECONDS: Final = 0.25
"""How often the outbox is looked at. What is held is asked about at each tick only."""

SHOWN: Final[dict[NamedSignal, str]] = {
    signals.headless_retired: "retired",
    signals.retirement_deferred: "deferred",
    signals.headless_kept: "kept",
    signals.retirement_failed: "retirement failed",
    signals.injection_held: "held",
    signals.headless_respawned: "respawned",
    signals.plugin_failed: "plugin failed",
}

SLOWEST_SECONDS: Final = 2.0
"""How often, at least, a message is looked after that a process has and does not take yet."""

Report = Callable[[dict[str, Any]], None]


class Events:
    """Hands every signal on to `report` as a plain value without conversation text, as long as it lives."""

    def __init__(self, report: Report) -> None:
        self._report = report
        # blinker keeps receivers weakly, so these must be kept here.
        self._receivers = [self._receiver(signal, what) for signal, what in SHOWN.items()]

    def _receiver(self, signal: NamedSignal, what: str) -> Callable[..., None]:
        def receive(sender: str, event: Any) -> None:
            self._report(described(what, sender, event))

        signal.connect(receive)
        return receive


def described(what: str, sender: str, event: Any) -> dict[str, Any]:
    """A signal as a plain value: what, when, by whom, and whatever of its event is common to many."""
    headless = getattr(event, "headless", None)
    facts = getattr(event, "facts", None)
    hold = getattr(event, "hold", None)
    return {
        "at": time.time(),
        "what": what,
        "by": sender,
        "session_id": getattr(event, "session_id", None) or getattr(headless, "session_id", None),
        "pid": getattr(headless, "pid", None),
        "reason": getattr(event, "reason", None) or getattr(hold, "reason", None) or getattr(event, "error", None),
        "signs": list(getattr(facts, "signs", ()) or getattr(hold, "signs", ())),
    }


def serve(host: EmbeddedHost, interval: float, stop: threading.Event, report: Report) -> None:
    """Serve until `stop` is set; heads live on afterwards. A delivery or a tick under way is finished first."""
    events = Events(report)
    host.recover()
    ticker = Ticker(host.tick, interval)
    ticker.start()
    ticker.wake()
    try:
        pump(host, stop)
    finally:
        ticker.stop(timeout=60.0)
        del events


def pump(host: EmbeddedHost, stop: threading.Event) -> None:
    """Take on whatever may be written, until `stop` is set.

    The database is looked into only after something was written to it, and a message that makes no progress ever less often.
    """
    seen: object = None
    active: set[str] = set()
    pause, due = PUMP_SECONDS, 0.0
    while not stop.wait(PUMP_SECONDS):
        now = host.store.database.fingerprint()
        if now != seen:
            seen, active, pause, due = now, host.active(), PUMP_SECONDS, 0.0
        if time.monotonic() >= due:
            for session_id in active:
                _drive(host, session_id)
            pause = min(pause * 1.5, SLOWEST_SECONDS)
            due = time.monotonic() + pause


def _drive(host: EmbeddedHost, session_id: str) -> None:
    try:
        host.drive(session_id, lock_seconds=0.0)
    except HostError:
        # A full disk or the like passes; what is kept stays kept, and is taken on at the next look.
        log.exception("session %s could not be driven", session_id, extra={"ccc_session": session_id})
