"""`ccc-host serve`: the ticker, the holds and the recovery, until it is told to stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from blinker import NamedSignal

from ccc_hookspecs import signals
from ccc_hookspecs.host.guard import guarded
from ccc_hookspecs.host.holding import SENDER
from ccc_hookspecs.host.host import EmbeddedHost
from ccc_hookspecs.host.stopping import Stop
from ccc_hookspecs.ticker import Ticker

PUMP_SECONDS: Final = 0.25
"""How often the outbox is looked at. What is held is asked about at each tick only."""

SHOWN: Final[dict[NamedSignal, str]] = {
    signals.headless_healed: "healed",
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


class Failures:
    """Hands what failed on to `report`, each time that it fails in another way than before."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._last: dict[tuple[str, str | None], str] = {}

    def __call__(self, what: str, session_id: str | None, error: Exception) -> None:
        """`what` failed with this error, in one session if in one."""
        reason = f"{type(error).__name__}: {error}"
        if self._last.get((what, session_id)) != reason:
            self._last[what, session_id] = reason
            event = {"at": time.time(), "what": f"{what} failed", "by": SENDER, "session_id": session_id, "pid": None}
            self._report({**event, "reason": reason, "signs": []})


def serve(host: EmbeddedHost, interval: float, stop: Stop, report: Report) -> None:
    """Serve until `stop` is set; heads live on afterwards. A delivery or a tick under way is finished first."""
    events = Events(report)
    host.tell_failure = Failures(report)
    host.recover()
    ticker = Ticker(host.tick, interval)
    ticker.start()
    ticker.wake()
    try:
        pump(host, stop)
    finally:
        ticker.stop(timeout=60.0)
        host.tell_failure = None
        del events


def pump(host: EmbeddedHost, stop: Stop) -> None:
    """Take on whatever may be written, until `stop` is set. What goes wrong in one session is logged, and the others are gone on with."""
    looks = _Looks(host)
    while not stop.wait(PUMP_SECONDS):
        with guarded("looking into the outbox", tell=host.tell_failure):
            looks.look()
            continue
        stop.wait(SLOWEST_SECONDS)


class _Looks:
    """The database is looked into only after something was written to it, and a message that makes no progress ever less often."""

    def __init__(self, host: EmbeddedHost) -> None:
        self._host = host
        self._seen: object = None
        self._active: set[str] = set()
        self._pause, self._due = PUMP_SECONDS, 0.0

    def look(self) -> None:
        """Take on what there is by now."""
        now = self._host.store.database.fingerprint()
        if now != self._seen:
            self._active = self._host.active()
            self._seen, self._pause, self._due = now, PUMP_SECONDS, 0.0
        if time.monotonic() < self._due:
            return
        for session_id in self._active:
            self._host.take_on(session_id)
        self._pause = min(self._pause * 1.5, SLOWEST_SECONDS)
        self._due = time.monotonic() + self._pause
