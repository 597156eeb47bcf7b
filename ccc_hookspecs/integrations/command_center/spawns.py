"""Reading a row of CCC's `_spawned_sessions` or of its registry file."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ccc_hookspecs.checks import is_uuid
from ccc_hookspecs.processes import start_time

STAMP: Final = "%Y%m%dT%H%M%S"
"""How CCC writes the time of a spawn, in local time."""

STAMP_SLACK: Final = 120.0
"""Seconds that the kernel's time of a process's start may differ from CCC's stamp; the clock may have been set in between."""


def pid_of(row: Mapping[str, Any]) -> int | None:
    """The process id, or None: rows of engines without a process of their own have none."""
    pid = row.get("pid")
    return pid if isinstance(pid, int) and not isinstance(pid, bool) and pid > 0 else None


def engine_of(row: Mapping[str, Any]) -> str:
    """The engine; rows from before CCC had several have none, and are Claude's."""
    return str(row.get("engine") or "claude")


def path_of(value: object) -> Path | None:
    """A value that should be an absolute path, or None."""
    path = Path(value) if isinstance(value, str) and value else None
    return path if path is not None and path.is_absolute() else None


def log_of(row: Mapping[str, Any]) -> Path | None:
    """The file that takes the process's stdout."""
    return path_of(row.get("log"))


def inputs_in(log: Path | None) -> Iterator[str]:
    """The ids of the inputs that a headless's stdout log names, oldest first, with repetitions."""
    try:
        with open(log or os.devnull, "rb") as file:
            for raw in file:
                message_id = _input_in(raw) if b'"command_lifecycle"' in raw else None
                if message_id is not None:
                    yield message_id
    except OSError:
        return


def _input_in(raw: bytes) -> str | None:
    try:
        event = json.loads(raw)
    except ValueError:
        return None
    named = event.get("command_uuid") if isinstance(event, dict) and event.get("type") == "command_lifecycle" else None
    return named if is_uuid(named) else None


def resumed(row: Mapping[str, Any]) -> bool | None:
    """Whether the process was started with `--resume`, by the name that CCC gives its log; None when that does not tell."""
    log = log_of(row)
    kind = log.name.partition("-")[0] if log is not None else ""
    return {"resume": True, "spawn": False}.get(kind)


def spawned_at(row: Mapping[str, Any]) -> float | None:
    """Seconds since the epoch of the spawn, to the second; None when the row does not say."""
    for key in ("created_at_epoch", "started_epoch"):
        if isinstance(row.get(key), int | float):
            return float(row[key])
    try:
        return time.mktime(time.strptime(str(row.get("started") or row.get("spawned_at")), STAMP))
    except (ValueError, OverflowError):
        return None


def sure_start(row: Mapping[str, Any]) -> float | None:
    """The start time of the row's process, when it is certain to be the one that CCC spawned; else None.

    A child that was not waited for keeps its pid. A process that CCC found again by its pid after a restart may be another,
    so its start must agree with the time of the spawn.
    """
    pid = pid_of(row)
    if pid is None:
        return None
    if isinstance(row.get("proc"), subprocess.Popen):
        return start_time(pid)
    stamp, started = spawned_at(row), _started_at(pid)
    return start_time(pid) if stamp is not None and started is not None and abs(stamp - started) <= STAMP_SLACK else None


def _started_at(pid: int) -> float | None:
    """Seconds since the epoch at which the process started."""
    import psutil  # here, so that attaching does not need it

    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None
