"""What became of a message that was written: delivered, still on its way, or to be written again."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Final

from ccc_hookspecs.host.agents import last_words
from ccc_hookspecs.host.errors import HostError
from ccc_hookspecs.host.proof import Watch
from ccc_hookspecs.host.records import LONGEST_PAUSE, Head, Message, Session
from ccc_hookspecs.host.sight import presence_of
from ccc_hookspecs.host.spawn import transcript_of
from ccc_hookspecs.host.store import Store
from ccc_hookspecs.host.terminals import Terminal

log = logging.getLogger(__name__)

ATTEMPTS: Final = 3
"""How many processes may end without taking a message before it is left alone."""

START_SECONDS: Final = 300.0
"""How long it is tried to start a process before the message is left alone."""

FIRST_PAUSE: Final = 0.5
"""Seconds until that is tried for the second time; later pauses are as long as it has been tried."""

NO_CONVERSATION: Final = "No conversation found"
"""What `claude --resume` says when it cannot read the session; trying again would change nothing."""


class Settling:
    """Looks after written messages. Every method is called with the session's lock held."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watches: dict[str, tuple[tuple[object, ...], Watch]] = {}
        """By session: only the first message of one is ever looked after."""

    def settle(self, message: Message) -> Message:
        """The message as it stands now, when it was `written` before; any other is returned as it is."""
        if message.state != "written":
            return message
        if (settled := self._look(message)) is not None:
            return settled
        head = self._head(message)
        if self._holder_lives(message, head):
            if not message.wrote and message.terminal is None and head is not None and not head.jammed:
                # A host died between the record and the write, or right after. Written again under the same id to the same
                # process, it is dropped there if it had arrived (measured on eight releases).
                return self._store.outbox.requeue(message, counts=False, reached=False)
            return message
        # What it wrote last, it may have written after the first look.
        return self.proven(message) or self._give_back(message, head)

    def proven(self, message: Message) -> Message | None:
        """The message as delivered, when that is proven by now: also one that is to be written again.

        Raises `HostError` when it is not, but a file that may prove it cannot be read: written again, it might be there twice.
        """
        if message.head_id is None and message.terminal is None:
            return None
        watch = self._watch(message)
        delivered = self._look(message)
        if delivered is None and watch.blind is not None:
            raise HostError(f"{watch.blind}: cannot be read, and may show that message {message.message_id} arrived; it waits for that")
        return delivered

    def _look(self, message: Message) -> Message | None:
        watch = self._watch(message)
        proof = watch.look()
        if watch.release is not None and message.head_id is not None:
            self._store.heads.says_release(message.head_id, watch.release)
        if proof is None:
            return None
        self._watches.pop(message.session_id, None)
        if (head := self._head(message)) is not None and head.jammed and head.jammed_by in (None, message.message_id):
            # All of it arrived, though a host that was killed could not note that.
            self._store.heads.jam(head.id, False)
        self._store.journal.note("delivered", message.session_id, message_id=message.message_id, proof=proof)
        return self._store.outbox.delivered(message, proof)

    def _watch(self, message: Message) -> Watch:
        key = (message.message_id, message.head_id, message.terminal, message.log_offset, message.transcript_offset)
        known = self._watches.get(message.session_id)
        if known is None or known[0] != key:
            session = self._store.sessions.get(message.session_id)
            known = (key, Watch(message, self._head(message), partial(transcript_of, session)))
            self._watches[message.session_id] = known
        return known[1]

    def forget_all_but(self, session_ids: Collection[str]) -> None:
        """Other processes may have settled what was looked after here: keep only what belongs to these sessions. Needs no lock."""
        for session_id in [known for known in list(self._watches) if known not in session_ids]:
            self._watches.pop(session_id, None)

    def _head(self, message: Message) -> Head | None:
        return None if message.head_id is None else self._store.heads.get(message.head_id)

    def _holder_lives(self, message: Message, head: Head | None) -> bool:
        if message.terminal is not None:
            return Terminal.of_key(message.terminal).may_be_on(self._store.sessions.get(message.session_id))
        return head is not None and presence_of(head) != "gone"

    def _give_back(self, message: Message, head: Head | None) -> Message:
        words = None if head is None else last_words(head.log)
        return self.owed(message, words or "the process it was given to ended without taking it")

    def owed(self, message: Message, error: str) -> Message:
        """Nobody took the message, and `error` says why: it is to be written again under its id, unless that has no prospect."""
        log.info("session %s: message %s is owed again", message.session_id, message.message_id, extra={"ccc_session": message.session_id})
        message = self._store.outbox.requeue(message, error)
        self._store.journal.note("owed", message.session_id, message_id=message.message_id, attempts=message.attempts)
        if message.attempts >= ATTEMPTS or error.startswith(NO_CONVERSATION):
            return self._store.outbox.fail(message, error)
        return message

    def unstarted(self, message: Message, error: str) -> Message:
        """No process could be started for it, as while Claude Code is updated: that is tried again after a pause, for some minutes."""
        now = time.time()
        since = now if _tried_anew(message, now) else message.unstarted_since or now
        log.info("session %s: not started: %s", message.session_id, error, extra={"ccc_session": message.session_id})
        if now - since >= START_SECONDS:
            return self._store.outbox.fail(message, error)
        pause = min(max(FIRST_PAUSE, now - since), LONGEST_PAUSE)
        return self._store.outbox.unstarted(message, error, since=since, retry_at=now + pause)


def _tried_anew(message: Message, now: float) -> bool:
    """Whether this is the first try to start a process for it, or the first after a time in which nobody tried, as while a laptop slept."""
    since, due = message.unstarted_since, message.retry_at
    return since is None or since > now or due is None or now - due > 2 * LONGEST_PAUSE


def session_transcript_size(session: Session) -> int:
    """Bytes that the session's transcript has now, 0 when it has none."""
    path = transcript_of(session)
    return 0 if path is None else size_of(path)


def size_of(path: Path) -> int:
    """Bytes that a file has now, 0 when it is not there."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
