"""A SQLite file for one user, which several processes use at once; each use opens a connection of its own."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def make_private(path: Path) -> os.stat_result | None:
    """Make the file with 0600, in a directory with 0700, before SQLite does, which gives its side files the same mode.

    What the file is then; None when something else is there: not a plain file, or another user's. Raises `OSError`.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # An existing file is never opened here: closing it again would drop the locks that SQLite holds on it for this process.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    found = path.lstat()
    return found if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() else None


def connect(path: Path, busy_seconds: float, prepare: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
    """A connection whose rows have names and whose transactions are begun by hand, closed again when `prepare` raises."""
    db = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None)
    try:
        db.row_factory = sqlite3.Row
        prepare(db)
    except BaseException:
        db.close()
        raise
    return db


def use_wal(db: sqlite3.Connection, busy_seconds: float) -> None:
    """Switch the file to WAL. SQLite does not wait by itself for another process that switches the same new file at this moment."""
    end = time.monotonic() + busy_seconds
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() >= end:
                raise
            time.sleep(0.01)
