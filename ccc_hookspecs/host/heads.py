"""The headless processes a host spawned."""

from __future__ import annotations

import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable

from ccc_hookspecs.host.database import Database
from ccc_hookspecs.host.records import Head
from ccc_hookspecs.values import Headless, SentInput


class Heads:
    """The tables `headless` and `inputs`. A head is live until `ended` is called for it; a session has one live head at most."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, head: Head) -> Head:
        """Keep a head whose process is about to be started; returns it with its id. Raises `sqlite3.IntegrityError` beside a live one."""
        values = (
            head.session_id,
            str(head.fifo),
            str(head.log),
            str(head.cwd),
            None if head.config_dir is None else str(head.config_dir),
            head.spawned_at,
            head.transcript_size,
            head.resumed,
            head.mark,
            head.boot,
            head.namespace,
        )
        with self._database.writing() as db:
            done = db.execute(
                "INSERT INTO headless (session_id, fifo, log, cwd, config_dir, spawned_at, transcript_size, resumed, mark, boot, namespace)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *",
                values,
            )
            return Head.of(done.fetchone())

    def started(self, head: Head, pid: int, start_time: float | None) -> Head:
        """Keep the identity of a head's process; returns the head with it."""
        with self._database.writing() as db:
            done = db.execute("UPDATE headless SET pid = ?, start_time = ? WHERE id = ? RETURNING *", (pid, start_time, head.id))
            return Head.of(done.fetchone())

    def ended(self, head_id: int) -> bool:
        """The process is gone. Harmless when repeated: True the first time."""
        with self._database.writing() as db:
            done = db.execute("UPDATE headless SET ended_at = ? WHERE id = ? AND ended_at IS NULL", (time.time(), head_id))
            return done.rowcount > 0

    def jam(self, head_id: int, jammed: bool, line_id: str | None = None) -> None:
        """Note that half a line may be in its FIFO, that of this id, or that none is."""
        with self._database.writing() as db:
            db.execute("UPDATE headless SET jammed = ?, jammed_by = ? WHERE id = ?", (jammed, line_id, head_id))

    def give(self, head_id: int, given: SentInput, log_offset: int | None) -> bool:
        """Note an input that is no message and is about to be written to this head; False when it was noted before.

        `log_offset`: where the head's log ends, when a result will stand behind that.
        """
        values = (head_id, given.message_id, given.sent_at, given.history, log_offset)
        with self._database.writing() as db:
            done = db.execute(
                "INSERT OR IGNORE INTO inputs (head_id, message_id, sent_at, history, log_offset) VALUES (?, ?, ?, ?, ?)", values
            )
            return done.rowcount > 0

    def take_back(self, head_id: int, message_id: str) -> None:
        """Nothing of this input reached the head."""
        with self._database.writing() as db:
            db.execute("DELETE FROM inputs WHERE head_id = ? AND message_id = ?", (head_id, message_id))

    def fed_at(self, head_id: int, since: float) -> int | None:
        """Where the head's log ended when it was given the last input that is no message and has a result; None when there is none since
        then.
        """
        with self._database.reading() as db:
            row = db.execute("SELECT max(log_offset) AS last FROM inputs WHERE head_id = ? AND sent_at >= ?", (head_id, since)).fetchone()
        return None if row["last"] is None else int(row["last"])

    def says_release(self, head_id: int, release: str) -> None:
        """Note which release of Claude Code it is."""
        with self._database.writing() as db:
            db.execute("UPDATE headless SET release = ? WHERE id = ? AND release IS NOT ?", (release, head_id, release))

    def last_release(self, session_id: str) -> str | None:
        """The release that the session's heads said last to be of."""
        with self._database.reading() as db:
            found = db.execute(
                "SELECT release FROM headless WHERE session_id = ? AND release IS NOT NULL ORDER BY id DESC", (session_id,)
            ).fetchone()
        return None if found is None else found["release"]

    def get(self, head_id: int) -> Head | None:
        """A head, live or ended; None when it was forgotten."""
        with self._database.reading() as db:
            row = db.execute("SELECT * FROM headless WHERE id = ?", (head_id,)).fetchone()
        return None if row is None else Head.of(row)

    def live(self, session_id: str) -> Head | None:
        """The head of a session that is believed alive."""
        with self._database.reading() as db:
            row = db.execute("SELECT * FROM headless WHERE session_id = ? AND ended_at IS NULL", (session_id,)).fetchone()
        return None if row is None else Head.of(row)

    def all_live(self) -> tuple[Head, ...]:
        """Every head that is believed alive, also those whose spawn is under way."""
        with self._database.reading() as db:
            return tuple(Head.of(row) for row in db.execute("SELECT * FROM headless WHERE ended_at IS NULL ORDER BY id"))

    def headless(self, head: Head) -> Headless:
        """The value that plugins get. Raises ValueError while the spawn is under way."""
        with self._database.reading() as db:
            rows = db.execute("SELECT * FROM inputs WHERE head_id = ? ORDER BY id", (head.id,))
            return head.headless(tuple(_input(row) for row in rows))

    def all_headless(self, wanted: Callable[[Head], bool]) -> tuple[Headless, ...]:
        """As `headless`, of every live head whose process was started and that is `wanted`, with two queries in all."""
        sent: dict[int, list[SentInput]] = defaultdict(list)
        with self._database.reading() as db:
            heads = [Head.of(row) for row in db.execute("SELECT * FROM headless WHERE ended_at IS NULL AND pid IS NOT NULL")]
            rows = db.execute("SELECT * FROM inputs WHERE head_id IN (SELECT id FROM headless WHERE ended_at IS NULL) ORDER BY id")
            for row in rows:
                sent[row["head_id"]].append(_input(row))
        return tuple(head.headless(tuple(sent[head.id])) for head in heads if wanted(head))

    def files(self) -> tuple[frozenset[str], frozenset[str]]:
        """The names of the FIFOs of the heads that are believed alive, and of the logs of all that are known."""
        with self._database.reading() as db:
            heads = [Head.of(row) for row in db.execute("SELECT * FROM headless")]
        return frozenset(head.fifo.name for head in heads if head.ended_at is None), frozenset(head.log.name for head in heads)

    def forget_before(self, moment: float) -> tuple[Head, ...]:
        """Drop the heads that ended before `moment` and that no open message was given to; returns them, for their files to be removed."""
        with self._database.writing() as db:
            done = db.execute(
                "DELETE FROM headless WHERE ended_at < ?"
                " AND id NOT IN (SELECT head_id FROM outbox WHERE state != 'delivered' AND head_id IS NOT NULL) RETURNING *",
                (moment,),
            )
            heads = tuple(Head.of(row) for row in done.fetchall())
            db.executemany("DELETE FROM inputs WHERE head_id = ?", [(head.id,) for head in heads])
            return heads


def _input(row: sqlite3.Row) -> SentInput:
    return SentInput(message_id=row["message_id"], sent_at=row["sent_at"], history=bool(row["history"]))
