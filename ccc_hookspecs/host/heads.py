"""The headless processes a host spawned."""

from __future__ import annotations

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

    def jam(self, head_id: int, jammed: bool) -> None:
        """Note that half a message may be in its FIFO, or that none is."""
        with self._database.writing() as db:
            db.execute("UPDATE headless SET jammed = ? WHERE id = ?", (jammed, head_id))

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
            rows = db.execute("SELECT message_id, sent_at FROM inputs WHERE head_id = ? ORDER BY id", (head.id,))
            return head.headless(tuple(SentInput(message_id=row["message_id"], sent_at=row["sent_at"]) for row in rows))

    def all_headless(self, wanted: Callable[[Head], bool]) -> tuple[Headless, ...]:
        """As `headless`, of every live head whose process was started and that is `wanted`, with two queries in all."""
        sent: dict[int, list[SentInput]] = defaultdict(list)
        with self._database.reading() as db:
            heads = [Head.of(row) for row in db.execute("SELECT * FROM headless WHERE ended_at IS NULL AND pid IS NOT NULL")]
            rows = db.execute(
                "SELECT head_id, message_id, sent_at FROM inputs"
                " WHERE head_id IN (SELECT id FROM headless WHERE ended_at IS NULL) ORDER BY id"
            )
            for row in rows:
                sent[row["head_id"]].append(SentInput(message_id=row["message_id"], sent_at=row["sent_at"]))
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
