"""One line into the FIFO of a headless, recorded before its first byte is there and after its last."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Final

from ccc_hookspecs.errors import CccError
from ccc_hookspecs.host.errors import HostError
from ccc_hookspecs.host.pipe import HalfWritten, NoReader, Pipe, PipeFull, input_of, user_line
from ccc_hookspecs.host.records import Head, Message
from ccc_hookspecs.host.releases import KEEPS_BLOCKS, is_before, last_writer
from ccc_hookspecs.host.settling import session_transcript_size, size_of
from ccc_hookspecs.host.spawn import transcript_of
from ccc_hookspecs.host.store import Store

_OWN_WANT: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""What this process lacks when it cannot open a FIFO, and not the one that reads it."""

_NO_INPUT: Final = "no input"
"""What stands for the id of a line that has none."""


class Refused(CccError):
    """The process took nothing of the line. The message says why."""


class Writer:
    """Every method is called with the session's lock held. `checkpoint` is called with the name of each step before it is taken."""

    def __init__(self, store: Store, checkpoint: Callable[[str], None]) -> None:
        self._store = store
        self._checkpoint = checkpoint

    def write(self, message: Message, head: Head, catch_up: str | None = None) -> bool:
        """Write a message, with these turns before it; False when only a part went in.

        Raises `Refused`, and `HostError` when this process could not even try.
        """
        one_block = catch_up is not None and self._takes_blocks_apart(message)
        line = user_line(message.message_id, message.text, catch_up, one_block=one_block)
        session = self._store.sessions.get(message.session_id)

        def intend() -> None:
            offsets = {"log_offset": size_of(head.log), "transcript_offset": session_transcript_size(session)}
            self._store.outbox.intend(message, head, **offsets)

        try:
            self._put(head, line, message.message_id, intend)
        except HalfWritten:
            return False
        self._store.outbox.wrote(message)
        self._checkpoint("written")
        return True

    def feed(self, line: bytes, head: Head) -> None:
        """Write a line that is no message. It is one of the head's inputs from before its first byte is there, unless it is no input.

        Raises ValueError for a line that Claude Code would end at, `Refused`, `HalfWritten` and `HostError` as `write` does.
        """
        given = input_of(line)
        noted = False

        def note() -> None:
            nonlocal noted
            if given is not None:
                # Only what a person would have said is acknowledged, by a result.
                offset = size_of(head.log) if b'"shouldQuery"' in line else None
                noted = self._store.heads.give(head.id, given, offset)

        try:
            self._put(head, line, _NO_INPUT if given is None else given.message_id, note)
        except Refused:
            if noted and given is not None:
                self._store.heads.take_back(head.id, given.message_id)
            raise

    def _put(self, head: Head, line: bytes, line_id: str, note: Callable[[], None]) -> None:
        """Write the whole line; `note` is called before its first byte is there."""
        pipe = _open(head)
        try:
            one_piece = pipe.make_room(len(line))
            self._checkpoint("intend")
            note()
            if not one_piece:
                self._store.heads.jam(head.id, True, line_id)
            self._checkpoint("write")
            pipe.write(line)
            self._checkpoint("wrote")
            if not one_piece:
                self._store.heads.jam(head.id, False)
        except (NoReader, PipeFull) as error:
            raise Refused(str(error)) from error
        except HalfWritten as error:
            self._store.journal.note("jammed", head.session_id, pid=head.pid, written=error.written)
            raise
        finally:
            pipe.close()

    def _takes_blocks_apart(self, message: Message) -> bool:
        """Whether the session's release would take two blocks apart."""
        release = self._store.heads.last_release(message.session_id)
        if release is None and (transcript := transcript_of(self._store.sessions.get(message.session_id))) is not None:
            release = last_writer(transcript)
        return is_before(release, KEEPS_BLOCKS)


def _open(head: Head) -> Pipe:
    try:
        return Pipe(head.fifo)
    except NoReader as error:
        raise Refused(str(error)) from error
    except OSError as error:
        if error.errno in _OWN_WANT:
            raise HostError(f"{head.fifo}: cannot be opened: {error.strerror}; what was kept stays kept") from error
        raise Refused(f"{head.fifo}: {error.strerror or error}") from error
