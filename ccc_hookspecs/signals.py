"""What plugins broadcast: blinker signals in one namespace. The sender is the mechanism's name, the payload one value, `event`.

    from ccc_hookspecs.signals import headless_retired

    @headless_retired.connect
    def on_retired(mechanism: str, event: Retirement) -> None: ...

Receivers are held weakly, as blinker's default is: keep a reference, or connect with `weak=False`.
"""

from __future__ import annotations

import inspect
import logging
from typing import Any

from blinker import NamedSignal, Namespace

from ccc_hookspecs.failures import meant_for_host, name_of, said, traceable
from ccc_hookspecs.outcomes import PluginFailure, Veto

log = logging.getLogger(__name__)

namespace = Namespace()

retirement_proposed = namespace.signal(
    "retirement_proposed",
    doc="A headless is about to be retired; `event` is a Proposal. Sent with the session's lock held, before anything is "
    "signalled. A receiver may return Veto(reason=...): then the process is kept.",
)
headless_retired = namespace.signal(
    "headless_retired", doc="A headless was retired and its exit is confirmed; `event` is a Retirement. Sent once for a process."
)
retirement_deferred = namespace.signal(
    "retirement_deferred",
    doc="A headless should go but is busy, or may be; `event` is a Deferral with the signs. Sent when the deferral begins and "
    "when its signs change.",
)
headless_kept = namespace.signal(
    "headless_kept",
    doc="A headless was considered for retirement and is kept; `event` is a Kept with the reason. Sent when the reason is new "
    "for that process.",
)
retirement_failed = namespace.signal(
    "retirement_failed", doc="A retirement began and the process did not exit, or could not be signalled; `event` is a RetirementFailure."
)
injection_held = namespace.signal(
    "injection_held",
    doc="A text is kept back until the stale headless is idle; `event` is a HeldInjection. Sent when the hold begins and when "
    "its signs change.",
)
headless_respawned = namespace.signal(
    "headless_respawned",
    doc="A host started a fresh headless in place of a retired one; `event` is a Respawned. The sender is the mechanism that asked for it.",
)
plugin_failed = namespace.signal(
    "plugin_failed",
    doc="A plugin's hook call raised, or a plugin could not be loaded; `event` is a PluginFailure. The sender is the plugin's name.",
)


def emit(signal: NamedSignal, sender: str, event: object) -> tuple[Veto, ...]:
    """Send `event` to every receiver of `signal`, each on its own; returns the vetoes that receivers answered.

    A receiver that raises is logged with its name and traceback, sent as `plugin_failed` with its name as the sender, and
    the next one is still called. A muted signal is not sent. Raises nothing but what interrupts the host (`meant_for_host`).
    """
    if signal.is_muted:
        return ()
    vetoes: list[Veto] = []
    for receiver in list(signal.receivers_for(sender)):
        answer = _call(receiver, signal, sender, event)
        if isinstance(answer, Veto):
            vetoes.append(answer)
    return tuple(vetoes)


def _call(receiver: Any, signal: NamedSignal, sender: str, event: object) -> object:
    try:
        if inspect.iscoroutinefunction(receiver):
            raise TypeError("a coroutine function cannot be a receiver: it is called and not awaited")
        return receiver(sender, event=event)
    except BaseException as error:
        if meant_for_host(error):
            raise
        _report(receiver, signal, event, error)
        return None


def _report(receiver: object, signal: NamedSignal, event: object, error: BaseException) -> None:
    name, words = name_of(receiver), said(error)
    log.error("receiver %s of signal %s raised on %s: %s", name, signal.name, type(event).__name__, words, exc_info=traceable(error))
    if signal is not plugin_failed:
        emit(plugin_failed, name, PluginFailure(plugin=name, where=signal.name, error=words))
