"""The sessions a host drives."""

from __future__ import annotations

import json

from ccc_hookspecs.host.database import Database
from ccc_hookspecs.host.errors import UnknownSession
from ccc_hookspecs.host.records import Session


class Sessions:
    """The table `sessions`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, session: Session) -> None:
        """Keep a session. One that is known already stays as it is."""
        with self._database.writing() as db:
            db.execute(
                "INSERT OR IGNORE INTO sessions (session_id, cwd, claude, arguments, config_dir, created_at) VALUES (?, ?, ?, ?, ?, ?)",
                (
                    session.session_id,
                    str(session.cwd),
                    session.claude,
                    json.dumps(list(session.arguments)),
                    None if session.config_dir is None else str(session.config_dir),
                    session.created_at,
                ),
            )

    def get(self, session_id: str) -> Session:
        """The session of this full id. Raises `UnknownSession`."""
        with self._database.reading() as db:
            row = db.execute("SELECT * FROM sessions WHERE session_id = ?", (session_id,)).fetchone()
        if row is None:
            raise UnknownSession(session_id)
        return Session.of(row)

    def find(self, given: str) -> Session:
        """The one session whose id starts with `given`, in either case. Raises `UnknownSession`."""
        start = given.strip().lower()
        with self._database.reading() as db:
            rows = db.execute("SELECT * FROM sessions WHERE substr(session_id, 1, ?) = ? LIMIT 6", (len(start), start)).fetchall()
        if not start or len(rows) != 1:
            raise UnknownSession(given, tuple(row["session_id"] for row in rows) if start else ())
        return Session.of(rows[0])

    def all(self) -> tuple[Session, ...]:
        """Every session, the newest first."""
        with self._database.reading() as db:
            return tuple(Session.of(row) for row in db.execute("SELECT * FROM sessions ORDER BY created_at DESC, session_id"))
