"""What is still owed to a session whose headless was retired or whose text is held: on disk, so that it survives CCC.

CCC keeps the texts themselves, in its own queue. It throws that queue away for a session without a live process; that it must not is
kept here, one small file a session.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from ccc_hookspecs.values import Headless

log = logging.getLogger(__name__)

KEPT_SECONDS: Final = 90 * 86400.0
"""How long a session may be left alone before what it is owed is forgotten; by then the transcript still tells what it lacks."""

PAID_SECONDS: Final = 86400.0
"""How long it is remembered that a debt was paid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Debt:
    """What one session is owed.

    `reason`: why, for people. `mechanism`: who asked for it. `retired_pid`, `retired_start`: the process that the next one replaces, None
    when it was only held.
    """

    reason: str
    mechanism: str
    retired_pid: int | None = None
    retired_start: float | None = None

    def replaced(self, headless: Headless, mechanism: str, reason: str) -> Debt:
        """The same, now that this process was retired."""
        return dataclasses.replace(self, reason=reason, mechanism=mechanism, retired_pid=headless.pid, retired_start=headless.start_time)

    def respawned(self) -> Debt:
        """The same, once a process took over."""
        return dataclasses.replace(self, retired_pid=None, retired_start=None)


class Debts:
    """The debts of one state directory, shared by the processes of the host. Change one with the session's lock held.

    What cannot be written is kept in memory until it can be (`write_late`), or until another process has written something newer. So that
    this can be told, a debt that was paid leaves an empty file behind for a while.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._unwritten: dict[str, _Unwritten] = {}
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def get(self, session_id: str) -> Debt | None:
        """What this session is owed; None for nothing, and for a file that cannot be read."""
        unwritten = self._unwritten.get(session_id)
        if unwritten is not None and unwritten.instead_of == self._state(session_id):
            return unwritten.debt
        try:
            content = self._path(session_id).read_bytes()
            return _debt(content) if content else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, AttributeError):
            log.warning("what session %s is owed cannot be read", session_id, exc_info=True)
            return None

    def put(self, session_id: str, debt: Debt) -> None:
        """Note a debt, in place of an earlier one."""
        state = self._state(session_id)
        try:
            self._write(self._path(session_id), debt)
        except OSError:
            log.exception("what session %s is owed cannot be written", session_id)
            self._unwritten[session_id] = _Unwritten(debt, state)
        else:
            self._unwritten.pop(session_id, None)

    def paid(self, session_id: str) -> None:
        """Nothing is owed any more. Harmless when repeated."""
        self._unwritten.pop(session_id, None)
        with contextlib.suppress(FileNotFoundError):
            os.truncate(self._path(session_id), 0)

    def unwritten(self) -> tuple[str, ...]:
        """The sessions whose debts are in memory alone."""
        return tuple(self._unwritten)

    def write_late(self, session_id: str) -> None:
        """Write what could not be written, unless another process has written something newer."""
        unwritten = self._unwritten.get(session_id)
        if unwritten is None:
            return
        if unwritten.instead_of == self._state(session_id):
            self.put(session_id, unwritten.debt)
        else:
            del self._unwritten[session_id]

    def sweep(self) -> None:
        """Forget debts that nobody came for in a long time, and those that were paid."""
        for path in self._folder.glob("*"):
            with contextlib.suppress(OSError):
                found = path.stat()
                if time.time() - found.st_mtime > (KEPT_SECONDS if found.st_size else PAID_SECONDS):
                    path.unlink()

    def _write(self, path: Path, debt: Debt) -> None:
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                json.dump(dataclasses.asdict(debt), file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    def _state(self, session_id: str) -> _State | None:
        try:
            found = self._path(session_id).stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _path(self, session_id: str) -> Path:
        return self._folder / f"{session_id}.json"


def _debt(content: bytes) -> Debt:
    given = json.loads(content)
    return Debt(**{one.name: given[one.name] for one in dataclasses.fields(Debt) if one.name in given})


_State: TypeAlias = tuple[int, int, int]
"""What tells one content of a file from another."""


@dataclass(frozen=True, slots=True)
class _Unwritten:
    """A debt that could not be written. `instead_of`: the file as it was then; None when there was none."""

    debt: Debt
    instead_of: _State | None
