"""Retirements put off until their headless is idle, kept on disk so that they outlive the host."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ccc_hookspecs.processes import SAME_START
from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.store import Store, StoreError

T = TypeVar("T")

DEFERRALS_KEPT = 1000
"""How many deferrals are remembered; past it the oldest are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferredRetirement:
    """A headless to retire when it is idle. `signs`: what it was last busy with. `since`: seconds since the epoch of the first time."""

    session_id: str
    pid: int
    start_time: float
    mechanism: str
    reason: str
    signs: tuple[str, ...]
    since: float

    def is_of(self, headless: Headless) -> bool:
        """Whether it is about this very process, still serving this session."""
        same = headless.start_time is not None and abs(headless.start_time - self.start_time) < SAME_START
        return same and headless.pid == self.pid and headless.session_id == self.session_id


class Deferrals:
    """The deferrals in a store, one for each process and mechanism. No method raises: what cannot be stored is logged and left out."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(
        self, headless: Headless, *, mechanism: str, reason: str, signs: tuple[str, ...] = (), since: float | None = None
    ) -> DeferredRetirement | None:
        """Remember to retire it when idle; repeated, it renews reason and signs and keeps the first `since` (default: now).

        None when it was not stored: the process's start time is unknown, so that it can never be retired, or the store cannot be used.
        """
        started, first = headless.start_time, time.time() if since is None else since
        if started is None:
            return None

        def insert(db: sqlite3.Connection) -> DeferredRetirement:
            row = db.execute(
                "INSERT INTO deferrals (pid, start_time, mechanism, session_id, reason, signs, since) VALUES (?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET session_id = excluded.session_id, reason = excluded.reason, signs = excluded.signs"
                " RETURNING *",
                (headless.pid, started, mechanism, headless.session_id, reason, "\n".join(signs), first),
            ).fetchone()
            _forget_oldest(db)
            return _deferred(row)

        return self._write(insert, None)

    def all(self, mechanism: str | None = None) -> tuple[DeferredRetirement, ...]:
        """Every deferral, or those of one mechanism, oldest first; none when the store cannot be read."""
        if not self._store.exists():
            return ()
        try:
            with self._store.reading() as db:
                rows = db.execute("SELECT * FROM deferrals WHERE ? IS NULL OR mechanism = ? ORDER BY since", (mechanism, mechanism))
                return tuple(_deferred(row) for row in rows)
        except StoreError as error:
            self._store.complain("deferred retirements cannot be read", error)
            return ()

    def since(self, headless: Headless) -> float | None:
        """When this process was first deferred, in seconds since the epoch; None when it is not."""
        return next((deferred.since for deferred in self.all() if deferred.is_of(headless)), None)

    def restart(self, headless: Headless, mechanism: str) -> None:
        """The wait for this process begins anew, when there is one."""

        def update(db: sqlite3.Connection) -> None:
            db.execute(
                "UPDATE deferrals SET since = ? WHERE pid = ? AND ABS(start_time - ?) < ? AND mechanism = ?",
                (time.time(), headless.pid, headless.start_time, SAME_START, mechanism),
            )

        if headless.start_time is not None and self._store.exists():
            self._write(update, None)

    def drop(self, of: Headless | DeferredRetirement, mechanism: str | None = None) -> bool:
        """Forget this deferral, or those of a process: of every mechanism or of one. True for the one caller that removed something."""
        only = of.mechanism if isinstance(of, DeferredRetirement) else mechanism

        def delete(db: sqlite3.Connection) -> bool:
            found = db.execute(
                "DELETE FROM deferrals WHERE pid = ? AND ABS(start_time - ?) < ? AND (? IS NULL OR mechanism = ?)",
                (of.pid, of.start_time, SAME_START, only, only),
            )
            return found.rowcount > 0

        return of.start_time is not None and self._store.exists() and self._write(delete, False)

    def _write(self, work: Callable[[sqlite3.Connection], T], failed: T) -> T:
        try:
            with self._store.writing() as db:
                return work(db)
        except StoreError as error:
            self._store.complain("a deferred retirement could not be stored or removed", error)
            return failed


def _forget_oldest(db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM deferrals WHERE rowid NOT IN (SELECT rowid FROM deferrals ORDER BY since DESC LIMIT ?)", (DEFERRALS_KEPT,))


def _deferred(row: sqlite3.Row) -> DeferredRetirement:
    return DeferredRetirement(**{**dict(row), "signs": tuple(row["signs"].splitlines())})
