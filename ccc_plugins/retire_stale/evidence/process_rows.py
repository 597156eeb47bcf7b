"""One process as a snapshot sees it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NamedTuple

SETTLED_SECONDS = 2.0
"""Age from which a command line is believed to stay: a process that has just forked shows its parent's."""

_LONGEST_WORD = 4096
"""A prompt may be longer; no flag, path or id is."""


class Identity(NamedTuple):
    """What tells a process from every other: its pid and `ccc_hookspecs.processes.start_time`; without the latter, unknown."""

    pid: int
    start_time: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    """One process.

    `start_time`: as `ccc_hookspecs.processes.start_time`. `pgid`, `sid`: its process group and session. `name`: as the kernel has it,
    cut at 15 characters on Linux. `argv`: without empty words at its end, each word cut at 4096 bytes; a kernel thread and a zombie
    have none. `tty`: the device of its controlling terminal, None when it has none. `status`: in psutil's words. `cpu_seconds`: user and
    system time it used. `exe` and `uid` (the real user) are looked up only for rows that may be Claude Code.

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


class Read(NamedTuple):
    """A row and what it was made of. `settled`: its command line need not be read again while the rest is unchanged."""

    raw: object
    settled: bool
    row: ProcessRow


def words(content: bytes) -> tuple[str, ...]:
    """The words of a command line that are separated by NUL bytes."""
    stripped = content.rstrip(b"\0")
    return tuple(os.fsdecode(word[:_LONGEST_WORD]) for word in stripped.split(b"\0")) if stripped else ()
