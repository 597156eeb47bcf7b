"""The SQLite file of a host, shared by all its processes.

Every use opens a connection of its own: that is safe in any thread and after a fork, and costs about a millisecond.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from ccc_hookspecs.host.errors import StateError
from ccc_hookspecs.private_sqlite import connect, make_private, use_wal

FILE_NAME: Final = "host.sqlite3"

MIGRATIONS: Final = (
    """
CREATE TABLE sessions (
    session_id TEXT PRIMARY KEY,
    cwd TEXT NOT NULL,
    claude TEXT NOT NULL,
    arguments TEXT NOT NULL,
    config_dir TEXT,
    created_at REAL NOT NULL
);
CREATE TABLE headless (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    pid INTEGER,
    start_time REAL,
    fifo TEXT NOT NULL,
    log TEXT NOT NULL,
    cwd TEXT NOT NULL,
    config_dir TEXT,
    spawned_at REAL NOT NULL,
    transcript_size INTEGER NOT NULL,
    resumed INTEGER NOT NULL,
    mark TEXT NOT NULL,
    jammed INTEGER NOT NULL DEFAULT 0,
    release TEXT,
    ended_at REAL
);
CREATE UNIQUE INDEX headless_live ON headless (session_id) WHERE ended_at IS NULL;
CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL,
    text BLOB NOT NULL,
    state TEXT NOT NULL,
    created_at REAL NOT NULL,
    head_id INTEGER,
    terminal TEXT,
    wrote INTEGER NOT NULL DEFAULT 0,
    written_at REAL,
    log_offset INTEGER NOT NULL DEFAULT 0,
    transcript_offset INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    hold TEXT,
    held_since REAL,
    overruled INTEGER NOT NULL DEFAULT 0,
    catch_up BLOB,
    catch_up_turns TEXT NOT NULL DEFAULT '[]',
    error TEXT,
    proof TEXT,
    delivered_at REAL
);
CREATE INDEX outbox_open ON outbox (session_id, seq) WHERE state != 'delivered';
CREATE TABLE inputs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    head_id INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    sent_at REAL NOT NULL
);
CREATE UNIQUE INDEX inputs_by_head ON inputs (head_id, message_id);
CREATE TABLE journal (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    what TEXT NOT NULL,
    session_id TEXT,
    detail TEXT NOT NULL
);
""",
    # An overruling is no property of a message: it is for what a person was shown, and for one try.
    "ALTER TABLE outbox DROP COLUMN overruled",
    """
ALTER TABLE outbox ADD COLUMN unstarted_since REAL;
ALTER TABLE outbox ADD COLUMN retry_at REAL
""",
    """
ALTER TABLE headless ADD COLUMN boot TEXT;
ALTER TABLE headless ADD COLUMN namespace INTEGER
""",
    """
ALTER TABLE inputs ADD COLUMN history INTEGER NOT NULL DEFAULT 0;
ALTER TABLE inputs ADD COLUMN log_offset INTEGER;
ALTER TABLE headless ADD COLUMN jammed_by TEXT
""",
    # What a fresh process lacks is asked for with each text.
    """
ALTER TABLE outbox DROP COLUMN catch_up;
ALTER TABLE outbox DROP COLUMN catch_up_turns
""",
)
"""The scripts that lead from each schema version to the next; the last version is their number."""


class Database:
    """`path`: the file, made with 0600 in a directory of 0700. `busy_seconds`: how long to wait for another process's write."""

    def __init__(self, state_dir: Path, *, busy_seconds: float = 10.0) -> None:
        self.path = state_dir / FILE_NAME
        self._busy_seconds = busy_seconds

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection to read through. Raises `StateError`."""
        with self._translated(), closing(self._connect()) as db:
            yield db

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection inside one write transaction, committed at the end and rolled back by an exception. Raises `StateError`."""
        with self._translated(), closing(self._connect()) as db:
            db.execute("BEGIN IMMEDIATE")
            with db:
                yield db

    def fingerprint(self) -> tuple[tuple[int, int], ...]:
        """A value that differs after any write by any process; cheap enough to be looked at twice a second."""
        return tuple(_stamp(self.path.with_name(FILE_NAME + end)) for end in ("", "-wal"))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except (sqlite3.Error, OSError) as error:
            raise StateError(self.path, f"{error}: free the disk or the file, or point $CCC_HOST_STATE elsewhere") from error

    def _connect(self) -> sqlite3.Connection:
        if make_private(self.path) is None:
            raise StateError(self.path, "not a plain file of this user: point $CCC_HOST_STATE to a directory of your own")
        return connect(self.path, self._busy_seconds, self._prepare)

    def _prepare(self, db: sqlite3.Connection) -> None:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version > len(MIGRATIONS):
            raise StateError(self.path, f"made by a newer release (schema {version}, this one knows {len(MIGRATIONS)}): upgrade ccc-host")
        if version < len(MIGRATIONS):
            use_wal(db, self._busy_seconds)
            self._migrate(db)
        # A message must be on the disk before its first byte is in a pipe, also when the power fails.
        db.execute("PRAGMA synchronous = FULL")

    def _migrate(self, db: sqlite3.Connection) -> None:
        db.execute("BEGIN IMMEDIATE")
        with db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            for script in MIGRATIONS[version:]:
                for statement in script.split(";\n"):
                    db.execute(statement)
            db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _stamp(path: Path) -> tuple[int, int]:
    try:
        seen = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return (seen.st_mtime_ns, seen.st_size)
