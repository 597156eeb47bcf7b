"""A handle on one exact process, through which alone it is signalled. Used by `retirement` and `thawing` alone."""

from __future__ import annotations

import logging
import os
import select
import signal
import sys
import time
from collections.abc import Iterable, Sequence

from ccc_plugins.retire_stale.identity import Presence, is_stopped, presence

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.002
"""Seconds between two looks where the system cannot tell us of a change by itself."""


class Handle:
    """One process, known by its pid and start time (see `ccc_hookspecs.processes.start_time`).

    Where the system has pidfd it holds one, so that no signal can reach another process that was given the same pid.
    Elsewhere the identity is checked right before each signal.
    """

    def __init__(self, pid: int, started: float | None) -> None:
        self.pid = pid
        self._started = started
        self._pidfd = _open_pidfd(pid)
        self._pinned = False

    def close(self) -> None:
        """Let go of the process. Harmless when repeated."""
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None

    def presence(self) -> Presence:
        """As `identity.presence`. Once `alive`, a pidfd is known to be this very process's."""
        found = presence(self.pid, self._started)
        self._pinned = self._pinned or (found == "alive" and self._pidfd is not None)
        return found

    def send(self, signum: signal.Signals) -> bool:
        """Signal the process; False when it is gone, or is not surely the same. Raises `OSError` when that is refused."""
        if not self._may_signal(signum):
            return False
        try:
            if self._pidfd is not None and sys.platform == "linux":
                signal.pidfd_send_signal(self._pidfd, signum)
            else:
                os.kill(self.pid, signum)
        except ProcessLookupError:
            return False
        return True

    def _may_signal(self, signum: signal.Signals) -> bool:
        if self._pinned:
            return not self.wait_exit(0)
        found = self.presence()
        # What we stopped must go on even when nothing can be read at the moment, such as with all file descriptors in use.
        return found == "alive" or (found == "unknown" and signum == signal.SIGCONT)

    def send_to_group(self, signum: signal.Signals) -> bool:
        """Signal the process's group if it leads one that is not ours, so that what it started there ends with it; else the process alone.

        False when it is gone, or is not surely the same. Raises `OSError` when that is refused.
        """
        if self.presence() != "alive":
            return False
        if not self.leads_group():
            return self.send(signum)
        try:
            os.killpg(self.pid, signum)
        except ProcessLookupError:
            return False
        return True

    def leads_group(self) -> bool:
        """True when the process leads a process group that is not our own."""
        try:
            return os.getpgid(self.pid) == self.pid != os.getpgrp()
        except OSError:
            return False

    def stopped(self) -> bool:
        """True when every thread of the process has stopped."""
        return is_stopped(self.pid)

    def wait_stopped(self, seconds: float) -> bool:
        """Wait until the process has stopped; False when it has not in time, or has exited."""
        end = time.monotonic() + seconds
        while not self.stopped():
            if time.monotonic() >= end or self.wait_exit(LOOK_SECONDS):
                return False
        return True

    def wait_exit(self, seconds: float) -> bool:
        """Wait until the process has exited and say whether it has. Never reaps it: that is for whoever started it."""
        if self._pidfd is not None:
            waiter = select.poll()
            waiter.register(self._pidfd, select.POLLIN)
            return bool(waiter.poll(seconds * 1000))
        end = time.monotonic() + seconds
        while (gone := self.presence() == "gone") is False and (left := end - time.monotonic()) > 0:
            time.sleep(min(LOOK_SECONDS, left))
        return gone


class Pack:
    """A process and those below it that do its work (see `Order.below`): stopped and continued as one, and gone when all are gone.

    Told to end are the ones below: a wrapper ends when what it runs has ended, and as long as it lives it is known that something does.
    Taken along may be what they started (see `Order.descendants`): that is neither stopped nor waited for, but ends with them.
    """

    def __init__(self, leader: Handle) -> None:
        self._leader = leader
        self._below: list[Handle] = []
        self._along: list[Handle] = []

    def close(self) -> None:
        """Let go of all of them. Harmless when repeated."""
        for handle in (*self._along, *self._all()):
            handle.close()

    def _all(self) -> list[Handle]:
        return [*self._below, self._leader]

    def take_in(self, below: Iterable[tuple[int, float | None]]) -> bool:
        """Have these end with the process; False when one of them is not surely the process that is meant."""
        self._below = [Handle(pid, started) for pid, started in below]
        return all(handle.presence() == "alive" for handle in self._below)

    def take_along(self, started: Iterable[tuple[int, float | None]]) -> None:
        """Have these end with the workers, each if it surely is the process that is meant."""
        self._along = [Handle(pid, started) for pid, started in started]

    def presence(self) -> Presence:
        """That of the process itself, without those below it."""
        return self._leader.presence()

    def send(self, signum: signal.Signals) -> bool:
        """Signal each; False when one could not be signalled and has not exited, or when all have.

        Raises the `OSError` of one that refused, after the others had theirs.
        """
        return _send(self._all(), signum)

    def end(self, signum: signal.Signals) -> bool:
        """As `send`, to those below it alone when there are any; what was taken along gets SIGTERM once they got theirs."""
        if not _send(self._below or [self._leader], signum):
            return False
        self._send_along(signal.SIGTERM)
        return True

    def end_along(self, seconds: float) -> None:
        """Wait until what was taken along has exited, and send SIGKILL to what has not in time."""
        end = time.monotonic() + seconds
        for handle in self._along:
            if handle.presence() == "alive":
                handle.wait_exit(max(0.0, end - time.monotonic()))
        self._send_along(signal.SIGKILL)

    def _send_along(self, signum: signal.Signals) -> None:
        for handle in self._along:
            try:
                handle.send(signum)
            except OSError as error:  # it is not what this is about
                log.warning("process %d, below one that was ended, could not be signalled: %s", handle.pid, error)

    def send_to_group(self, signum: signal.Signals) -> None:
        """As `Handle.send_to_group` for the process itself, and to those below it each alone. Raises `OSError` when that is refused."""
        for handle in self._below:
            handle.send(signum)
        self._leader.send_to_group(signum)

    def stopped(self) -> bool:
        """True when all of them have stopped."""
        return all(handle.stopped() for handle in self._all())

    def wait_stopped(self, seconds: float) -> bool:
        """Wait until all of them have stopped; False when one has not in time, or has exited."""
        end = time.monotonic() + seconds
        return all(handle.wait_stopped(max(0.0, end - time.monotonic())) for handle in self._all())

    def wait_exit(self, seconds: float) -> bool:
        """Wait until all of them have exited and say whether they have."""
        end = time.monotonic() + seconds
        return all(handle.wait_exit(max(0.0, end - time.monotonic())) for handle in self._all())


def _send(handles: Sequence[Handle], signum: signal.Signals) -> bool:
    sent: list[bool] = []
    refused: OSError | None = None
    for handle in handles:
        try:
            sent.append(handle.send(signum))
        except OSError as error:
            refused = error
    if refused is not None:
        raise refused
    return any(sent) and all(reached or handle.wait_exit(0) for reached, handle in zip(sent, handles, strict=True))


def _open_pidfd(pid: int) -> int | None:
    """A pidfd; None where there is no such process, or where the system has or allows none."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        log.debug("no pidfd for process %d: %s", pid, error)
        return None
