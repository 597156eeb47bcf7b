"""Lines from standard input and signals, waited for together, so that one thread can run a turn and listen."""

from __future__ import annotations

import os
import select
import signal
import time


class Terminated(Exception):
    """SIGTERM or SIGHUP, `number`, arrived; raised only at a wait, so no record is ever cut."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Inbox:
    """The process's standard input, as lines.

    `interrupted` is set by SIGINT and cleared by whoever acts on it; `leaving` is set by the first SIGINT and stays.
    """

    def __init__(self, fd: int = 0, *, deaf: bool = False) -> None:
        self.fd = fd
        self.closed = False
        self.interrupted = False
        self.leaving = False
        self._pending = b""
        self._lines: list[str] = []
        self._signalled: int | None = None
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
        os.set_blocking(self._wake_write, False)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, self._on_interrupt)
        self.listen(deaf=deaf)

    def listen(self, *, deaf: bool) -> None:
        """Obey SIGTERM and SIGHUP, or be deaf to both."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN if deaf else self._on_signal)

    def _on_signal(self, number: int, frame: object) -> None:
        self._signalled = number

    def _on_interrupt(self, number: int, frame: object) -> None:
        self.interrupted = self.leaving = True

    def wait(self, seconds: float | None) -> list[str]:
        """The lines that came in, waiting up to `seconds` (None: for ever) for the first. Raises Terminated."""
        if not self._lines:
            self._select(seconds)
        self._check_signal()
        lines, self._lines = self._lines, []
        return lines

    def put_back(self, lines: list[str]) -> None:
        """Give back lines that were not taken; the next wait returns them first, at once."""
        self._lines[:0] = lines

    def sleep(self, seconds: float) -> None:
        """Let time pass without reading standard input. Raises Terminated."""
        until = deadline(seconds)
        while left(until) > 0 and self._signalled is None:
            if select.select([self._wake_read], [], [], left(until))[0]:
                os.read(self._wake_read, 4096)
        self._check_signal()

    def _check_signal(self) -> None:
        if self._signalled is not None:
            raise Terminated(self._signalled)

    def _select(self, seconds: float | None) -> None:
        watched = [self._wake_read] if self.closed else [self._wake_read, self.fd]
        ready, _, _ = select.select(watched, [], [], seconds)
        if self._wake_read in ready:
            os.read(self._wake_read, 4096)
        if self.fd in ready:
            self._read()

    def _read(self) -> None:
        block = os.read(self.fd, 65536)
        self.closed = not block
        *whole, self._pending = (self._pending + block).split(b"\n")
        if self.closed and self._pending:
            whole.append(self._pending)
            self._pending = b""
        self._lines.extend(line.decode("utf-8", "replace") for line in whole)


def deadline(seconds: float) -> float:
    """The monotonic time `seconds` from now."""
    return time.monotonic() + seconds


def left(until: float) -> float:
    """Seconds left until a monotonic time, 0 or more."""
    return max(0.0, until - time.monotonic())
