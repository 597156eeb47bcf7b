"""Claude Code's live-session registry: one file `<config dir>/sessions/<pid>.json` for each running process.

Measured: written by releases from 2.1.119 on; removed at an orderly exit and left behind by a kill. A headless is there with `entrypoint`
`sdk-cli`, a terminal with `cli`. `kind` tells them not apart: both are `interactive`, and an ordinary terminal may be `bg`. A `/clear` or
`--continue` may leave `sessionId` behind what the process writes. So a record is evidence about a process, never about a transcript.
"""

from __future__ import annotations

import calendar
import json
import os
import re
import stat
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

State: TypeAlias = Literal["read", "missing", "unreadable"]

_NAME = re.compile(r"([1-9][0-9]*)\.json")
_LARGEST = 262_144
_SETTLED_NS = 100_000_000
_TICK = 1 / os.sysconf("SC_CLK_TCK")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryRecord:
    """What one process wrote about itself. Everything but `pid` and `session_id` may be missing: None.

    `pid`: also the file's name. `proc_start`: the process's start in the units of `ccc_hookspecs.processes.start_time`, to the
    clock tick on Linux and to the second elsewhere; None when absent or not understood. `entrypoint`, `kind`, `status` (`idle`,
    `busy`, `shell`, `waiting`, or what later releases say), `version`, `cwd`: as written. `started_at`, `updated_at`: seconds since the
    epoch, by its clock. `pid_domain`: the machine and process namespace in which `pid` counts.
    """

    pid: int
    session_id: str
    proc_start: float | None = None
    entrypoint: str | None = None
    kind: str | None = None
    status: str | None = None
    version: str | None = None
    cwd: str | None = None
    started_at: float | None = None
    updated_at: float | None = None
    pid_domain: str | None = None

    def identifies(self, pid: int, start_time: float | None) -> bool:
        """Whether this record is about the living process with this pid and start time.

        False whenever that is not proven: another pid, a start time that differs or is missing on either side (the pid
        was used again, the record outlived a reboot), or a record from another machine or process namespace. The age of
        the record says nothing.
        """
        if pid != self.pid or not self.proc_start or not start_time or self.pid_domain not in (None, own_pid_domain()):
            return False
        return abs(self.proc_start - start_time) < (_TICK / 2 if sys.platform == "linux" else 1.0)


class _Entry(NamedTuple):
    """One file as it was read. `settled`: it had not just been written, so that a later change must move `signature`."""

    signature: tuple[int, int, int]
    settled: bool
    record: RegistryRecord | None


@dataclass(frozen=True)
class Registry:
    """The records of one moment.

    `state`: `missing` when there is no registry (releases before 2.1.119), `unreadable` when it may not be read.
    `broken`: names of files that hold no record, because they are half written or of an unknown shape.
    """

    records: tuple[RegistryRecord, ...] = ()
    broken: tuple[str, ...] = ()
    state: State = "read"
    _files: Mapping[str, _Entry] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def by_session(self) -> Mapping[str, tuple[RegistryRecord, ...]]:
        """All records by session id: several processes may be on one session, and ghosts of dead ones beside them."""
        sessions: dict[str, tuple[RegistryRecord, ...]] = {}
        for record in self.records:
            sessions[record.session_id] = (*sessions.get(record.session_id, ()), record)
        return sessions

    @cached_property
    def by_pid(self) -> Mapping[int, RegistryRecord]:
        """The record of each pid, which still has to be asked whom it `identifies`."""
        return {record.pid: record for record in self.records}

    def of(self, pid: int, start_time: float | None) -> RegistryRecord | None:
        """The record of exactly this process, or None."""
        record = self.by_pid.get(pid)
        return record if record is not None and record.identifies(pid, start_time) else None


def read_registry(config_dir: Path, previous: Registry | None = None) -> Registry:
    """The registry below `config_dir`. With the `previous` reading only files that changed since are read again. Never raises."""
    folder = os.path.join(config_dir, "sessions")
    try:
        entries = sorted(entry for entry in os.listdir(folder) if _NAME.fullmatch(entry))
    except (FileNotFoundError, NotADirectoryError):
        return Registry(state="missing")
    except (OSError, ValueError):
        return Registry(state="unreadable")
    known = {} if previous is None else previous._files
    files = {name: entry for name in entries if (entry := _look(os.path.join(folder, name), name, known.get(name))) is not None}
    return Registry(
        records=tuple(entry.record for entry in files.values() if entry.record is not None),
        broken=tuple(name for name, entry in files.items() if entry.record is None),
        _files=files,
    )


def _look(path: str, name: str, known: _Entry | None) -> _Entry | None:
    """The file's entry; None when it is gone meanwhile."""
    try:
        seen = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError:
        return _Entry((-1, -1, -1), False, None)
    signature = (seen.st_mtime_ns, seen.st_size, seen.st_ino)
    if known is not None and known.settled and known.signature == signature:
        return known
    settled = abs(time.time_ns() - seen.st_mtime_ns) > _SETTLED_NS
    return _Entry(signature, settled, _read(path, name) if stat.S_ISREG(seen.st_mode) and seen.st_size <= _LARGEST else None)


def _read(path: str, name: str) -> RegistryRecord | None:
    try:
        with open(path, "rb") as file:
            data = json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return None
    return _record(data, int(name.removesuffix(".json"))) if isinstance(data, dict) else None


def _record(data: dict[str, Any], pid: int) -> RegistryRecord | None:
    session_id = _text(data, "sessionId")
    if not session_id or data.get("pid", pid) != pid:
        return None
    return RegistryRecord(
        pid=pid,
        session_id=session_id,
        proc_start=parse_proc_start(data.get("procStart")),
        entrypoint=_text(data, "entrypoint"),
        kind=_text(data, "kind"),
        status=_text(data, "status"),
        version=_text(data, "version"),
        cwd=_text(data, "cwd"),
        started_at=_seconds(data, "startedAt"),
        updated_at=_seconds(data, "updatedAt"),
        pid_domain=_text(data, "pidDomain"),
    )


def _text(data: dict[str, Any], key: str) -> str | None:
    value = data.get(key)
    return value if isinstance(value, str) else None


def _seconds(data: dict[str, Any], key: str) -> float | None:
    value = data.get(key)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 4e15:
        return None
    return value / 1000


def parse_proc_start(value: object, platform: str = sys.platform) -> float | None:
    """A record's `procStart` in the units of `ccc_hookspecs.processes.start_time`; None when it cannot be understood.

    On Linux it is field 22 of `/proc/<pid>/stat`, clock ticks since boot, as text. On macOS it is what `ps -o lstart=` prints with
    `LC_ALL=C TZ=UTC`, such as `Mon Nov 30 12:17:05 2026` (seen in the program's own text, not measured).
    """
    if not isinstance(value, str):
        return None
    if platform == "linux":
        return int(value) / os.sysconf("SC_CLK_TCK") if re.fullmatch(r"[0-9]{1,15}", value) else None
    found = re.fullmatch(r"\s*[A-Z][a-z]{2}\s+([A-Z][a-z]{2})\s+(\d{1,2})\s+(\d\d):(\d\d):(\d\d)\s+(\d{4})\s*", value)
    if found is None or found[1] not in _MONTHS:
        return None
    day, hour, minute, second, year = (int(found[number]) for number in range(2, 7))
    return float(calendar.timegm((year, _MONTHS.index(found[1]) + 1, day, hour, minute, second)))


@cache
def own_pid_domain() -> str:
    """What Claude Code, started here, writes as `pidDomain` (read from 2.1.332): the machine's id and its process namespace."""
    if sys.platform != "linux":
        return "linux"
    return f"linux:{_machine_id()}:{_namespace()}"


def _machine_id() -> str:
    try:
        return Path("/etc/machine-id").read_text("utf-8").strip()
    except (OSError, ValueError):
        return ""


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
