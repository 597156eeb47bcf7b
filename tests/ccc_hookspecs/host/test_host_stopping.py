"""A stop that is set at any step of the wait for it."""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any

import pytest

from ccc_hookspecs.host.stopping import Stop

STEPS = 40
"""More instructions than `Stop.wait` has."""


class BreaksIn:
    """Sets a stop from within a wait, before its instruction of that number, as a signal handler would."""

    def __init__(self, stop: Stop, number: int) -> None:
        self.stop, self.left = stop, number

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes = frame.f_code is Stop.wait.__code__
        if event == "opcode" and frame.f_trace_opcodes:
            if self.left == 0:
                self.stop.set()
            self.left -= 1
        return self


@pytest.mark.parametrize("number", range(STEPS))
def test_a_wait_ends_wherever_a_handler_breaks_in(number: int) -> None:
    """It is told so, by this wait or by the next."""
    stop, told = Stop(), list[bool]()
    breaks_in = BreaksIn(stop, number)

    def wait() -> None:
        sys.settrace(breaks_in)
        told.append(stop.wait(60))

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join(0.2)
    if breaks_in.left >= 0:
        stop.set()
    thread.join(30)
    assert not thread.is_alive()
    assert told == [True]
    assert stop.wait(0)


def test_every_wait_ends() -> None:
    """Each thread that waits, and whoever asks later."""
    stop, told = Stop(), list[bool]()
    threads = [threading.Thread(target=lambda: told.append(stop.wait(60)), daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    stop.set()
    for thread in threads:
        thread.join(30)
    assert told == [True] * 3
    assert stop.wait(60)
    assert stop.is_set()


def test_a_wait_that_nothing_ends_lasts_its_time() -> None:
    """And is told so."""
    stop = Stop()
    assert not stop.wait(0.01)
    assert not stop.is_set()
