"""Who runs on a session: which processes are Claude Code, which of them a person drives, and whether one is the process that is meant.

Answers are three-valued where they must be: None, or `sure=False`, is *unknown*, which licenses nothing.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from ccc_hookspecs.claude.registry import Registry, RegistryRecord
from ccc_hookspecs.processes import start_time
from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.evidence.command_line import (
    claude_arguments,
    is_stream_json,
    may_be_claude,
    named_by_version,
    role,
    sessions_in_argv,
)
from ccc_plugins.retire_stale.evidence.process_table import Identity, ProcessRow, ProcessTable, snapshot

__all__ = [
    "Identity",
    "InteractiveWriter",
    "ProcessRow",
    "ProcessTable",
    "age",
    "identity_of",
    "interactive_writers",
    "is_claude",
    "is_stream_json_row",
    "same_process",
    "same_user",
    "sessions_in_argv",
    "snapshot",
    "unnamed_directories",
]

Source: TypeAlias = Literal["registry", "command line", "directory"]

_WITHOUT_TTY = frozenset({"claude-vscode", "claude-desktop", "ssh-remote"})
"""Entrypoints that a person drives through another program's window."""
_SERVICES = frozenset({"daemon", "daemon-worker"})
_STOPPED = frozenset({"stopped", "tracing-stop"})


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractiveWriter:
    """A live process through which a person may be writing to a session.

    `by`: what names the session: the process's own record in the registry, its command line, or only the directory it works in.
    `sure`: False when something speaks against it or is unknown: it is stopped, its terminal is gone or cannot be seen,
    its record names another session, or its kind is not known.
    """

    row: ProcessRow
    by: Source
    sure: bool


def identity_of(pid: int) -> Identity:
    """The identity of a running process; without a start time when there is none or it cannot be read."""
    return Identity(pid, start_time(pid))


def age(pid: int, started: float | None) -> float | None:
    """Seconds since the start of the process that has this start time; None when that is not known. It may have exited since."""
    if started is None or pid <= 0:
        return None
    now = time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.time()
    return max(0.0, now - started)


def same_process(headless: Headless, row: ProcessRow) -> bool | None:
    """Whether a row is that very headless; None when a start time is missing on either side.

    Start times come from one clock that nothing steps on Linux, and from what the kernel noted at the fork elsewhere, so they
    agree or they do not.
    """
    return _same(Identity(headless.pid, headless.start_time), row)


def _same(identity: Identity, row: ProcessRow) -> bool | None:
    if identity.pid != row.pid:
        return False
    if not identity.start_time or not row.start_time:
        return None
    return abs(identity.start_time - row.start_time) < 0.5 / os.sysconf("SC_CLK_TCK")


def same_user(row: ProcessRow) -> bool | None:
    """Whether a process runs for the user we run for; None when its user was not looked up."""
    return None if row.uid is None else row.uid == os.getuid()


def is_claude(row: ProcessRow) -> bool | None:
    """Whether a process is Claude Code; None when its name allows it and nothing more can be read."""
    if not row.argv:
        return None if may_be_claude(row.name, row.argv) else False
    if claude_arguments(row.argv, row.exe) is not None:
        return True
    return None if named_by_version(row.argv[0]) and row.exe is None else False


def is_stream_json_row(row: ProcessRow) -> bool | None:
    """Whether a process is a Claude Code fed with `stream-json`; None for one that shows no arguments (releases up to 2.1.61)."""
    arguments = claude_arguments(row.argv or (), row.exe)
    if arguments is None:
        return is_claude(row)
    return is_stream_json(arguments)


def interactive_writers(
    table: ProcessTable, registry: Registry, session_id: str, exclude: Identity | None = None, cwd: Path | None = None
) -> tuple[InteractiveWriter, ...]:
    """The live processes through which a person may be writing to a session, the sure ones first.

    Known by their record in the registry, by their command line and terminal, and, when `cwd` is given, by working in that directory
    without naming any session, as every terminal of the releases up to 2.1.61 does. Print mode, `stream-json`, daemons and their
    pty hosts are nobody's terminal. `exclude` is left out by identity, whatever terminal it has; also when its start time is unknown.
    That a terminal is missing here proves nothing; that an unattended program holds one cannot be told from a person.
    """
    found: dict[int, InteractiveWriter] = {}
    for writer in _candidates(table, registry, session_id.lower(), cwd):
        if exclude is None or _same(exclude, writer.row) is False:
            found.setdefault(writer.row.pid, writer)
    return tuple(sorted(found.values(), key=lambda writer: not writer.sure))


def _candidates(table: ProcessTable, registry: Registry, session_id: str, cwd: Path | None) -> Iterator[InteractiveWriter]:
    for record in registry.by_session.get(session_id, ()):
        row = table.rows.get(record.pid)
        if row is not None and row.alive and record.identifies(row.pid, row.start_time):
            yield from _by_record(row, record)
    for row in table.by_session.get(session_id, ()):
        yield from _by_command_line(row, registry.of(row.pid, row.start_time), session_id)
    if cwd is not None:
        yield from _by_directory(table, registry, cwd)


def _by_record(row: ProcessRow, record: RegistryRecord) -> Iterator[InteractiveWriter]:
    if _is_program(row, record):
        return
    entrypoint = record.entrypoint
    windowed = entrypoint in _WITHOUT_TTY
    if entrypoint == "cli" or windowed or row.tty is not None:
        sure = (entrypoint == "cli" and row.tty is not None) or windowed
        yield InteractiveWriter(row=row, by="registry", sure=sure and row.status not in _STOPPED)


def _by_command_line(row: ProcessRow, record: RegistryRecord | None, session_id: str) -> Iterator[InteractiveWriter]:
    if record is not None and (record.session_id == session_id or _is_program(row, record)):
        return
    if _role(row) == "terminal" and _may_have_terminal(row):
        yield InteractiveWriter(row=row, by="command line", sure=record is None and row.tty is not None and row.status not in _STOPPED)


def unnamed_directories(table: ProcessTable, registry: Registry) -> frozenset[str]:
    """The real paths of the directories in which terminals work that name no session."""
    return frozenset(cwd for row in _unnamed(table, registry) if (cwd := _cwd_of(row.pid)) is not None)


def _by_directory(table: ProcessTable, registry: Registry, cwd: Path) -> Iterator[InteractiveWriter]:
    real = os.path.realpath(cwd)
    for row in _unnamed(table, registry):
        if _cwd_of(row.pid) == real:
            yield InteractiveWriter(row=row, by="directory", sure=False)


def _unnamed(table: ProcessTable, registry: Registry) -> Iterator[ProcessRow]:
    for row in table.claude:
        unnamed = _role(row) in (None, "terminal") and not sessions_in_argv(row.argv or ())
        if unnamed and _may_have_terminal(row) and registry.of(row.pid, row.start_time) is None:
            yield row


def _is_program(row: ProcessRow, record: RegistryRecord) -> bool:
    """Whether the process is driven by a program, by what it says of itself."""
    return (record.entrypoint or "").startswith("sdk-") or record.kind in _SERVICES or _role(row) in ("stream", "print")


def _role(row: ProcessRow) -> str | None:
    return role(claude_arguments(row.argv or (), row.exe) or ())


def _may_have_terminal(row: ProcessRow) -> bool:
    return row.tty is not None or "tty" in row.unknown


def _cwd_of(pid: int) -> str | None:
    if sys.platform == "linux":
        try:
            return os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            return None
    import psutil

    try:
        return os.path.realpath(psutil.Process(pid).cwd())
    except (psutil.Error, OSError):
        return None
