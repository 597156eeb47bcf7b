"""The journal: what the host did, without conversation text."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any, Final

from ccc_hookspecs.host.database import Database

KEPT: Final = 5000
"""How many entries are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing done. `at`: seconds since the epoch. `what`: a word such as `spawned`. `detail`: its particulars."""

    at: float
    what: str
    session_id: str | None
    detail: dict[str, Any]


class Journal:
    """The table `journal`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(self, what: str, session_id: str | None = None, **detail: Any) -> None:
        """Add an entry. `detail` must be JSON and hold no conversation text."""
        with self._database.writing() as db:
            db.execute(
                "INSERT INTO journal (at, what, session_id, detail) VALUES (?, ?, ?, ?)",
                (time.time(), what, session_id, json.dumps(detail)),
            )
            db.execute("DELETE FROM journal WHERE id <= (SELECT MAX(id) FROM journal) - ?", (KEPT,))

    def entries(self, session_id: str | None = None, *, what: str | None = None) -> tuple[Entry, ...]:
        """What was done, oldest first, of all sessions or of one, of all kinds or of one."""
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT * FROM journal WHERE (:session IS NULL OR session_id = :session) AND (:what IS NULL OR what = :what) ORDER BY id",
                {"session": session_id, "what": what},
            )
            return tuple(
                Entry(at=row["at"], what=row["what"], session_id=row["session_id"], detail=json.loads(row["detail"])) for row in rows
            )
