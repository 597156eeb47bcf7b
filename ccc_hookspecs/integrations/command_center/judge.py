"""Asking the plugins about one text, and keeping what their answer means for CCC: a hold, or a debt to the session."""

from __future__ import annotations

import logging
import uuid
from types import ModuleType
from typing import Final

from ccc_hookspecs.errors import SessionLockTimeout
from ccc_hookspecs.integrations.command_center.adapter import UNKNOWN_MECHANISM, CommandCenterHost
from ccc_hookspecs.integrations.command_center.attempts import Entry
from ccc_hookspecs.integrations.command_center.debts import Debt
from ccc_hookspecs.integrations.command_center.holds import Held, Holds, why
from ccc_hookspecs.integrations.command_center.queue import Queue
from ccc_hookspecs.manager import PluginManager
from ccc_hookspecs.values import Decision, Deliver, Headless, Hold, Injection, Respawn

log = logging.getLogger(__name__)

CLEAR: Final = "/clear"
"""The one text that no plugin is asked about: it drops the memory that may be stale, and adds no turn to the session."""

OVERTAKES: Final = "earlier texts of this session wait to be delivered first"
"""Why a text waits that would overtake others."""


class Judge:
    """The plugins' answers, and the holds that follow from them."""

    def __init__(self, server: ModuleType, host: CommandCenterHost, manager: PluginManager, holds: Holds, queue: Queue) -> None:
        self._server = server
        self._host = host
        self._manager = manager
        self._holds = holds
        self._queue = queue

    def ask(self, entry: Entry, text: str, message_id: str, *, from_queue: bool) -> Decision:
        """What is to become of `text`, on its way to this row's process. To be called with the session's lock held."""
        headless = self._host.headless(entry)
        if headless is None or text.strip() == CLEAR:
            return Deliver()
        injection = Injection(session_id=headless.session_id, text=text, message_id=message_id, headless=headless)
        if not from_queue and self.must_wait(headless.session_id):
            return self._behind_others(entry, headless, injection)
        return self._kept(entry, headless, injection, self._manager.pre_inject(self._host, injection))

    def must_wait(self, session_id: str) -> bool:
        """True when texts of this session are queued because of us, so that a new one must not overtake them."""
        return self._host.debts.get(session_id) is not None and self._queue.pending(session_id)

    def _behind_others(self, entry: Entry, headless: Headless, injection: Injection) -> Hold:
        """A text that would overtake queued ones. What the process is held for already is what its hold goes on to say."""
        hold = Hold(reason=OVERTAKES)
        if not self._holds.holds(entry):
            self._hold(entry, headless, injection, hold, turn=True)
        return hold

    def wait_for_lock(self, entry: Entry, text: str, error: Exception) -> Hold:
        """A text whose session's lock was not to be had: CCC must not end the process that somebody may work on, and the text waits."""
        in_use = isinstance(error, SessionLockTimeout)
        reason = "another part of CCC works on this session" if in_use else f"the session cannot be locked: {error}"
        headless, hold = self._host.headless(entry), Hold(reason=reason)
        if headless is not None:
            injection = Injection(session_id=headless.session_id, text=text, message_id=str(uuid.uuid4()), headless=headless)
            self._hold(entry, headless, injection, hold)
        return hold

    def ask_again(self) -> None:
        """Ask about every held text once more; CCC's queue delivers those whose hold has ended."""
        for held in self._holds.all():
            try:
                with self._host.session_lock(held.headless.session_id, 0):
                    self._ask_again(held)
            except SessionLockTimeout:
                continue
            except Exception:  # one session must not keep the others from being asked about
                log.exception("session %s: its held text could not be asked about", held.headless.session_id)

    def _ask_again(self, held: Held) -> None:
        headless = self._host.headless(held.entry) if self._host.listed(held.entry) and self._host.alive(held.entry) else None
        if headless is None or headless.session_id != held.headless.session_id:
            self._end(held.headless)
            return
        injection = Injection(session_id=headless.session_id, text=held.text, message_id=held.message_id, headless=headless)
        self._kept(held.entry, headless, injection, self._manager.pre_inject(self._host, injection))

    def _kept(self, entry: Entry, headless: Headless, injection: Injection, decision: Decision) -> Decision:
        if isinstance(decision, Respawn) and not self._host.gone(entry) and self._host.alive(entry):
            log.error("session %s: a plugin asked for a respawn while process %d lives", headless.session_id, headless.pid)
            decision = Hold(reason=f"process {headless.pid} has not ended yet")
        if isinstance(decision, Hold):
            self._hold(entry, headless, injection, decision)
            return decision
        self._end(headless)
        if isinstance(decision, Respawn):
            self._owe(headless, decision)
        return decision

    def _hold(self, entry: Entry, headless: Headless, injection: Injection, hold: Hold, *, turn: bool = False) -> None:
        session_id = headless.session_id
        if self._host.debts.get(session_id) is None:
            self._host.debts.put(session_id, Debt(reason=hold.reason, mechanism=UNKNOWN_MECHANISM))
        held = self._holds.hold(entry, headless, injection.text, injection.message_id, hold, turn=turn)
        if held is not None:
            self._server._log_activity("hold", "HOLD", f"session={session_id} pid={headless.pid} reason={why(hold)}")

    def _end(self, headless: Headless) -> None:
        if self._holds.end(headless.pid) is not None:
            self._server._log_activity("hold", "HOLD_END", f"session={headless.session_id} pid={headless.pid}")

    def _owe(self, headless: Headless, respawn: Respawn) -> None:
        session_id = headless.session_id
        known = self._host.debts.get(session_id) or Debt(reason=respawn.reason, mechanism=UNKNOWN_MECHANISM)
        self._host.debts.put(session_id, known.replaced(headless, known.mechanism, respawn.reason))
        if self._host.entry(headless.pid) is not None:
            self._host.released(headless)
