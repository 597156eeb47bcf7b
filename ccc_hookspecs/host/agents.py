"""The headless processes of a host: started, found again, ended."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from ccc_hookspecs.claude.jsonl import lines_backward, parse
from ccc_hookspecs.host.liveness import presence, wait_gone
from ccc_hookspecs.host.records import Head, Session
from ccc_hookspecs.host.sight import in_sight, presence_of
from ccc_hookspecs.host.spawn import MARK, Spawner
from ccc_hookspecs.host.store import Store
from ccc_hookspecs.processes import start_time

log = logging.getLogger(__name__)

END_SECONDS: Final = 5.0
"""How long a process that a person had ended may take after SIGTERM, and again after SIGKILL."""

KEPT_SECONDS: Final = 7 * 86400.0
"""How long the logs of ended heads, and what was delivered, are kept."""

_LAST_WORDS: Final = 200


class Agents:
    """What is known of the heads, held against the process table. `claude`: started instead of each session's own program."""

    def __init__(self, store: Store, checkpoint: Callable[[str], None], *, claude: str | None = None) -> None:
        self._store = store
        self.spawner = Spawner(store.heads_dir, store.heads, checkpoint, claude=claude)

    def known(self, session_id: str) -> Head | None:
        """The session's live head. Changes nothing, so any thread may ask at any time."""
        head = self._store.heads.live(session_id)
        return head if head is not None and head.pid is not None and presence_of(head) != "gone" else None

    def live(self, session_id: str) -> Head | None:
        """As `known`, with the session's lock held: what proves to be gone is cleared away, and an unfinished spawn is finished.

        One that is not in sight may have no pid.
        """
        self.spawner.reap()
        head = self._store.heads.live(session_id)
        if head is not None and presence_of(head) == "gone":
            self.gone(head)
            return None
        return self._find_again(head) if head is not None and head.pid is None and in_sight(head) else head

    def spawn(self, session: Session) -> Head:
        """Start a head on a session that has none, with its lock held. Raises `ClaudeError`."""
        head = self.spawner.spawn(session)
        self._store.journal.note("spawned", session.session_id, pid=head.pid, resumed=head.resumed)
        return head

    def gone(self, head: Head) -> None:
        """Clear away what belongs to a head whose process is gone. Harmless when repeated."""
        self.spawner.remove(head)
        self._store.journal.note("ended", head.session_id, pid=head.pid)

    def released(self, session_id: str, pid: int, started: float | None) -> None:
        """A plugin ended this process. Harmless when repeated, or when it is not the session's head."""
        head = self._store.heads.live(session_id)
        if head is not None and in_sight(head) and head.pid == pid and head.start_time == started:
            self.gone(head)

    def end(self, head: Head, reason: str) -> bool:
        """End a head because a person said so, whatever it does; True when it is gone. Nothing else in the host signals a process.

        One that is not in sight is forgotten, and not signalled.
        """
        self._store.journal.note("overruled", head.session_id, pid=head.pid, reason=reason)
        if not in_sight(head):
            self.gone(head)
            return True
        if head.pid is None:
            return False
        for number in (signal.SIGTERM, signal.SIGKILL):
            if presence(head.pid, head.start_time) == "alive":
                _signal(head.pid, number)
            self.spawner.reap()
            if wait_gone(head.pid, head.start_time, END_SECONDS):
                self.gone(head)
                return True
        return False

    def forget_old(self) -> None:
        """Drop what nothing needs any more: old logs, and the record of old deliveries."""
        before = time.time() - KEPT_SECONDS
        self._store.outbox.forget_before(before)
        for head in self._store.heads.forget_before(before):
            head.log.unlink(missing_ok=True)
        self._sweep()

    def _sweep(self) -> None:
        """Remove what a host that was killed left behind: FIFOs of heads that are not live, logs of heads that are forgotten."""
        # Looked for before the rows are, which are there before their files.
        found = list(self._store.heads_dir.glob("*.fifo")), list(self._store.heads_dir.glob("*.log"))
        for files, known in zip(found, self._store.heads.files(), strict=True):
            for path in files:
                if path.name not in known:
                    path.unlink(missing_ok=True)

    def _find_again(self, head: Head) -> Head | None:
        """A host died between the start of this process and the record of its pid: find it by its mark, else forget it."""
        for pid in _marked(head.mark):
            log.info("session %s: process %d, whose start was not recorded, is found again", head.session_id, pid)
            return self._store.heads.started(head, pid, start_time(pid))
        self.spawner.remove(head)
        return None


def last_words(log_file: Path) -> str | None:
    """What a `claude` that could not go on said last: a line that is no event, or the errors of a last result. Shortened; or None."""
    for line in lines_backward(log_file):
        text = line.data.decode("utf-8", "replace").strip()
        if text and not text.startswith("{"):
            return text[:_LAST_WORDS]
        for record in parse(line):
            errors = record.data.get("errors")
            if record.data.get("type") == "result" and isinstance(errors, list) and errors:
                return str(errors[0])[:_LAST_WORDS]
    return None


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        # The head was started as the leader of a group, in which its MCP servers are; SIGTERM it hands on itself.
        os.killpg(pid, number) if number == signal.SIGKILL and os.getpgid(pid) == pid else os.kill(pid, number)


def _marked(mark: str) -> Iterator[int]:
    import psutil

    wanted = f"{MARK}={mark}"
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            environ = process.environ()
            # Of a head's own children, which inherit the mark, the head is the one that came first.
            if environ.get(MARK) == mark and process.pid == os.getsid(process.pid):
                yield process.pid
    log.debug("%s: looked for", wanted)
