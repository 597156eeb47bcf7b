"""The journal of retirements: each intent is recorded before its first signal, and closed with how it ended.

So exit code 143 or -9 of a headless reads as "retired by us", a process that a crashed host left frozen is found again, and of
two processes that want to retire the same headless one acts. No journal, no signal: whoever cannot record, keeps.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from ccc_hookspecs.outcomes import Rung
from ccc_hookspecs.processes import SAME_START, start_time
from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.identity import presence
from ccc_plugins.retire_stale.store import Store, StoreError

log = logging.getLogger(__name__)

Ending: TypeAlias = Literal["retired", "healed", "deferred", "kept", "exited", "failed", "interrupted", "thawed", "abandoned"]
"""How an attempt ended. `healed`: it was given what it did not know, and lives on. `exited`: by itself, before we ended it.
`interrupted`: an error broke it off. `thawed`, `abandoned`: its host died before it could say, leaving the process frozen or not."""

ATTEMPTS_KEPT = 1000
"""How many closed attempts are remembered."""


class AlreadyClaimed(Exception):
    """Another live process is retiring this headless now. Attribute: `host_pid`."""

    def __init__(self, host_pid: int) -> None:
        super().__init__(f"is being retired by process {host_pid}")
        self.host_pid = host_pid


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One retirement that was begun. `began_at`, `ended_at`: seconds since the epoch.

    `frozen`: the process may be stopped by us. `rung`, `outcome`, `ended_at`: None while it is open. `exit_code`: as
    `subprocess` gives it, or None when it could not be read.
    """

    id: int
    pid: int
    start_time: float
    session_id: str
    mechanism: str
    reason: str
    host_pid: int
    host_start_time: float | None
    began_at: float
    frozen: bool
    rung: Rung | None
    outcome: Ending | None
    exit_code: int | None
    ended_at: float | None


class Journal:
    """The journal in `state_dir`. Any number of instances, threads and processes may use one directory at once."""

    def __init__(self, state_dir: Path, *, busy_seconds: float = 2.0) -> None:
        self.store = Store(state_dir, busy_seconds=busy_seconds)
        self._left_open: set[int] = set()

    def begin(self, headless: Headless, *, mechanism: str, reason: str, freezes: bool) -> int:
        """Record the intent and return its id for `finish`. `freezes`: the process may be found stopped by us from now on.

        Raises `AlreadyClaimed` when another live process has an open intent on this headless, and `StoreError` when
        the intent could not be recorded; either way nothing may be signalled.
        """
        host, host_start = os.getpid(), start_time(os.getpid())
        with self.store.writing() as db:
            self._take_over(db, headless)
            row = db.execute(
                "INSERT INTO attempts (pid, start_time, session_id, mechanism, reason, host_pid, host_start_time, began_at, frozen)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (headless.pid, headless.start_time, headless.session_id, mechanism, reason, host, host_start, time.time(), freezes),
            )
            db.execute(
                "DELETE FROM attempts WHERE outcome IS NOT NULL AND id <= (SELECT MAX(id) FROM attempts) - ?",
                (ATTEMPTS_KEPT,),
            )
        assert row.lastrowid is not None
        return row.lastrowid

    def _take_over(self, db: sqlite3.Connection, headless: Headless) -> None:
        for attempt in _select(
            db, "outcome IS NULL AND pid = ? AND ABS(start_time - ?) < ?", headless.pid, headless.start_time, SAME_START
        ):
            # An open intent of our own is one that could not be closed: the session's lock lets only one thread come here.
            if attempt.host_pid != os.getpid() and not _host_died(attempt):
                raise AlreadyClaimed(attempt.host_pid)
            _close(db, attempt.id, "abandoned", None, None)

    def note_healing(self, headless: Headless, *, mechanism: str, reason: str) -> None:
        """Note that a headless was healed; nothing had to be recorded before. Never raises."""
        try:
            self.finish(self.begin(headless, mechanism=mechanism, reason=reason, freezes=False), outcome="healed", rung="judge")
        except (AlreadyClaimed, StoreError) as error:
            log.warning("session %s: a healing could not be recorded: %s", headless.session_id, error)

    def finish(self, attempt: int, *, outcome: Ending, rung: Rung, exit_code: int | None = None) -> bool:
        """Close an intent. Never raises: what happened has happened. False, and logged, when it could not be recorded."""
        try:
            with self.store.writing() as db:
                _close(db, attempt, outcome, rung, exit_code)
        except StoreError as error:
            self.store.complain("the end of a retirement could not be recorded", error)
            return False
        return True

    def leave_open(self, attempts: Iterable[int]) -> None:
        """These ended without their processes being continued: `settle_abandoned` takes them for those of a host that died."""
        self._left_open.update(attempts)

    def retired_by_us(self, pid: int, start_time: float) -> bool:
        """Whether this process's exit is our doing: its last attempt is open, retired it, or had told it to end. False when unreadable."""
        last = next(iter(self._of_process(pid, start_time)), None)
        if last is None:
            return False
        return last.outcome in (None, "retired") or (last.outcome in ("failed", "interrupted") and last.rung in ("terminate", "kill"))

    def may_be_frozen(self, pid: int, start_time: float) -> bool:
        """Whether an open attempt may have stopped this process. False when unreadable."""
        return any(attempt.outcome is None and attempt.frozen for attempt in self._of_process(pid, start_time))

    def _of_process(self, pid: int, start_time: float) -> tuple[Attempt, ...]:
        return self._read("pid = ? AND ABS(start_time - ?) < ?", pid, start_time, SAME_START)

    def attempts(self) -> tuple[Attempt, ...]:
        """Every remembered attempt, newest first; none when unreadable."""
        return self._read("TRUE")

    def _open(self) -> tuple[Attempt, ...]:
        """The open attempts. Raises `StoreError`."""
        if not self.store.exists():
            return ()
        with self.store.reading() as db:
            return _select(db, "outcome IS NULL")

    def _read(self, condition: str, *values: object) -> tuple[Attempt, ...]:
        if not self.store.exists():
            return ()
        try:
            with self.store.reading() as db:
                return _select(db, condition, *values)
        except StoreError as error:
            self.store.complain("the journal of retirements cannot be read", error)
            return ()

    def settle_abandoned(self, decide: Callable[[Attempt], Ending]) -> tuple[tuple[Attempt, Ending], ...]:
        """Close every open attempt whose host has died, or that was left open here, with what `decide` says of it. Raises `StoreError`.

        `decide` is called while no other process can begin an attempt, so it may continue a frozen process without
        continuing one that another host has just stopped.
        """
        if not any(self._is_abandoned(attempt) for attempt in self._open()):
            return ()
        with self.store.writing() as db:
            settled = tuple((attempt, decide(attempt)) for attempt in _select(db, "outcome IS NULL") if self._is_abandoned(attempt))
            for attempt, ending in settled:
                _close(db, attempt.id, ending, None, None)
        self._left_open.difference_update(attempt.id for attempt, _ in settled)
        return settled

    def _is_abandoned(self, attempt: Attempt) -> bool:
        return attempt.id in self._left_open or _host_died(attempt)


def _host_died(attempt: Attempt) -> bool:
    return presence(attempt.host_pid, attempt.host_start_time) == "gone"


def _select(db: sqlite3.Connection, condition: str, *values: object) -> tuple[Attempt, ...]:
    rows = db.execute(f"SELECT * FROM attempts WHERE {condition} ORDER BY id DESC", values)
    return tuple(Attempt(**{**dict(row), "frozen": bool(row["frozen"])}) for row in rows)


def _close(db: sqlite3.Connection, attempt: int, outcome: Ending, rung: Rung | None, exit_code: int | None) -> None:
    db.execute(
        "UPDATE attempts SET outcome = ?, rung = ?, exit_code = ?, ended_at = ?, frozen = 0 WHERE id = ? AND outcome IS NULL",
        (outcome, rung, exit_code, time.time(), attempt),
    )
