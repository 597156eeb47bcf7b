"""What plugins broadcast: blinker signals in one namespace. The sender is the mechanism's name, the payload one value, `event`.

    from ccc_hookspecs.signals import headless_retired

    def configure(settings: PluginSettings) -> None:
        headless_retired.connect(on_retired)

    def unconfigure() -> None:
        headless_retired.disconnect(on_retired)

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
    "signalled. A receiver may return Veto(reason=...): then the process is kept. Anything else but None counts as a veto too, "
    "and is reported.",
)
healing_proposed = namespace.signal(
    "healing_proposed",
    doc="A headless is about to be given the turns that it does not know; `event` is a Proposal. Sent and answered as "
    "`retirement_proposed` is: with a veto nothing is given to it.",
)
headless_healed = namespace.signal(
    "headless_healed", doc="A headless was given the turns that it did not know; `event` is a Healed. Sent each time that it is given some."
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
    doc="A plugin's hook call or a receiver failed, or a plugin could not be loaded; `event` is a PluginFailure. The sender is its name.",
)

_PROPOSALS = (retirement_proposed, healing_proposed)


def emit(signal: NamedSignal, sender: str, event: object) -> tuple[Veto, ...]:
    """Send `event` to every receiver of `signal`, each on its own; returns the vetoes that receivers answered.

    A receiver that raises is logged with its name and traceback, sent as `plugin_failed` with its name as the sender, and
    the next one is still called. So is one that would have to be awaited, and one that answers a proposal with
    anything but None or a `Veto`; to that signal such an answer counts as a veto, whose reason says so. What else a receiver
    returns is ignored. A muted signal is not sent. Raises nothing but what interrupts the host (`meant_for_host`).
    """
    if signal.is_muted:
        return ()
    answers = [_ask(receiver, signal, sender, event) for receiver in list(signal.receivers_for(sender))]
    return tuple(answer for answer in answers if answer is not None)


def _ask(receiver: Any, signal: NamedSignal, sender: str, event: object) -> Veto | None:
    try:
        awaited = inspect.iscoroutinefunction(receiver)
        answer = None if awaited else receiver(sender, event=event)
        if isinstance(answer, Veto):
            return answer
        wrong = _wrong(answer, signal, awaited=awaited)
    except BaseException as error:
        if meant_for_host(error):
            raise
        _report(receiver, signal, event, error)
        return None
    if wrong is None:
        return None
    _report(receiver, signal, event, TypeError(wrong))
    # It may have meant to keep the process, and what is not known never ends one.
    return Veto(reason=f"{name_of(receiver)} {wrong}") if signal in _PROPOSALS else None


def _wrong(answer: object, signal: NamedSignal, *, awaited: bool) -> str | None:
    """What is wrong with an answer that is no `Veto`, None when nothing is."""
    if inspect.iscoroutine(answer):
        answer.close()
        awaited = True
    if awaited:
        return "would have to be awaited; receivers are called and not awaited"
    if answer is None or signal not in _PROPOSALS:
        return None
    kind = f"the class {answer.__name__}" if isinstance(answer, type) else type(answer).__name__
    return f"answered {kind}, expected Veto(reason=...) or None"


def _report(receiver: object, signal: NamedSignal, event: object, error: BaseException) -> None:
    name, words = name_of(receiver), said(error)
    log.error("receiver %s of signal %s failed on %s: %s", name, signal.name, type(event).__name__, words, exc_info=traceable(error))
    if signal is not plugin_failed:
        emit(plugin_failed, name, PluginFailure(plugin=name, where=signal.name, error=words))
