"""The processes of one moment.

Linux reads `/proc` itself, which costs a tenth of what psutil's iteration does; elsewhere psutil is asked. A process that ends
meanwhile, is a zombie, or is another user's never spoils the rest; what cannot be read of it is unknown.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ccc_plugins.retire_stale.evidence.command_line import claude_arguments, may_be_claude, sessions_in_argv
from ccc_plugins.retire_stale.evidence.process_rows import Identity, ProcessRow, Read

__all__ = ["Identity", "ProcessRow", "ProcessTable", "snapshot"]


@dataclass(frozen=True)
class ProcessTable:
    """All processes that could be seen at one moment. `readable`: False when none could, so that absence means nothing at all."""

    rows: Mapping[int, ProcessRow] = field(default_factory=dict)
    readable: bool = True
    _reads: Mapping[int, Read] = field(default_factory=dict, repr=False, compare=False)

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
    reads = _read_all(known)
    return ProcessTable({pid: read.row for pid, read in reads.items()}, bool(reads), reads)


def _read_all(known: Mapping[int, Read]) -> dict[int, Read]:
    if sys.platform == "linux":
        from ccc_plugins.retire_stale.evidence import procfs

        return procfs.read_all(known)
    from ccc_plugins.retire_stale.evidence import psutil_rows

    return psutil_rows.read_all(known)
