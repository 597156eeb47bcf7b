"""Processes as Linux shows them in `/proc`: one short read a process, and the rest only of those that are new or changed."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ccc_plugins.retire_stale.evidence.command_line import claude_arguments, may_be_claude
from ccc_plugins.retire_stale.evidence.process_rows import SETTLED_SECONDS, ProcessRow, Read, words

_TICKS = os.sysconf("SC_CLK_TCK")
_LONGEST_COMMAND_LINE = 1 << 18

_STATES = {
    "R": "running", "S": "sleeping", "D": "disk-sleep", "T": "stopped", "t": "tracing-stop", "Z": "zombie", "X": "dead", "I": "idle",
}  # fmt: skip


def read_all(known: Mapping[int, Read]) -> dict[int, Read]:
    """Every process by pid, unchanged ones as they are `known`; nothing when `/proc` cannot be listed."""
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
            reads[pid] = before if before is not None and unchanged else _read_one(pid, raw, before, now)
    return reads


def _read_one(pid: int, raw: bytes, before: Read | None, now: float) -> Read:
    try:
        row = _row_of_stat(pid, raw)
    except (ValueError, IndexError):
        return Read(raw, False, ProcessRow(pid=pid, unknown=frozenset({"start_time", "ppid", "argv", "tty", "status"})))
    old = None if before is None or before.row.start_time != row.start_time else before.row
    if before is not None and old is not None and before.settled and old.name == row.name:
        return Read(raw, True, replace(row, argv=old.argv, exe=old.exe, uid=old.uid, unknown=old.unknown))
    settled = row.start_time is not None and now - row.start_time > SETTLED_SECONDS
    return Read(raw, settled, _with_program(row, _linux_argv(pid), old))


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
    return None if content is None else words(content)


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
