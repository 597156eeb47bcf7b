"""The injections that are held back, so that each is said when it begins and when its signs change."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict

from ccc_hookspecs.outcomes import HeldInjection
from ccc_hookspecs.signals import emit, injection_held
from ccc_hookspecs.values import Hold, Injection
from ccc_plugins.retire_stale.judgement.idleness import sign_kind

log = logging.getLogger(__name__)


class Holds:
    """In memory, bounded. Safe to use from any thread."""

    def __init__(self, remembered: int = 4096) -> None:
        self._lock = threading.Lock()
        self._remembered = remembered
        self._held: OrderedDict[str, tuple[float, tuple[str, ...]]] = OrderedDict()

    def keep(self, injection: Injection, hold: Hold, *, mechanism: str) -> None:
        """Note a hold, log it and send `injection_held` when it is news."""
        kinds = tuple(map(sign_kind, hold.signs))
        with self._lock:
            since, before = self._held.pop(injection.message_id, (time.time(), None))
            self._held[injection.message_id] = since, kinds
            if len(self._held) > self._remembered:
                self._held.popitem(last=False)
        if before != kinds:
            extra = {"ccc_session": injection.session_id, "ccc_mechanism": mechanism, "ccc_reason": hold.reason}
            log.info("session %s: held: %s; waits for: %s", injection.session_id, hold.reason, "; ".join(hold.signs), extra=extra)
            event = HeldInjection(session_id=injection.session_id, message_id=injection.message_id, hold=hold, since=since)
            emit(injection_held, mechanism, event)

    def drop(self, injection: Injection) -> None:
        """This one is held no more."""
        with self._lock:
            self._held.pop(injection.message_id, None)
