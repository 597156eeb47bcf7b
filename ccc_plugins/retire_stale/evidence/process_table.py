"""The processes of one moment.

Linux reads `/proc` itself: one short read a process, and everything else only of processes that are new or changed, which costs a
tenth of what psutil's iteration does. Elsewhere psutil is asked. A process that ends meanwhile, is a zombie, or is another user's
never spoils the rest; what cannot be read of it is unknown.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from ccc_hookspecs.processes import start_time
from ccc_plugins.retire_stale.evidence.command_line import claude_arguments, may_be_claude, sessions_in_argv

_TICKS = os.sysconf("SC_CLK_TCK")
_LONGEST_COMMAND_LINE = 1 << 18
_LONGEST_WORD = 4096
"""A prompt may be longer; no flag, path or id is."""
_SETTLED = 2.0
"""Seconds of age from which a command line is believed to stay: a process that has just forked shows its parent's."""

_STATES = {
    "R": "running", "S": "sleeping", "D": "disk-sleep", "T": "stopped", "t": "tracing-stop", "Z": "zombie", "X": "dead", "I": "idle",
}  # fmt: skip


class Identity(NamedTuple):
    """What tells a process from every other: its pid and `ccc_hookspecs.processes.start_time`; without the latter, unknown."""

    pid: int
    start_time: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    """One process.

    `start_time`: as `ccc_hookspecs.processes.start_time`. `pgid`, `sid`: its process group and session. `name`: as the kernel has it, cut
    at 15 characters on Linux. `argv`: without empty words at its end, each word
    cut at 4096 bytes; a kernel thread and a zombie have none. `tty`: the device of its
    controlling terminal, None when it has none. `status`: in psutil's words. `cpu_seconds`: user and system time it used. `exe` and
    `uid` (the real user) are looked up only for rows that may be Claude Code.

    A field that could not be read, or was not looked up, is None and named in `unknown`.
    """

    pid: int
    start_time: float | None = None
    ppid: int | None = None
    pgid: int | None = None
    sid: int | None = None
    name: str = ""
    argv: tuple[str, ...] | None = None
    exe: str | None = None
    tty: str | None = None
    status: str | None = None
    uid: int | None = None
    cpu_seconds: float | None = None
    unknown: frozenset[str] = frozenset()

    @property
    def identity(self) -> Identity:
        return Identity(self.pid, self.start_time)

    @property
    def alive(self) -> bool:
        """False for one that has exited and only waits to be reaped."""
        return self.status not in ("zombie", "dead")


class _Read(NamedTuple):
    """A row and what it was made of. `settled`: its command line need not be read again while the rest is unchanged."""

    raw: object
    settled: bool
    row: ProcessRow


@dataclass(frozen=True)
class ProcessTable:
    """All processes that could be seen at one moment. `readable`: False when none could, so that absence means nothing at all."""

    rows: Mapping[int, ProcessRow] = field(default_factory=dict)
    readable: bool = True
    _reads: Mapping[int, _Read] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def children(self) -> Mapping[int, tuple[ProcessRow, ...]]:
        """The rows by parent's pid. By the kernel's word at this moment, so that no clock step hides a child."""
        children: dict[int, list[ProcessRow]] = {}
        for row in self.rows.values():
            if row.ppid is not None:
                children.setdefault(row.ppid, []).append(row)
        return {ppid: tuple(rows) for ppid, rows in children.items()}

    @cached_property
    def claude(self) -> tuple[ProcessRow, ...]:
        """The live rows that are, or for want of a command line may be, Claude Code."""
        return tuple(row for row in self.rows.values() if row.alive and _is_candidate(row))

    @cached_property
    def by_session(self) -> Mapping[str, tuple[ProcessRow, ...]]:
        """The rows of `claude` by each session id that their command line names."""
        sessions: dict[str, tuple[ProcessRow, ...]] = {}
        for row in self.claude:
            for session_id in sessions_in_argv(row.argv or ()):
                sessions[session_id] = (*sessions.get(session_id, ()), row)
        return sessions


def _is_candidate(row: ProcessRow) -> bool:
    return may_be_claude(row.name, row.argv) and (not row.argv or claude_arguments(row.argv, row.exe) is not None)


def snapshot(previous: ProcessTable | None = None) -> ProcessTable:
    """The processes of this moment. With the `previous` snapshot, what is unchanged in it is not read again. Never raises."""
    known = {} if previous is None else previous._reads
    reads = _linux_reads(known) if sys.platform == "linux" else _psutil_reads(known)
    return ProcessTable({pid: read.row for pid, read in reads.items()}, bool(reads), reads)


# --- Linux ----------------------------------------------------------------------------------------------------------------


def _linux_reads(known: Mapping[int, _Read]) -> dict[int, _Read]:
    try:
        names = os.listdir("/proc")
    except OSError:
        return {}
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    reads = {}
    for name in names:
        if not name[0].isdigit():
            continue
        raw = _read(f"/proc/{name}/stat", 4096)
        if raw:
            pid = int(name)
            before = known.get(pid)
            unchanged = before is not None and before.settled and before.raw == raw
            reads[pid] = before if before is not None and unchanged else _linux_read(pid, raw, before, now)
    return reads


def _linux_read(pid: int, raw: bytes, before: _Read | None, now: float) -> _Read:
    try:
        row = _row_of_stat(pid, raw)
    except (ValueError, IndexError):
        return _Read(raw, False, ProcessRow(pid=pid, unknown=frozenset({"start_time", "ppid", "argv", "tty", "status"})))
    old = None if before is None or before.row.start_time != row.start_time else before.row
    if before is not None and old is not None and before.settled and old.name == row.name:
        return _Read(raw, True, replace(row, argv=old.argv, exe=old.exe, uid=old.uid, unknown=old.unknown))
    settled = row.start_time is not None and now - row.start_time > _SETTLED
    return _Read(raw, settled, _with_program(row, _linux_argv(pid), old))


def _row_of_stat(pid: int, raw: bytes) -> ProcessRow:
    # The second field is the program's name in brackets and may itself hold spaces and brackets.
    end = raw.rindex(b")")
    fields = raw[end + 2 :].split()
    return ProcessRow(
        pid=pid,
        start_time=int(fields[19]) / _TICKS,
        ppid=int(fields[1]),
        pgid=int(fields[2]),
        sid=int(fields[3]),
        name=os.fsdecode(raw[raw.index(b"(") + 1 : end]),
        tty=_device(int(fields[4])),
        status=_STATES.get(fields[0].decode("ascii", "replace"), "unknown"),
        cpu_seconds=(int(fields[11]) + int(fields[12])) / _TICKS,
    )


def _device(number: int) -> str | None:
    """The path of the terminal with that device number, as the kernel numbers pseudo terminals and consoles."""
    if number == 0:
        return None
    major, minor = os.major(number), os.minor(number)
    if 136 <= major <= 143:
        return f"/dev/pts/{minor + 256 * (major - 136)}"
    if major == 4:
        return f"/dev/tty{minor}" if minor < 64 else f"/dev/ttyS{minor - 64}"
    return f"/dev/char/{major}:{minor}"


def _linux_argv(pid: int) -> tuple[str, ...] | None:
    content = _read(f"/proc/{pid}/cmdline", _LONGEST_COMMAND_LINE)
    return None if content is None else _words(content)


def _words(content: bytes) -> tuple[str, ...]:
    stripped = content.rstrip(b"\0")
    return tuple(os.fsdecode(word[:_LONGEST_WORD]) for word in stripped.split(b"\0")) if stripped else ()


def _read(path: str, size: int) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.read(fd, size)
    except OSError:
        return None
    finally:
        os.close(fd)


def _linux_exe(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    except OSError:
        return None


def _linux_uid(pid: int) -> int | None:
    _, found, rest = (_read(f"/proc/{pid}/status", 4096) or b"").partition(b"\nUid:")
    return int(rest.split(maxsplit=1)[0]) if found else None


def _with_program(row: ProcessRow, argv: tuple[str, ...] | None, old: ProcessRow | None) -> ProcessRow:
    """The row with what it runs. `old` is the same process as it was seen before, perhaps before it replaced its command line."""
    if argv == ("claude",) and old is not None and old.argv and claude_arguments(old.argv, old.exe):
        argv = old.argv
    if not may_be_claude(row.name, argv):
        return replace(row, argv=argv, unknown=frozenset({"exe", "uid"} if argv is not None else {"argv", "exe", "uid"}))
    found: dict[str, Any] = {"argv": argv, "exe": _linux_exe(row.pid), "uid": _linux_uid(row.pid)}
    return replace(row, **found, unknown=frozenset(key for key, value in found.items() if value is None))


# --- elsewhere ------------------------------------------------------------------------------------------------------------


def _psutil_reads(known: Mapping[int, _Read]) -> dict[int, _Read]:
    import psutil

    reads = {}
    for process in psutil.process_iter():
        read = _psutil_read(process, known.get(process.pid))
        if read is not None:
            reads[process.pid] = read
    return reads


def _psutil_read(process: Any, before: _Read | None) -> _Read | None:
    """One process as psutil shows it; None when it is gone."""
    import psutil

    with process.oneshot():
        found = {key: _ask(process, key) for key in ("ppid", "name", "status", "terminal", "cpu_times")}
        if isinstance(found["status"], psutil.NoSuchProcess) and not isinstance(found["status"], psutil.ZombieProcess):
            return None
        started = start_time(process.pid)
        raw = (started, found["name"])
        settled = started is not None and time.time() - started > _SETTLED
        if before is not None and before.settled and before.raw == raw:
            program = {"cmdline": before.row.argv, "exe": before.row.exe, "uids": before.row.uid}
        else:
            program = _psutil_program(process, found["name"])
    return _Read(raw, settled, _row_of_psutil(process.pid, started, found, program))


def _ask(process: Any, key: str) -> Any:
    """What one of its methods answers, or the psutil error it raised."""
    import psutil

    try:
        return getattr(process, key)()
    except (psutil.Error, OSError) as error:
        return error


def _psutil_program(process: Any, name: Any) -> dict[str, Any]:
    argv = _ask(process, "cmdline")
    words = _words("\0".join(argv).encode("utf-8", "surrogateescape")) if isinstance(argv, list) else None
    if not may_be_claude(name if isinstance(name, str) else "", words):
        return {"cmdline": words, "exe": None, "uids": None}
    exe, uids = _ask(process, "exe"), _ask(process, "uids")
    return {
        "cmdline": words,
        "exe": exe if isinstance(exe, str) else None,
        "uids": None if isinstance(uids, Exception) else int(uids.real),
    }


def _row_of_psutil(pid: int, started: float | None, found: Mapping[str, Any], program: Mapping[str, Any]) -> ProcessRow:
    import psutil

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
