"""Processes as psutil tells them, where there is no `/proc`."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

import psutil

from ccc_hookspecs.processes import start_time
from ccc_plugins.retire_stale.evidence.command_line import may_be_claude
from ccc_plugins.retire_stale.evidence.process_rows import SETTLED_SECONDS, ProcessRow, Read, words


def read_all(known: Mapping[int, Read]) -> dict[int, Read]:
    """Every process by pid; command lines of unchanged ones as they are `known`."""
    reads = {}
    for process in psutil.process_iter():
        read = _read_one(process, known.get(process.pid))
        if read is not None:
            reads[process.pid] = read
    return reads


def _read_one(process: Any, before: Read | None) -> Read | None:
    """One process as psutil shows it; None when it is gone."""
    with process.oneshot():
        found = {key: _ask(process, key) for key in ("ppid", "name", "status", "terminal", "cpu_times")}
        if isinstance(found["status"], psutil.NoSuchProcess) and not isinstance(found["status"], psutil.ZombieProcess):
            return None
        started = start_time(process.pid)
        raw = (started, found["name"])
        settled = started is not None and time.time() - started > SETTLED_SECONDS
        if before is not None and before.settled and before.raw == raw:
            program = {"cmdline": before.row.argv, "exe": before.row.exe, "uids": before.row.uid}
        else:
            program = _psutil_program(process, found["name"])
    return Read(raw, settled, _row_of_psutil(process.pid, started, found, program))


def _ask(process: Any, key: str) -> Any:
    """What one of its methods answers, or the psutil error it raised."""
    try:
        return getattr(process, key)()
    except (psutil.Error, OSError) as error:
        return error


def _psutil_program(process: Any, name: Any) -> dict[str, Any]:
    """What it runs and for whom; the latter only when it may be Claude Code."""
    cmdline = _ask(process, "cmdline")
    argv = words("\0".join(cmdline).encode("utf-8", "surrogateescape")) if isinstance(cmdline, list) else None
    if not may_be_claude(name if isinstance(name, str) else "", argv):
        return {"cmdline": argv, "exe": None, "uids": None}
    exe, uids = _ask(process, "exe"), _ask(process, "uids")
    return {
        "cmdline": argv,
        "exe": exe if isinstance(exe, str) else None,
        "uids": None if isinstance(uids, Exception) else int(uids.real),
    }


def _row_of_psutil(pid: int, started: float | None, found: Mapping[str, Any], program: Mapping[str, Any]) -> ProcessRow:
    known = {key: None if isinstance(value, Exception) else value for key, value in found.items()}
    # A terminal that was opened after psutil's first look at terminals may be missing from its list, so that none means unknown.
    values: dict[str, Any] = {
        "start_time": started,
        "ppid": known["ppid"],
        "pgid": _ask_os(os.getpgid, pid),
        "sid": _ask_os(os.getsid, pid),
        "argv": program["cmdline"],
        "exe": program["exe"],
        "tty": known["terminal"],
        "status": "zombie" if isinstance(found["status"], psutil.ZombieProcess) else known["status"],
        "uid": program["uids"],
        "cpu_seconds": None if known["cpu_times"] is None else known["cpu_times"].user + known["cpu_times"].system,
    }
    return ProcessRow(pid=pid, name=known["name"] or "", **values, unknown=frozenset(key for key, value in values.items() if value is None))


def _ask_os(question: Any, pid: int) -> int | None:
    try:
        return int(question(pid))
    except OSError:
        return None
