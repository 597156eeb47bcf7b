"""One isolating `emit`: every receiver is called, whatever the others do, and vetoes come back."""

from __future__ import annotations

import functools
import gc
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from blinker import NamedSignal

from ccc_hookspecs import signals
from ccc_hookspecs.outcomes import PluginFailure, Veto
from ccc_hookspecs.signals import emit, headless_healed, headless_retired, healing_proposed, plugin_failed, retirement_proposed
from tests.ccc_hookspecs.samples import Unspeakable

SENDER = "retire_stale.watcher"
NAMES = {
    "retirement_proposed",
    "healing_proposed",
    "headless_healed",
    "headless_retired",
    "retirement_deferred",
    "headless_kept",
    "retirement_failed",
    "injection_held",
    "headless_respawned",
    "plugin_failed",
}

proposals = pytest.mark.parametrize("proposed", [retirement_proposed, healing_proposed], ids=lambda signal: str(signal.name))


@pytest.fixture(autouse=True)
def _no_receiver_left() -> Iterator[None]:
    """Receivers of one test do not hear the next."""
    yield
    for signal in signals.namespace.values():
        for receiver in list(signal.receivers_for(SENDER)):
            signal.disconnect(receiver)


class Log:
    """A receiver that remembers what it heard and answers `answer`."""

    def __init__(self, answer: object = None) -> None:
        self.heard: list[tuple[str, object]] = []
        self.answer = answer

    def receive(self, mechanism: str, event: object) -> object:
        self.heard.append((mechanism, event))
        return self.answer


def test_every_signal_has_a_name_a_doc_and_a_place() -> None:
    """The namespace holds these signals and no other, each under its own module name and each saying what `event` is."""
    assert set(signals.namespace) == NAMES
    for name, signal in signals.namespace.items():
        assert getattr(signals, name) is signal
        assert "`event` is a" in (signal.__doc__ or "")


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_signal_is_heard_once_with_its_sender_and_its_event(name: str) -> None:
    """A receiver for all senders and one for this mechanism hear it once; one for another mechanism does not."""
    signal: NamedSignal = getattr(signals, name)
    everyone, mine, other = Log(), Log(), Log()
    signal.connect(everyone.receive)
    signal.connect(mine.receive, sender=SENDER)
    signal.connect(other.receive, sender="retire_stale.use_time")
    event = object()
    assert emit(signal, "".join(SENDER), event) == ()
    assert everyone.heard == mine.heard == [(SENDER, event)]
    assert other.heard == []


@pytest.mark.case("C95")
def test_a_raising_receiver_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """Each of three receivers is called though the others raise; each failure is logged with its name and traceback."""
    heard = Log()

    def first(mechanism: str, event: object) -> None:
        raise OSError("disk")

    def last(mechanism: str, event: object) -> None:
        raise KeyError("missing")

    for receiver in (first, heard.receive, last):
        headless_retired.connect(receiver)
    with caplog.at_level(logging.ERROR, "ccc_hookspecs.signals"):
        assert emit(headless_retired, SENDER, 1) == ()
    assert heard.heard == [(SENDER, 1)]
    assert {first.__qualname__, last.__qualname__} <= {str(part) for record in caplog.records for part in record.args or ()}
    assert all(record.exc_info for record in caplog.records)


@pytest.mark.case("C95")
def test_a_failing_receiver_is_itself_reported() -> None:
    """What a receiver raised is sent as `plugin_failed`, with the receiver's name and the signal's; but never about itself."""
    failures = Log()
    plugin_failed.connect(failures.receive)

    def broken(mechanism: str, event: object) -> None:
        raise OSError("disk")

    headless_retired.connect(broken)
    plugin_failed.connect(broken)
    emit(headless_retired, SENDER, 1)
    name = broken.__qualname__
    assert failures.heard == [(name, PluginFailure(plugin=name, where="headless_retired", error="OSError: disk"))]


@pytest.mark.case("C95")
def test_a_receiver_whose_error_cannot_be_told_stops_no_other() -> None:
    """An exception whose own text raises is reported by its type; so is an exit on another thread than the main one."""
    heard, failures = Log(), Log()
    plugin_failed.connect(failures.receive)

    def unspeakable(mechanism: str, event: object) -> None:
        raise Unspeakable

    def exits(mechanism: str, event: object) -> None:
        raise SystemExit(2)

    for receiver in (unspeakable, exits, heard.receive):
        headless_retired.connect(receiver)
    thread = threading.Thread(target=emit, args=(headless_retired, SENDER, 1))
    thread.start()
    thread.join()
    assert heard.heard == [(SENDER, 1)]
    assert {event.error for _, event in failures.heard if isinstance(event, PluginFailure)} == {"Unspeakable", "SystemExit: 2"}


@proposals
def test_vetoes_come_back(proposed: NamedSignal) -> None:
    """Every `Veto` that a receiver answers is returned."""
    one, two = Log(Veto(reason="one")), Log(Veto(reason="two"))
    for receiver in (one.receive, two.receive, Log().receive):
        proposed.connect(receiver, weak=False)
    assert {veto.reason for veto in emit(proposed, SENDER, None)} == {"one", "two"}


async def later(mechanism: str, event: object) -> Veto:
    raise AssertionError("never awaited")


@proposals
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Veto, "answered the class Veto, expected Veto(reason=...) or None"),
        ("a demo is running", "answered str, expected Veto(reason=...) or None"),
        ({"reason": "a demo is running"}, "answered dict, expected Veto(reason=...) or None"),
        (True, "answered bool, expected Veto(reason=...) or None"),
        (False, "answered bool, expected Veto(reason=...) or None"),
        (later, "would have to be awaited; receivers are called and not awaited"),
    ],
    ids=["class", "text", "dict", "true", "false", "coroutine"],
)
def test_a_veto_of_the_wrong_form_keeps_the_process_and_is_reported(answer: object, told: str, proposed: NamedSignal) -> None:
    """What answers a proposal with neither None nor a `Veto` may have meant one: it counts as one, and as a failure of its receiver."""
    failures = Log()
    plugin_failed.connect(failures.receive)

    def guard(mechanism: str, event: object) -> object:
        return later(mechanism, event) if answer is later else answer

    with proposed.connected_to(guard):
        (veto,) = emit(proposed, SENDER, None)
    name = guard.__qualname__
    assert veto.reason == f"{name} {told}"
    assert failures.heard == [(name, PluginFailure(plugin=name, where=proposed.name, error=f"TypeError: {told}"))]


def test_other_answers_to_other_signals_are_ignored() -> None:
    """A lambda that returns something is no failure of a receiver where nobody asked anything."""
    failures = Log()
    plugin_failed.connect(failures.receive)
    for signal in (headless_retired, headless_healed):
        with signal.connected_to(lambda mechanism, event: True):
            assert emit(signal, SENDER, 1) == ()
    assert failures.heard == []


def test_a_muted_signal_is_silent() -> None:
    """While blinker mutes a signal, nobody hears it."""
    heard = Log()
    headless_retired.connect(heard.receive)
    with headless_retired.muted():
        emit(headless_retired, SENDER, 1)
    assert heard.heard == []


@pytest.mark.parametrize("receiver", [later, lambda mechanism, event: later(mechanism, event)], ids=["function", "lambda"])
def test_a_receiver_that_would_have_to_be_awaited_is_a_failure(receiver: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    """It is reported and leaves no coroutine that nobody awaits; a proposal counts it as a veto, since its own could not be heard."""
    with headless_retired.connected_to(receiver):
        assert emit(headless_retired, SENDER, 1) == ()
    assert f"{receiver.__qualname__} of signal headless_retired failed" in caplog.text
    for proposed in (retirement_proposed, healing_proposed):
        with proposed.connected_to(receiver):
            assert [veto.reason.partition(" ")[0] for veto in emit(proposed, SENDER, 1)] == [receiver.__qualname__]


@pytest.mark.case("C96")
def test_collected_receivers_are_gone_and_kept_ones_are_not() -> None:
    """A lambda, a nested function and a temporary's method that nobody keeps are not called; `weak=False` keeps them."""
    heard: list[str] = []

    def connect(weak: bool, mark: str) -> None:
        def nested(mechanism: str, event: object) -> None:
            heard.append(f"{mark} nested")

        class Temporary:
            def method(self, mechanism: str, event: object) -> None:
                heard.append(f"{mark} method")

        receivers: list[Callable[..., Any]] = [lambda mechanism, event: heard.append(f"{mark} lambda"), nested, Temporary().method]
        for receiver in receivers:
            headless_retired.connect(receiver, weak=weak)

    connect(True, "weak")
    connect(False, "strong")
    gc.collect()
    emit(headless_retired, SENDER, 1)
    assert sorted(heard) == ["strong lambda", "strong method", "strong nested"]


def test_a_receiver_without_a_name_can_fail_too(caplog: pytest.LogCaptureFixture) -> None:
    """A partial, which has no name of its own, is reported by its type."""

    def broken(extra: int, mechanism: str, event: object) -> None:
        raise OSError("disk")

    receiver = functools.partial(broken, 1)
    headless_retired.connect(receiver)
    emit(headless_retired, SENDER, 1)
    assert "partial" in caplog.text


@pytest.mark.case("C96")
def test_sending_while_others_connect() -> None:
    """A receiver hears every one of its events while another thread connects and disconnects receivers."""
    heard = Log()
    headless_retired.connect(heard.receive)
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            other = Log()
            headless_retired.connect(other.receive)
            headless_retired.disconnect(other.receive)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for number in range(300):
            emit(headless_retired, SENDER, number)
    finally:
        stop.set()
        thread.join()
    assert [event for _, event in heard.heard] == list(range(300))


AT_EXIT = """
import atexit, threading, time
from ccc_hookspecs.signals import emit, headless_retired
from ccc_hookspecs.ticker import Ticker

class Kept:
    def receive(self, mechanism, event): pass
kept = Kept()
headless_retired.connect(kept.receive)
headless_retired.connect(lambda mechanism, event: None)
ticker = Ticker(lambda tick: emit(headless_retired, 'm', tick), interval=0.001)
ticker.start()
atexit.register(emit, headless_retired, 'm', None)
time.sleep(0.05)
print(ticker.running)
"""


@pytest.mark.case("C96")
def test_an_interpreter_ends_quietly_with_receivers_and_a_ticker() -> None:
    """Receivers still connected and a ticker still running leave no error and no delay when the interpreter ends."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", AT_EXIT], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
