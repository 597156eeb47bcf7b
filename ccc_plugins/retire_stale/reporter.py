"""One log line and one signal for each outcome of a retirement, without repeating what was already said."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Generic, TypeAlias, TypeVar

from blinker import NamedSignal

from ccc_hookspecs.outcomes import Deferral, Healed, Kept, Outcome, Retirement, RetirementFailure
from ccc_hookspecs.signals import emit, headless_healed, headless_kept, headless_retired, retirement_deferred, retirement_failed
from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.judgement.idleness import sign_kind

log = logging.getLogger(__name__)

REMEMBERED = 4096
"""How many processes' deferrals, and how many kept reasons, a reporter remembers; past it an old one may be said again."""


class Reporter:
    """Says an outcome once. What it remembers is in memory only, so that a restarted host says it once more.

    A retirement, a healing and a failure are always said. A deferral is said when it begins and when its reason or signs change, a
    keeping when its reason is new for that process and mechanism, or ends a deferral that was said.
    """

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._lock = threading.Lock()
        self._deferred: _Memory[tuple[float, str, tuple[str, ...]]] = _Memory(remembered)
        self._kept: _Memory[bool] = _Memory(remembered)

    def report(self, outcome: Outcome) -> bool:
        """Log the outcome and send its signal; False when it was said before. Never raises what a subscriber raises."""
        if not self._is_news(outcome):
            return False
        _log(outcome)
        emit(_SIGNALS[type(outcome)], outcome.mechanism, outcome)
        return True

    def since(self, headless: Headless, mechanism: str) -> float | None:
        """When the deferral of this process that was said and is not over began, in seconds since the epoch; None when there is none."""
        with self._lock:
            said = self._deferred.get(_process(headless, mechanism))
        return None if said is None else said[0]

    def end_deferral(self, headless: Headless, mechanism: str, reason: str) -> None:
        """Nothing is waited for any more, for this reason: said as a `Kept` when the deferral was said."""
        if self.since(headless, mechanism) is not None:
            self.report(Kept(headless=headless, mechanism=mechanism, reason=reason))

    def _is_news(self, outcome: Outcome) -> bool:
        process = _process(outcome.headless, outcome.mechanism)
        with self._lock:
            if isinstance(outcome, Deferral):
                return self._deferred.put(process, (outcome.since, outcome.reason, tuple(map(sign_kind, outcome.facts.signs))))
            ends = self._deferred.forget(process)
            return not isinstance(outcome, Kept) or self._is_new_keeping(process, outcome) or ends

    def _is_new_keeping(self, process: Process, kept: Kept) -> bool:
        return self._kept.put((*process, kept.reason, kept.would_retire, kept.would_heal), True)


Process: TypeAlias = tuple[int, float | None, str]
V = TypeVar("V")


def _process(headless: Headless, mechanism: str) -> Process:
    return headless.pid, headless.start_time, mechanism


class _Memory(Generic[V]):
    """A bounded mapping that forgets what was longest unused."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        return self._items.get(key)

    def put(self, key: Hashable, value: V) -> bool:
        """Remember; True when that is new."""
        known = self._items.pop(key, None)
        self._items[key] = value
        if len(self._items) > self._size:
            self._items.popitem(last=False)
        return known != value

    def forget(self, key: Hashable) -> bool:
        """True when there was something."""
        return self._items.pop(key, None) is not None


_SIGNALS: dict[type[Any], NamedSignal] = {
    Retirement: headless_retired,
    Healed: headless_healed,
    Deferral: retirement_deferred,
    Kept: headless_kept,
    RetirementFailure: retirement_failed,
}


def _log(outcome: Outcome) -> None:
    headless = outcome.headless
    extra = {"ccc_session": headless.session_id, "ccc_mechanism": outcome.mechanism, "ccc_reason": outcome.reason}
    subject = (outcome.mechanism, headless.pid, headless.session_id)
    if isinstance(outcome, Retirement):
        took = (outcome.seconds, outcome.rung, outcome.exit_code)
        log.info("%s: retired process %d of session %s: %s; %.3f s, by %s, exit code %s", *subject, outcome.reason, *took, extra=extra)
    elif isinstance(outcome, Healed):
        given = (len(outcome.turns), outcome.records, outcome.seconds)
        log.info("%s: healed process %d of session %s: %s; %d turns, %d records, %.3f s", *subject, outcome.reason, *given, extra=extra)
    elif isinstance(outcome, Deferral):
        log.info("%s: deferred process %d of session %s: %s; %s", *subject, outcome.reason, ", ".join(outcome.facts.signs), extra=extra)
    elif isinstance(outcome, Kept):
        log.debug("%s: kept process %d of session %s: %s", *subject, outcome.reason, extra=extra)
    else:
        log.warning("%s: failed at process %d of session %s: %s; at %s", *subject, outcome.reason, outcome.rung, extra=extra)
