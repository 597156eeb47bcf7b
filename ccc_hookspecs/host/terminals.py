"""Terminals: who has a session open in one, giving a text to it, and becoming one."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field

from ccc_hookspecs.claude.registry import RegistryRecord, read_registry
from ccc_hookspecs.claude.text import is_command
from ccc_hookspecs.host.liveness import presence
from ccc_hookspecs.host.records import Session
from ccc_hookspecs.host.releases import SAYS_WHERE_IT_IS, is_before
from ccc_hookspecs.host.sight import pid_namespace
from ccc_hookspecs.host.spawn import files_of
from ccc_hookspecs.host.tmux import Pane, pane_of
from ccc_hookspecs.processes import start_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """A live interactive `claude` on a session.

    `status`: what it says of itself: `idle`, `busy`, `waiting` while it shows a dialog (measured on 2.1.119, 2.1.168 and 2.1.332), or
    None. `sure`: it is on this session now; a 2.1.119 still names the session that it left by `/clear`, later ones do not. `namespace`:
    the pid namespace that the pid is of.
    """

    pid: int
    start_time: float
    status: str | None = field(default=None, compare=False)
    sure: bool = field(default=True, compare=False)
    namespace: int | None = field(default_factory=pid_namespace)

    @property
    def key(self) -> str:
        """A text that names this very process."""
        return f"{self.pid}/{self.start_time!r}/{self.namespace or ''}"

    @property
    def in_sight(self) -> bool:
        """Whether its pid is one of this process's own pid namespace, as far as is known."""
        return self.namespace is None or self.namespace == pid_namespace()

    @classmethod
    def of_key(cls, key: str) -> Terminal:
        """The terminal that `key` names."""
        pid, started, namespace = (*key.split("/"), "")[:3]
        return cls(pid=int(pid), start_time=float(started), namespace=int(namespace) if namespace else None)

    def may_be_on(self, session: Session) -> bool:
        """False once the process is gone for certain, or says that it went on to another session.

        True for ever of one that is not in sight: its record in the registry may be gone because another process with its pid had one.
        """
        if not self.in_sight:
            return True
        if presence(self.pid, self.start_time) == "gone":
            return False
        record = read_registry(files_of(session)).of(self.pid, self.start_time)
        # A record that cannot be read for the moment says nothing.
        return record is None or record.session_id == session.session_id

    def objection(self, text: str) -> str | None:
        """Why this text is not to be typed into it now; None when it may be."""
        if is_command(text):
            return "a terminal has the session open, and slash commands may open a dialog there"
        if not self.sure:
            return "a terminal of a release that does not say which session it is on after a /clear may have the session open"
        # In a dialog the keys would be an answer.
        return None if self.status == "idle" else f"the terminal that has the session open says that it is {self.status}"

    def typable_pane(self) -> Pane | None:
        """The tmux pane in which it reads the keys, or None: it sits elsewhere, or was stopped and a shell would get them."""
        return pane_of(_ancestors(self.pid)) if _in_foreground(self.pid) else None


def terminal_on(session: Session) -> Terminal | None:
    """The live terminal that has this session open, the newest when there are several; None when there is none.

    By Claude Code's own registry, so none is found of releases before 2.1.119, which keep none.
    """
    found = [_terminal(record, started) for record, started in _live(session) if record.entrypoint == "cli"]
    return max(found, key=lambda terminal: terminal.start_time, default=None)


def stranger_on(session: Session) -> int | None:
    """The pid of a live process on this session that is no terminal, when the host has no head there; None when there is none."""
    return next((record.pid for record, _ in _live(session) if record.entrypoint != "cli"), None)


def _live(session: Session) -> list[tuple[RegistryRecord, float]]:
    """The records of living processes on this session, with their start times."""
    records = read_registry(files_of(session)).by_session.get(session.session_id, ())
    found = [(record, started) for record in records if (started := start_time(record.pid)) is not None]
    return [
        (record, started) for record, started in found if record.identifies(record.pid, started) and presence(record.pid, started) != "gone"
    ]


def _terminal(record: RegistryRecord, started: float) -> Terminal:
    sure = record.version is not None and not is_before(record.version, SAYS_WHERE_IT_IS)
    return Terminal(pid=record.pid, start_time=started, status=record.status, sure=sure)


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
