"""Whether a process is still the one that was meant, and in which state it is. Reads only; signals nothing.

Linux reads `/proc`; elsewhere psutil, imported when first needed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from ccc_hookspecs.processes import SAME_START, is_in_use, start_time
from ccc_hookspecs.values import Headless

if TYPE_CHECKING:
    import psutil

T = TypeVar("T")

Presence: TypeAlias = Literal["alive", "gone", "unknown"]


def presence(pid: int, started: float | None) -> Presence:
    """`alive`: this pid still belongs to the process that started then. `gone`: it exited (reaped or not), or the pid is another's.

    `unknown` when the pid is in use but a start time is missing on either side; that licenses neither a signal nor a clean-up.
    """
    now = start_time(pid)
    if now is None or started is None:
        return "unknown" if is_in_use(pid) else "gone"
    if abs(now - started) >= SAME_START or state(pid) == "Z":
        return "gone"
    return "alive"


def state(pid: int) -> str | None:
    """The letter of the process's main thread as in `/proc/<pid>/stat` (`T` stopped, `Z` exited but not reaped); None when unreadable."""
    if sys.platform == "linux":
        return _letter(f"/proc/{pid}/stat")
    return _ask_psutil(pid, _letter_of)


def _letter_of(process: psutil.Process) -> str:
    import psutil

    try:
        status = process.status()
    except psutil.ZombieProcess:
        return "Z"
    return {psutil.STATUS_ZOMBIE: "Z", psutil.STATUS_STOPPED: "T"}.get(status, "S")


def _ask_psutil(pid: int, question: Callable[[psutil.Process], T]) -> T | None:
    """The answer for this process; None when there is no such process, it may not be looked at, or psutil cannot be imported."""
    try:
        import psutil
    except ImportError:
        return None
    try:
        return question(psutil.Process(pid))
    except psutil.Error:
        return None


def is_stopped(pid: int) -> bool:
    """True when every thread of the process has stopped, so that nothing of it runs."""
    if sys.platform != "linux":
        return state(pid) == "T"
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return False
    letters = [_letter(f"/proc/{pid}/task/{thread}/stat") for thread in threads]
    return "T" in letters and all(letter in ("T", "t", "Z", None) for letter in letters)


def _letter(stat: str) -> str | None:
    fields = _stat_fields(stat)
    return fields[0].decode() if fields else None


def _stat_fields(stat: str) -> list[bytes]:
    """The fields of a stat file from the third on; none when there is no such process."""
    try:
        content = Path(stat).read_bytes()
    except OSError:
        return []
    return content[content.rfind(b")") + 2 :].split()


def real_uid(pid: int) -> int | None:
    """The user the process runs for; None when unreadable."""
    if sys.platform == "linux":
        return _linux_uid(pid)
    return _ask_psutil(pid, lambda process: int(process.uids().real))


def _linux_uid(pid: int) -> int | None:
    try:
        status = Path(f"/proc/{pid}/status").read_bytes()
    except OSError:
        return None
    line = next((line for line in status.splitlines() if line.startswith(b"Uid:")), None)
    return int(line.split()[1]) if line else None


def own_line() -> frozenset[int]:
    """The pids of this process and of all that it descends from: ending one of those would end us too, or our work."""
    line = {os.getpid()}
    pid = os.getppid()
    while pid > 0 and pid not in line:
        line.add(pid)
        pid = _parent(pid)
    return frozenset(line)


def never_signalled(headless: Headless) -> str | None:
    """Why this headless may not be signalled whatever its state, or None."""
    if not headless.owned:
        return "another process of the host owns it"
    if headless.engine != "claude":
        return "not a Claude headless"
    if headless.start_time is None:
        return "identity unknown"
    return "this process descends from it" if headless.pid in own_line() else None


def _parent(pid: int) -> int:
    if sys.platform == "linux":
        fields = _stat_fields(f"/proc/{pid}/stat")
        return int(fields[1]) if fields else 0
    return _ask_psutil(pid, lambda process: int(process.ppid())) or 0


def child_exit_code(pid: int) -> int | None:
    """The exit code of a child of ours that has exited, minus the signal's number when one killed it; the child is not reaped.

    None when it is not our child, has not exited, was reaped already, or the platform cannot tell.
    """
    if not hasattr(os, "waitid"):
        return None
    try:
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (ChildProcessError, OSError):
        return None
    if found is None or found.si_pid != pid:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
