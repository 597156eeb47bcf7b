"""The outbox: every text from before its first byte is written until its delivery is proven."""

from __future__ import annotations

import time
import uuid
from typing import Any

from ccc_hookspecs.host.database import Database
from ccc_hookspecs.host.errors import UnknownMessage
from ccc_hookspecs.host.records import Head, Message, from_text, hold_json
from ccc_hookspecs.values import Hold


class Outbox:
    """The table `outbox`. Whoever changes a message that is not new holds its session's lock."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, session_id: str, text: str) -> Message:
        """Keep a text; it is on the disk when this returns."""
        values = (str(uuid.uuid4()), session_id, from_text(text), "queued", time.time())
        with self._database.writing() as db:
            done = db.execute(
                "INSERT INTO outbox (message_id, session_id, text, state, created_at) VALUES (?, ?, ?, ?, ?) RETURNING *",
                values,
            )
            return Message.of(done.fetchone())

    def get(self, message_id: str) -> Message | None:
        """A message, whatever became of it; None when it was dropped."""
        with self._database.reading() as db:
            row = db.execute("SELECT * FROM outbox WHERE message_id = ?", (message_id,)).fetchone()
        return None if row is None else Message.of(row)

    def last_taken(self, head_id: int) -> Message | None:
        """The last message that was delivered to this head, as long as it is remembered."""
        with self._database.reading() as db:
            row = db.execute(
                "SELECT * FROM outbox WHERE head_id = ? AND state = 'delivered' ORDER BY seq DESC LIMIT 1", (head_id,)
            ).fetchone()
        return None if row is None else Message.of(row)

    def open_of(self, session_id: str) -> tuple[Message, ...]:
        """The messages of a session that are not proven delivered, in order."""
        with self._database.reading() as db:
            rows = db.execute("SELECT * FROM outbox WHERE session_id = ? AND state != 'delivered' ORDER BY seq", (session_id,))
            return tuple(Message.of(row) for row in rows)

    def first_of(self, session_id: str) -> Message | None:
        """The first of them, which the others wait behind; None when there is none."""
        return next(iter(self.open_of(session_id)), None)

    def open(self) -> tuple[Message, ...]:
        """The messages of all sessions that are not proven delivered, in order."""
        with self._database.reading() as db:
            rows = db.execute("SELECT * FROM outbox WHERE state != 'delivered' ORDER BY seq")
            return tuple(Message.of(row) for row in rows)

    def hold(self, message: Message, hold: Hold, *, own: bool = False) -> Message:
        """It waits; the time of the first hold stays. `own`: for a reason of the host's own, not for a plugin's."""
        return self._set(message, state="held", hold=hold_json(hold, own=own), held_since=message.held_since or time.time())

    def intend(self, message: Message, head: Head, *, log_offset: int, transcript_offset: int) -> Message:
        """It is about to be written to this head, whose inputs it belongs to from now on. Raises `UnknownMessage` when it was dropped."""
        first = message.head_id is None and message.terminal is None
        log_offset = message.log_offset if message.head_id == head.id else log_offset
        with self._database.writing() as db:
            done = db.execute(
                "UPDATE outbox SET state = 'written', head_id = ?, terminal = NULL, wrote = 0, written_at = ?, log_offset = ?,"
                " transcript_offset = ?, hold = NULL, error = NULL WHERE seq = ? RETURNING *",
                (head.id, time.time(), log_offset, transcript_offset if first else message.transcript_offset, message.seq),
            )
            if (row := done.fetchone()) is None:
                raise UnknownMessage(message.message_id, "it was dropped")
            message = Message.of(row)
            db.execute(
                "INSERT OR IGNORE INTO inputs (head_id, message_id, sent_at) VALUES (?, ?, ?)", (head.id, message.message_id, time.time())
            )
        return message

    def intend_typed(self, message: Message, terminal: str, *, transcript_offset: int) -> Message:
        """It is about to be typed into this terminal."""
        given = {"head_id": None, "terminal": terminal, "wrote": 0, "written_at": time.time(), "transcript_offset": transcript_offset}
        return self._set(message, state="written", hold=None, error=None, **given)

    def wrote(self, message: Message) -> Message:
        """Its last byte is in the pipe."""
        return self._set(message, wrote=1)

    def delivered(self, message: Message, proof: str) -> Message:
        """Its delivery is proven, by `proof` in words. Its text is removed; the rest stays for a while, so that it can be looked up."""
        return self._set(message, state="delivered", proof=proof, delivered_at=time.time(), hold=None, error=None, text=b"")

    def forget_before(self, moment: float) -> None:
        """Drop what was delivered before `moment`."""
        with self._database.writing() as db:
            db.execute("DELETE FROM outbox WHERE state = 'delivered' AND delivered_at < ?", (moment,))

    def requeue(self, message: Message, error: str | None = None, *, counts: bool = True, reached: bool = True) -> Message:
        """It waits for its turn again. `counts`: a process was given it and did not take it. `reached`: False when it never got there."""
        if not reached and message.head_id is not None:
            with self._database.writing() as db:
                db.execute("DELETE FROM inputs WHERE head_id = ? AND message_id = ?", (message.head_id, message.message_id))
        return self._set(message, state="queued", wrote=0, error=error, attempts=message.attempts + counts)

    def unstarted(self, message: Message, error: str, *, since: float, retry_at: float) -> Message:
        """No process can be started for it, since then; it waits for its turn until that is tried again."""
        return self._set(message, state="queued", hold=None, error=error, unstarted_since=since, retry_at=retry_at)

    def started(self, message: Message) -> Message:
        """A process was started for it."""
        return self._set(message, error=None, unstarted_since=None, retry_at=None)

    def fail(self, message: Message, error: str) -> Message:
        """It is not tried again until somebody asks for it."""
        return self._set(message, state="failed", error=error)

    def retry(self, session_id: str) -> None:
        """Try the failed messages of a session again, and what rests at once."""
        with self._database.writing() as db:
            db.execute(
                "UPDATE outbox SET state = 'queued', attempts = 1, unstarted_since = NULL WHERE session_id = ? AND state = 'failed'",
                (session_id,),
            )
            db.execute(
                "UPDATE outbox SET retry_at = min(retry_at, ?) WHERE session_id = ? AND retry_at IS NOT NULL", (time.time(), session_id)
            )

    def waiting(self, given: str) -> Message:
        """The one message whose id starts with `given` and that is not proven delivered. Raises `UnknownMessage`."""
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT * FROM outbox WHERE substr(message_id, 1, ?) = ? AND state != 'delivered'", (len(given), given.lower())
            ).fetchall()
        if not given or len(rows) != 1:
            raise UnknownMessage(given, "not one that waits; `ccc-host list` shows those that do")
        return Message.of(rows[0])

    def drop(self, message: Message) -> Message:
        """Forget a message that no process may still take; returns it as it was. Raises `UnknownMessage`."""
        now = self.waiting(message.message_id)
        if now.state == "written" and not (now.terminal is not None and now.is_stuck):
            raise UnknownMessage(now.message_id, "it was given to a process already, so it cannot be dropped")
        with self._database.writing() as db:
            db.execute("DELETE FROM outbox WHERE seq = ?", (now.seq,))
        return now

    def _set(self, message: Message, **columns: Any) -> Message:
        assignments = ", ".join(f"{name} = ?" for name in columns)
        with self._database.writing() as db:
            row = db.execute(f"UPDATE outbox SET {assignments} WHERE seq = ? RETURNING *", (*columns.values(), message.seq)).fetchone()
        return message if row is None else Message.of(row)
