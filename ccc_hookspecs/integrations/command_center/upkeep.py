"""What is seen to now and then: what is kept of processes that ended by themselves, and what could not be written."""

from __future__ import annotations

import logging
from typing import Final

from ccc_hookspecs.errors import SessionLockTimeout
from ccc_hookspecs.integrations.command_center.adapter import CommandCenterHost
from ccc_hookspecs.integrations.command_center.holds import Holds
from ccc_hookspecs.values import Tick

log = logging.getLogger(__name__)

TICKS: Final = 12
"""Ticks from one time to the next: with the default interval a minute."""


class Upkeep:
    """Keeps memory and state directory of one CCC from filling up while it runs."""

    def __init__(self, host: CommandCenterHost, holds: Holds) -> None:
        self._host = host
        self._holds = holds

    def on_tick(self, tick: Tick) -> None:
        """Do what is due. Raises nothing."""
        if tick.number % TICKS:
            return
        records, debts = self._host.records, self._host.debts
        for step in (records.write_late, self._write_debts, self._host.forget_ended, self._holds.forget_ended, debts.sweep):
            try:
                step()
            except Exception:  # the others are due all the same
                log.exception("%s failed", step.__qualname__)

    def _write_debts(self) -> None:
        for session_id in self._host.debts.unwritten():
            try:
                with self._host.session_lock(session_id, 0):
                    self._host.debts.write_late(session_id)
            except SessionLockTimeout:
                continue
