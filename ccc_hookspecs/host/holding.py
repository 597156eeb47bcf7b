"""Texts that wait: why, since when, and what a person who was told so overruled."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ccc_hookspecs.host.heard import Heard
from ccc_hookspecs.host.records import Message
from ccc_hookspecs.host.store import Store
from ccc_hookspecs.outcomes import HeldInjection
from ccc_hookspecs.signals import emit, injection_held
from ccc_hookspecs.values import Hold

log = logging.getLogger(__name__)

SENDER: Final = "ccc-host"
"""The sender of signals that no mechanism asked for."""


class Holding:
    """Holds messages. Every method is called with the session's lock held.

    What a person overruled is what they were shown and nothing else, and it counts for one try: it is known for as long as that lasts and
    kept nowhere.
    """

    def __init__(self, store: Store, heard: Heard) -> None:
        self._store = store
        self._heard = heard
        self._shown: dict[str, tuple[Message, ...]] = {}

    @contextmanager
    def overruling(self, shown: tuple[Message, ...]) -> Iterator[None]:
        """While it lasts, what this message waited for when it was shown, once or several times, is not waited for."""
        key = shown[0].message_id if shown else ""
        self._shown[key] = shown
        try:
            yield
        finally:
            self._shown.pop(key, None)

    def waived(self, message: Message, hold: Hold) -> bool:
        """Whether a person overruled this hold of the host's own, or one for the same process at the same cost."""
        holds = [one.hold for one in self._shown.get(message.message_id, ()) if one.hold is not None and one.own_hold]
        return any((one.signs, one.cost) == (hold.signs, hold.cost) for one in holds)

    def waived_to_plugins(self, message: Message) -> bool:
        """Whether a person overruled a hold of a plugin's: True for one question."""
        shown = self._shown.get(message.message_id, ())
        rest = tuple(one for one in shown if one.state != "held" or one.own_hold)
        if len(rest) < len(shown):
            self._shown[message.message_id] = rest
        return len(rest) < len(shown)

    def given_up_on(self, message: Message) -> bool:
        """Whether a person gave up on the process that has the message and does not take it."""
        shown = self._shown.get(message.message_id, ())
        same = (message.head_id, message.terminal, message.written_at)
        return message.is_stuck and any(one.state == "written" and (one.head_id, one.terminal, one.written_at) == same for one in shown)

    def hold(self, message: Message, hold: Hold, *, own: bool = True) -> bool:
        """It waits; False, for there is no other step. `own`: it is no plugin's hold."""
        known = message.hold
        if message.state == "held" and (known, message.own_hold) == (hold, own):
            return False
        message = self._store.outbox.hold(message, hold, own=own)
        if known is None or (known.reason, known.signs) != (hold.reason, hold.signs):
            self._announce(message, hold)
        return False

    def _announce(self, message: Message, hold: Hold) -> None:
        log.debug("session %s: %s is held: %s", message.session_id, message.message_id, hold.reason, extra={"ccc_reason": hold.reason})
        self._store.journal.note("held", message.session_id, message_id=message.message_id, reason=hold.reason, signs=list(hold.signs))
        if not self._heard.announced(message.message_id):
            since = message.held_since or message.created_at
            event = HeldInjection(session_id=message.session_id, message_id=message.message_id, hold=hold, since=since)
            emit(injection_held, SENDER, event)
