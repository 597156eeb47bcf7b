"""A stop that a signal handler may set while the very thread that it breaks into waits for it."""

from __future__ import annotations

import queue
import signal
from collections.abc import Iterator
from contextlib import contextmanager


class Stop:
    """Set once, by any thread or signal handler; every wait for it ends then.

    The lock in `threading.Event` is not reentrant: a handler that sets one while its own thread is inside `wait` may wait for ever.
    `SimpleQueue.put` may break into `get` (library reference, `queue`).
    """

    def __init__(self) -> None:
        self._is_set = False
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()

    def is_set(self) -> bool:
        """True once `set` was called."""
        return self._is_set

    def set(self) -> None:
        """End every wait, now and from now on."""
        self._is_set = True
        self._wakes.put(None)

    def wait(self, seconds: float) -> bool:
        """Wait until it is set, at most this long; returns whether it is."""
        if not self._is_set:
            try:
                self._wakes.get(timeout=seconds)
            except queue.Empty:
                return self._is_set
            self._wakes.put(None)  # whoever else waits is woken too
        return True


@contextmanager
def interruptible() -> Iterator[Stop]:
    """A stop that is set by ^C and by SIGTERM, which so never break into a delivery or a retirement under way."""
    stop = Stop()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def breakable() -> Iterator[None]:
    """Within, SIGTERM breaks off what waits as ^C does: by `KeyboardInterrupt`."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
