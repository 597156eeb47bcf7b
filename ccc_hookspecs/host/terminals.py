"""Terminals: who has a session open in one, giving a text to it, and becoming one."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field

from ccc_hookspecs.claude.registry import RegistryRecord, read_registry
from ccc_hookspecs.host.liveness import presence
from ccc_hookspecs.host.records import Session
from ccc_hookspecs.host.spawn import files_of
from ccc_hookspecs.host.tmux import Pane, pane_of
from ccc_hookspecs.processes import start_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """A live interactive `claude` on a session. `status`: what it says of itself (`idle`, `busy`, `waiting`, ...), or None."""

    pid: int
    start_time: float
    status: str | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """A text that names this very process."""
        return f"{self.pid}/{self.start_time!r}"

    @classmethod
    def of_key(cls, key: str) -> Terminal:
        """The terminal that `key` names."""
        pid, _, started = key.partition("/")
        return cls(pid=int(pid), start_time=float(started))

    @property
    def alive(self) -> bool:
        """False once the process is gone for certain."""
        return presence(self.pid, self.start_time) != "gone"

    def typable_pane(self) -> Pane | None:
        """The tmux pane in which it reads the keys, or None: it sits elsewhere, or was stopped and a shell would get them."""
        return pane_of(_ancestors(self.pid)) if _in_foreground(self.pid) else None


def terminal_on(session: Session) -> Terminal | None:
    """The live terminal that has this session open, the newest when there are several; None when there is none.

    By Claude Code's own registry, so none is found of releases before 2.1.119, which keep none.
    """
    records = read_registry(files_of(session)).by_session.get(session.session_id, ())
    found = [terminal for record in records if (terminal := _live(record)) is not None]
    return max(found, key=lambda terminal: terminal.start_time, default=None)


def _live(record: RegistryRecord) -> Terminal | None:
    started = start_time(record.pid)
    if record.entrypoint != "cli" or started is None or not record.identifies(record.pid, started):
        return None
    terminal = Terminal(pid=record.pid, start_time=started, status=record.status)
    return terminal if terminal.alive else None


def _ancestors(pid: int) -> tuple[int, ...]:
    """The process and those above it, the nearest first."""
    import psutil

    try:
        return (pid, *(parent.pid for parent in psutil.Process(pid).parents()))
    except psutil.Error:
        return (pid,)


def _in_foreground(pid: int) -> bool:
    try:
        done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return "+" in done.stdout and "T" not in done.stdout
