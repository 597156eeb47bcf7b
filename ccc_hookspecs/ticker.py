"""The thread that calls `on_tick`.

    ticker = Ticker(lambda tick: manager.on_tick(ccc, tick), config.ticker.interval)
    ticker.start()

Nothing here knows what a tick is for.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final

from ccc_hookspecs.failures import said, shown, traceable
from ccc_hookspecs.forks import outlive_forks
from ccc_hookspecs.values import Tick

log = logging.getLogger(__name__)

DEFAULT_INTERVAL: Final = 5.0
"""Seconds from one tick to the next."""


class _Run:
    """One start of a ticker: its thread and what tells it to go on or to end."""

    def __init__(self, ticker: Ticker) -> None:
        self.stopping = False
        self.rouse = threading.Event()
        self.thread = threading.Thread(target=ticker._loop, args=(self,), name=ticker.name, daemon=True)

    def end(self) -> None:
        self.stopping = True
        self.rouse.set()


class Ticker:
    """Calls `callback(Tick)` every `interval` seconds from a daemon thread of its own.

    The beats lie on a grid that starts at `start()`, so that neither the length of a tick nor `wake()` moves them; the
    first comes one interval after the start. A tick that outlasts its interval is logged, the beats it covered are left
    out, and the next one comes on the grid. A tick that raises, be it an exit, is logged, and the next one still comes.
    There are never two ticks at once, also not after a `stop` that ran out of time and a new `start`.

    `interval`: seconds above 0 (a host takes the 5 to 10 of `TickerSettings`); raises `ValueError` for anything else.

    After a fork the ticker runs on in the parent; in the child it is stopped, and may be started there.
    """

    def __init__(self, callback: Callable[[Tick], object], interval: float = DEFAULT_INTERVAL, *, name: str = "ccc-ticker") -> None:
        # Past TIMEOUT_MAX, infinity among it, the thread could not wait.
        if isinstance(interval, bool) or not isinstance(interval, int | float) or not 0 < interval <= threading.TIMEOUT_MAX:
            raise ValueError(f"Ticker interval is {shown(interval)}, expected seconds above 0 and up to {threading.TIMEOUT_MAX:g}")
        self.callback = callback
        self.interval = interval
        self.name = name
        self._number = 0
        self._lock = threading.Lock()
        self._ticking = threading.Lock()
        self._run: _Run | None = None

    @property
    def running(self) -> bool:
        """True from `start` until `stop`, in the process that started it."""
        run = self._run
        return run is not None and not run.stopping and run.thread.is_alive()

    def start(self) -> None:
        """Start the thread; does nothing when it runs."""
        outlive_forks(self)
        with self._lock:
            if not self.running:
                self._run = _Run(self)
                self._run.thread.start()

    def wake(self) -> None:
        """Have one tick now, or right after the one under way; several calls in between make one tick. No effect when not running."""
        run = self._run
        if run is not None:
            run.rouse.set()

    def stop(self, timeout: float = 5.0) -> bool:
        """End the thread and wait up to `timeout` seconds for a tick under way.

        Returns True when the thread has ended, False when a tick is still under way, as when called from within one; that
        tick is then the last.
        """
        run = self._run
        if run is None:
            return True
        run.end()
        if run.thread is threading.current_thread():
            return False
        run.thread.join(timeout)
        return not run.thread.is_alive()

    def __enter__(self) -> Ticker:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def begin_anew(self) -> None:
        """In the child of a fork: the thread is gone, and a lock that it held would never be released."""
        if self._run is not None:
            # When the fork was made within a tick, this very thread lives on in the child; its loop must end.
            self._run.stopping = True
        self._run = None
        self._lock = threading.Lock()
        self._ticking = threading.Lock()

    def _loop(self, run: _Run) -> None:
        due = time.monotonic() + self.interval
        while not run.stopping:
            run.rouse.wait(max(0.0, due - time.monotonic()))
            run.rouse.clear()
            with self._ticking:
                if not run.stopping:
                    self._tick()
            now = time.monotonic()
            if now >= due:
                due += self.interval * (1 + (now - due) // self.interval)

    def _tick(self) -> None:
        self._number += 1
        started = time.monotonic()
        try:
            self.callback(Tick(number=self._number, monotonic=started, interval=self.interval))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # Whatever one tick raises, the next one must come: an exit would end this thread alone, and without a word.
            log.error("tick %d raised: %s", self._number, said(error), exc_info=traceable(error))
        seconds = time.monotonic() - started
        if seconds > self.interval:
            log.warning("tick %d took %.1f s, more than its interval of %g s", self._number, seconds, self.interval)
