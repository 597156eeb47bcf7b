"""The identity of a process: its pid and its start time, which clock steps do not move."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

SAME_START: Final = 0.001
"""Seconds by which two readings of one process's start time may differ."""


def start_time(pid: int) -> float | None:
    """The start time that, with `pid`, identifies a process; None when there is no such process or it cannot be read.

    Linux: seconds since boot, field 22 of `/proc/<pid>/stat` over the clock ticks a second, which no step of the wall
    clock moves. Elsewhere: seconds since the epoch as the kernel noted them at the fork. A zombie still has one.
    """
    if sys.platform == "linux":
        return _linux_start_time(pid)
    try:
        import psutil
    except ImportError:
        return None
    try:
        return float(psutil.Process(pid).create_time())
    except (psutil.Error, ValueError):
        return None


def has_ended(pid: int, started: float) -> bool:
    """Whether the process that has this identity is gone for certain: nobody has the pid, or one that started at another time has.

    False while that cannot be told, as with no file descriptor free. A zombie has not ended.
    """
    now = start_time(pid)
    return not is_in_use(pid) if now is None else abs(now - started) > SAME_START


def is_in_use(pid: int) -> bool:
    """Whether any process has this pid; needs no file descriptor."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _linux_start_time(pid: int) -> float | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The second field is the program's name in brackets and may itself hold spaces and brackets.
    fields = stat[stat.rfind(b")") + 2 :].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK") if len(fields) > 19 else None
