"""The identity of a process: its pid and its start time, which clock steps do not move."""

from __future__ import annotations

import os
import sys
from pathlib import Path


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


def _linux_start_time(pid: int) -> float | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The second field is the program's name in brackets and may itself hold spaces and brackets.
    fields = stat[stat.rfind(b")") + 2 :].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK") if len(fields) > 19 else None
