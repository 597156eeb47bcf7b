"""Errors of the embedded host and the exit codes of `ccc-host`. Each message is one line that says what to do."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path

from ccc_hookspecs.errors import CccError


class ExitCode(IntEnum):
    """What `ccc-host` exits with."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNKNOWN_SESSION = 3
    CLAUDE = 5
    CONFIG = 6
    STATE = 7
    LOCKED = 8
    TURN_FAILED = 9
    INTERRUPTED = 130


class HostError(CccError):
    """Something the host could not do. `exit_code` is what the command line exits with."""

    exit_code = ExitCode.FAILED


class UnknownSession(HostError):
    """No session, or more than one, answers to what was given. Attributes: `given`, `matches` (full session ids)."""

    exit_code = ExitCode.UNKNOWN_SESSION

    def __init__(self, given: str, matches: tuple[str, ...] = ()) -> None:
        several = f"{given} may be any of {', '.join(matches)}: give more of the id"
        super().__init__(several if matches else f"no session {given}: `ccc-host list` shows the known ones, `ccc-host start` begins one")
        self.given = given
        self.matches = matches


class UnknownMessage(HostError):
    """No message that could be dropped answers to what was given. Attribute: `given`."""

    exit_code = ExitCode.UNKNOWN_SESSION

    def __init__(self, given: str, reason: str) -> None:
        super().__init__(f"message {given}: {reason}")
        self.given = given


class ClaudeError(HostError):
    """Claude Code could not be started, or ended before it took the message. Attribute: `reason`."""

    exit_code = ExitCode.CLAUDE

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class StateError(HostError):
    """The state directory or its database cannot be used. Attribute: `path`."""

    exit_code = ExitCode.STATE

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
