"""Writing one line into a headless's FIFO: all of it or nothing of it.

Claude Code ends at a line that is no JSON (all of eight releases measured) and two of them at an empty line, so half a line
cannot be mended by whatever is written after it.
"""

from __future__ import annotations

import array
import errno
import fcntl
import json
import os
import select
import termios
import time
from pathlib import Path
from typing import Final

from ccc_hookspecs.claude.text import well_formed
from ccc_hookspecs.errors import CccError
from ccc_hookspecs.values import SentInput

_SET_SIZE: Final = getattr(fcntl, "F_SETPIPE_SZ", None)
_GET_SIZE: Final = getattr(fcntl, "F_GETPIPE_SZ", None)
ROOM_SECONDS: Final = 5.0
"""How long to wait until a process has read what lies before a long line."""
FINISH_SECONDS: Final = 60.0
"""How long to go on with a line that was begun."""


class NoReader(CccError):
    """Nobody has the FIFO open for reading: the process is gone or going, and never took the whole line."""


class PipeFull(CccError):
    """The process does not read, and there is no room for the line. Nothing of it was written."""


class HalfWritten(CccError):
    """A part of the line is in the pipe, and the process does not read it. Attribute: `written`, in bytes."""

    def __init__(self, written: int) -> None:
        super().__init__(f"the process stopped reading after {written} bytes of a line")
        self.written = written


def user_line(message_id: str, text: str, catch_up: str | None = None, *, one_block: bool = False) -> bytes:
    """The line that gives a text to Claude Code, under this id; `catch_up` goes before it as a block of its own, or with `one_block` in
    the text's.

    ASCII only. Half a surrogate pair is replaced: once it is in the transcript, releases up to 2.1.168 get no answer in this session
    any more.
    """
    parts = [well_formed(part) for part in (catch_up, text) if part is not None]
    blocks = [{"type": "text", "text": part} for part in (["\n\n".join(parts)] if one_block else parts)]
    line = {"type": "user", "uuid": message_id, "message": {"role": "user", "content": blocks}}
    return json.dumps(line, separators=(",", ":")).encode("ascii") + b"\n"


def input_of(line: bytes) -> SentInput | None:
    """The input that a line is which is about to be written; None for one that is none, such as a control request.

    Raises ValueError when it is not one line of a JSON object with its line break.
    """
    if not line.endswith(b"\n") or line.count(b"\n") > 1:
        raise ValueError("a FIFO line ends in its only line break")
    try:
        return SentInput.of_line(line, time.time())
    except RecursionError as error:
        raise ValueError("a FIFO line is nested too deep to be read") from error


class Pipe:
    """A FIFO opened for writing. The caller holds the session's lock, so nobody else writes; `close` it afterwards.

    Raises `NoReader`, or OSError when the FIFO cannot be opened at all.
    """

    def __init__(self, fifo: Path) -> None:
        self._fifo = fifo
        try:
            self._fd = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ENXIO, errno.ENOENT):
                raise NoReader(f"{fifo}: nobody reads it") from error
            raise

    def close(self) -> None:
        """Close it. Harmless when repeated."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def make_room(self, length: int) -> bool:
        """Have the pipe hold a line of so many bytes, if the system allows, and wait until it is empty enough.

        True: the line goes in with one write that a crash of the writer cannot split, also when the process does not read.
        False: it goes in as it is read. Raises `PipeFull`.
        """
        if length <= select.PIPE_BUF:
            return True
        fits = self._grow(length)
        end = time.monotonic() + ROOM_SECONDS
        while self.unread() > 0:
            if time.monotonic() >= end:
                raise PipeFull("the process does not read its FIFO")
            time.sleep(0.01)
        return fits

    def unread(self) -> int:
        """Bytes that lie in the pipe."""
        count = array.array("i", [0])
        fcntl.ioctl(self._fd, termios.FIONREAD, count)
        return count[0]

    def write(self, line: bytes) -> None:
        """Write a whole line. Raises `NoReader`, `PipeFull`, `HalfWritten`."""
        try:
            self._write(line)
        except BrokenPipeError as error:
            raise NoReader(f"{self._fifo}: its reader is gone") from error

    def _grow(self, length: int) -> bool:
        if _SET_SIZE is None or _GET_SIZE is None:
            return False
        if fcntl.fcntl(self._fd, _GET_SIZE) < length:
            try:
                fcntl.fcntl(self._fd, _SET_SIZE, length)
            except OSError:
                # Over the largest size, over this user's limit for all pipes, or unread bytes are in the way.
                return False
        return True

    def _write(self, line: bytes) -> None:
        try:
            written = os.write(self._fd, line)
        except BlockingIOError as error:
            raise PipeFull("the process does not read its FIFO") from error
        end = time.monotonic() + FINISH_SECONDS
        while written < len(line):
            if not self._wait_writable(end):
                raise HalfWritten(written)
            written += os.write(self._fd, line[written : written + select.PIPE_BUF])

    def _wait_writable(self, end: float) -> bool:
        poller = select.poll()
        poller.register(self._fd, select.POLLOUT)
        return bool(poller.poll(max(0.0, end - time.monotonic()) * 1000))
