"""What mechanisms broadcast, brought to where CCC's user looks, and to CCC's busy checks."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ccc_hookspecs.integrations.command_center.adapter import CommandCenterHost
from ccc_hookspecs.integrations.command_center.holds import Holds
from ccc_hookspecs.outcomes import Deferral, Healed, Kept, PluginFailure, Proposal, Retirement, RetirementFailure
from ccc_hookspecs.signals import (
    headless_healed,
    headless_kept,
    headless_retired,
    plugin_failed,
    retirement_deferred,
    retirement_failed,
    retirement_proposed,
)
from ccc_hookspecs.values import Headless


class Notices:
    """Receivers of the signals, for the headless processes of one host."""

    def __init__(self, server: ModuleType, host: CommandCenterHost, holds: Holds) -> None:
        self._server = server
        self._host = host
        self._holds = holds
        self._receivers = (
            (retirement_proposed, self._proposed),
            (headless_retired, self._retired),
            (headless_healed, self._healed),
            (retirement_deferred, self._deferred),
            (headless_kept, self._kept),
            (retirement_failed, self._failed),
            (plugin_failed, self._plugin_failed),
        )

    def connect(self) -> None:
        """Begin to listen."""
        for signal, receiver in self._receivers:
            signal.connect(receiver, weak=False)

    def disconnect(self) -> None:
        """Listen no more."""
        for signal, receiver in self._receivers:
            signal.disconnect(receiver)

    def _proposed(self, mechanism: str, event: Proposal) -> None:
        if self._mine(event.headless):
            self._host.reasons[event.headless.pid] = (mechanism, event.reason)

    def _retired(self, mechanism: str, event: Retirement) -> None:
        self._host.reasons.pop(event.headless.pid, None)
        self._holds.undefer(event.headless.pid)

    def _healed(self, mechanism: str, event: Healed) -> None:
        if self._mine(event.headless):
            self._host.reasons.pop(event.headless.pid, None)
            # It knows the turns for which it should go.
            self._holds.undefer(event.headless.pid, mechanism)
            given = f"turns: {len(event.turns)}, records: {event.records}"
            self._log("HEALED", mechanism, event.headless, f"{event.reason}; {given}; in {event.seconds:.1f} s")

    def _deferred(self, mechanism: str, event: Deferral) -> None:
        if self._mine(event.headless):
            self._host.reasons.pop(event.headless.pid, None)
            self._holds.defer(event.headless, mechanism)
            self._log("DEFER", mechanism, event.headless, f"{event.reason}; busy: {', '.join(event.facts.signs)}")

    def _kept(self, mechanism: str, event: Kept) -> None:
        if self._mine(event.headless):
            self._host.reasons.pop(event.headless.pid, None)
            self._holds.undefer(event.headless.pid, mechanism)
            if event.would_retire or event.would_heal:
                self._log("WOULD", mechanism, event.headless, f"heal: {event.reason}" if event.would_heal else event.reason)

    def _failed(self, mechanism: str, event: RetirementFailure) -> None:
        if self._mine(event.headless):
            self._holds.undefer(event.headless.pid, mechanism)
            self._log("FAILED", mechanism, event.headless, f"{event.reason}; at: {event.rung}")

    def _plugin_failed(self, plugin: str, event: PluginFailure) -> None:
        self._server._log_activity("plugins", "FAILED", f"plugin={event.plugin} in={event.where} error={event.error}")

    def _mine(self, headless: Headless) -> bool:
        return self._host.entry(headless.pid) is not None

    def _log(self, verb: str, mechanism: str, headless: Headless, detail: str) -> Any:
        self._server._log_activity("retire", verb, f"pid={headless.pid} sid={headless.session_id[:8]} by={mechanism} {detail}")
