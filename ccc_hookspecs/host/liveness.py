"""Whether a process that the host knows by pid and start time still lives."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

from ccc_hookspecs.processes import SAME_START, is_in_use, start_time

Presence: TypeAlias = Literal["alive", "gone", "unknown"]


def presence(pid: int, started: float | None) -> Presence:
    """`gone`: it exited, reaped or not, or the pid is another's. `unknown`: the pid is in use and a start time is missing."""
    now = start_time(pid)
    if now is None or started is None:
        return "unknown" if is_in_use(pid) else "gone"
    return "gone" if abs(now - started) > SAME_START or _is_zombie(pid) else "alive"


def wait_gone(pid: int, started: float | None, seconds: float) -> bool:
    """Wait until the process is gone; False when it is not within `seconds`."""
    return seen_within(lambda: presence(pid, started) == "gone", seconds)


def seen_within(condition: Callable[[], bool], seconds: float) -> bool:
    """Ask until `condition()` is True, but no longer than `seconds`; 0 asks once."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= end:
            return False
        time.sleep(0.01)
    return True


def _is_zombie(pid: int) -> bool:
    if sys.platform == "linux":
        try:
            stat = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            return False
        return stat[stat.rfind(b")") + 2 :][:1] in (b"Z", b"X")
    import psutil

    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.ZombieProcess:
        return True
    except psutil.Error:
        return False
