"""What is still owed to a session whose headless was retired or whose text is held: on disk, so that it survives CCC.

CCC keeps the texts themselves, in its own queue. It throws that queue away for a session without a live process, and
it knows of no catch-up; both are kept here, one small file a session.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ccc_hookspecs.values import Deliver, Headless, Respawn

log = logging.getLogger(__name__)

KEPT_SECONDS: Final = 90 * 86400.0
"""How long a session may be left alone before what it is owed is forgotten; by then the transcript still tells what it lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Debt:
    """What one session is owed.

    `reason`: why, for people. `mechanism`: who asked for it. `catch_up`, `catch_up_turns`: as in `Respawn`, to be put in front of the next
    text. `promised_at`: bytes of the session's transcript when those turns were found lacking, None when unknown. `retired_pid`,
    `retired_start`: the process that the next one replaces, None when it was only held.
    """

    reason: str
    mechanism: str
    catch_up: str | None = field(default=None, repr=False)
    catch_up_turns: tuple[str, ...] = ()
    promised_at: int | None = None
    retired_pid: int | None = None
    retired_start: float | None = None

    def replaced(self, headless: Headless, mechanism: str, reason: str) -> Debt:
        """The same, now that this process was retired."""
        return dataclasses.replace(self, reason=reason, mechanism=mechanism, retired_pid=headless.pid, retired_start=headless.start_time)

    def promising(self, answer: Deliver | Respawn, size: int | None) -> Debt:
        """The same with the turns that a plugin, asked now, finds lacking; the same when it names none.

        A plugin that finds them on disk has found these again, or has told what took their place. One that does not look says nothing
        about what was promised before.
        """
        if answer.catch_up is None:
            return self
        return dataclasses.replace(self, catch_up=answer.catch_up, catch_up_turns=answer.catch_up_turns, promised_at=size)

    def after(self, *, respawned: bool, caught_up: bool) -> Debt:
        """The same, after a text was written: to a process that took over, or with the catch-up in front, or both."""
        rest = dataclasses.replace(self, retired_pid=None, retired_start=None) if respawned else self
        return dataclasses.replace(rest, catch_up=None, catch_up_turns=(), promised_at=None) if caught_up else rest


class Debts:
    """The debts of one state directory, shared by the processes of the host. Change one with the session's lock held.

    What cannot be written is kept in memory, which is enough unless CCC ends before it is paid.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._unwritten: dict[str, Debt] = {}
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def get(self, session_id: str) -> Debt | None:
        """What this session is owed; None for nothing, and for a file that cannot be read."""
        if (unwritten := self._unwritten.get(session_id)) is not None:
            return unwritten
        try:
            given = json.loads(self._path(session_id).read_bytes())
            return Debt(**{**given, "catch_up_turns": tuple(given.get("catch_up_turns", ()))})
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, AttributeError):
            log.warning("what session %s is owed cannot be read", session_id, exc_info=True)
            return None

    def put(self, session_id: str, debt: Debt) -> None:
        """Note a debt, in place of an earlier one."""
        try:
            self._write(self._path(session_id), debt)
        except OSError:
            log.exception("what session %s is owed cannot be written", session_id)
            self._unwritten[session_id] = debt
        else:
            self._unwritten.pop(session_id, None)

    def paid(self, session_id: str) -> None:
        """Nothing is owed any more. Harmless when repeated."""
        self._unwritten.pop(session_id, None)
        self._path(session_id).unlink(missing_ok=True)

    def sweep(self) -> None:
        """Forget debts that nobody came for in a long time; to be called once at start."""
        for path in self._folder.glob("*"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > KEPT_SECONDS:
                    path.unlink()

    def _write(self, path: Path, debt: Debt) -> None:
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(dataclasses.asdict(debt), file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)

    def _path(self, session_id: str) -> Path:
        return self._folder / f"{session_id}.json"
