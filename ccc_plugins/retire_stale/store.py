"""The SQLite file in which the plugin keeps what must survive a restart; shared by all processes of a host.

Every use opens a connection of its own: that is safe in any thread and after a fork, and costs about a millisecond.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ccc_hookspecs.private_sqlite import connect, make_private, use_wal

log = logging.getLogger(__name__)

FILE_NAME = "retire_stale.sqlite3"

SCHEMA_VERSION = 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS attempts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    pid INTEGER NOT NULL,
    start_time REAL NOT NULL,
    session_id TEXT NOT NULL,
    mechanism TEXT NOT NULL,
    reason TEXT NOT NULL,
    host_pid INTEGER NOT NULL,
    host_start_time REAL,
    began_at REAL NOT NULL,
    frozen INTEGER NOT NULL,
    rung TEXT,
    outcome TEXT,
    exit_code INTEGER,
    ended_at REAL
);
CREATE INDEX IF NOT EXISTS attempts_by_process ON attempts (pid, id);
CREATE INDEX IF NOT EXISTS attempts_open ON attempts (id) WHERE outcome IS NULL;
CREATE TABLE IF NOT EXISTS deferrals (
    pid INTEGER NOT NULL,
    start_time REAL NOT NULL,
    mechanism TEXT NOT NULL,
    session_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    signs TEXT NOT NULL,
    since REAL NOT NULL,
    PRIMARY KEY (pid, start_time, mechanism)
);
"""


class StoreError(Exception):
    """The file cannot be used now: locked for too long, corrupt, of a newer version, not writable, or not a plain file of ours.

    Attribute: `path`.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class Store:
    """`path`: the file. `busy_seconds`: how long to wait for another process's write before `StoreError`."""

    def __init__(self, state_dir: Path, *, busy_seconds: float = 2.0) -> None:
        self.path = state_dir / FILE_NAME
        self._busy_seconds = busy_seconds
        self._said: set[str] = set()

    def exists(self) -> bool:
        """Whether anything was ever stored. Reading does not create the file."""
        return os.path.exists(self.path)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection to read through. Raises `StoreError`."""
        with self._translated(), closing(self._connect()) as db:
            yield db

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection inside one write transaction: no other process writes meanwhile. Committed at the end, rolled back by an exception.

        Raises `StoreError`.
        """
        with self._translated(), closing(self._connect()) as db:
            db.execute("BEGIN IMMEDIATE")
            with db:
                yield db

    def complain(self, what: str, error: StoreError) -> None:
        """Log that something could not be done; the same again only at DEBUG, since ticks repeat it."""
        line = f"{what}: {error}"
        log.log(logging.DEBUG if line in self._said else logging.WARNING, "%s", line)
        self._said.add(line)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeError) as error:
            raise StoreError(self.path, str(error)) from error

    def _connect(self) -> sqlite3.Connection:
        found = make_private(self.path)
        if found is None:
            raise StoreError(self.path, "not a plain file of this user")
        if found.st_mode & 0o077:
            self.path.chmod(0o600)
        return connect(self.path, self._busy_seconds, self._prepare)

    def _prepare(self, db: sqlite3.Connection) -> None:
        db.execute("PRAGMA synchronous = NORMAL")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise StoreError(self.path, f"made by a newer release (version {version}, this one knows {SCHEMA_VERSION})")
        if version < SCHEMA_VERSION:
            use_wal(db, self._busy_seconds)
            db.executescript(f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
