"""Following a JSONL file as it grows: a session's transcript or a headless's stdout log.

Everything is tolerant of what is found on disk. Nothing here raises because of a file's absence, rights or content:
such is an answer of its own (`Growth`), None, or nothing to iterate over.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, TypeAlias

from ccc_hookspecs.claude._lines import CHUNK, MAX_LINE, Line, Lines, open_regular, read_at, split_lines
from ccc_hookspecs.claude._parse import Record, parse
from ccc_hookspecs.claude._search import find, find_in, line_at, lines_backward, rfind

__all__ = ["Growth", "JsonlFollower", "Line", "Lines", "Place", "Record", "find", "line_at", "lines_backward", "parse", "rfind"]

Growth: TypeAlias = Literal["missing", "unreadable", "unchanged", "grown", "replaced"]
"""What `JsonlFollower.poll` saw.

`missing`: no file there. `unreadable`: not a regular file, or it may not be opened. `unchanged`: no bytes that `lines` has not
looked at. `grown`: there are such. `replaced`: another file, or one whose content before `offset` is no longer what was read.
"""

_FINGERPRINT = 64
_PLACE_FINGERPRINT = 4096


@dataclass(frozen=True, slots=True)
class Place:
    """How far a file was read, and what tells that it still is that file: see `JsonlFollower.place`.

    `fingerprint` is a digest of the bytes at the start of the file and of those before `offset`.
    """

    device: int
    inode: int
    offset: int
    skipped: int
    fingerprint: str


class JsonlFollower:
    """Gives each complete line of a growing file once, in order.

    `path`: the file, which need not exist yet. `start`: the position of the first byte of interest, the beginning of a line.
    `max_line`: longer lines, in bytes, are stepped over and counted in `skipped`.

    After `poll` answered `replaced` the follower stands at the beginning of the new content: whatever was concluded from
    earlier lines is void, and `lines` gives all of them. No file stays open between calls. Not for use by several threads at once.

    Attributes: `offset`, the position of the first byte not yet given out. `size` and `mtime_ns` of the file as last seen
    (-1 before it was). `skipped`, the number of lines stepped over.
    """

    def __init__(self, path: str | os.PathLike[str], *, start: int = 0, max_line: int = MAX_LINE) -> None:
        self.path = os.fspath(path)
        self.offset = start
        self.size = -1
        self.mtime_ns = -1
        self.skipped = 0
        self._max_line = max_line
        self._file: tuple[int, int] | None = None
        self._mark: tuple[int, bytes] | None = None
        self._searched = start

    @classmethod
    def resume(cls, path: str | os.PathLike[str], place: Place) -> JsonlFollower | None:
        """A follower that goes on from a place that another one told; None when the file is not, or may not be, the one it was told of."""
        follower = cls(path, start=place.offset)
        follower.skipped = place.skipped
        return follower if follower.place() == place else None

    def place(self) -> Place | None:
        """How far the file was read, to go on from later, in another process too; None when that cannot be told for sure."""
        fd = open_regular(self.path)
        if fd is None:
            return None
        try:
            seen = os.fstat(fd)
            if self._adopt(fd) == "replaced":
                return None
            return Place(seen.st_dev, seen.st_ino, self.offset, self.skipped, _digest(fd, self.offset))
        finally:
            os.close(fd)

    @property
    def pending(self) -> int:
        """Bytes after `offset` as last seen: after `lines` has run to its end, those of an unfinished last line."""
        return max(0, self.size - self.offset)

    def poll(self) -> Growth:
        """Look at the file: one `stat`, and when it changed one short read to see that it is still the same."""
        try:
            seen = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return "missing"
        except (OSError, ValueError):
            return "unreadable"
        if not stat.S_ISREG(seen.st_mode):
            return "unreadable"
        if (seen.st_dev, seen.st_ino) == self._file and seen.st_size == self.size and seen.st_mtime_ns == self.mtime_ns:
            return self._growth()
        return self._look_inside()

    def lines(self, limit: int | None = None) -> Iterator[Line]:
        """The complete lines after `offset`, at most `limit`; `offset` moves with each one that is given out.

        Reads to the end that the file has when it is opened, a quarter of a MiB at a time. Ends early, without an error, when the file is
        no longer the one that was followed; the next `poll` then says so.
        """
        if limit is not None and limit <= 0:
            return
        fd = open_regular(self.path)
        if fd is None:
            return
        try:
            if self._adopt(fd) != "replaced":
                yield from self._lines_of(fd, limit)
        finally:
            os.close(fd)

    def chunks(self) -> Iterator[Lines]:
        """As `lines`, but many at a time, for a reader who need not see each; `offset` moves with each chunk that is given out."""
        fd = open_regular(self.path)
        if fd is None:
            return
        try:
            if self._adopt(fd) != "replaced":
                yield from self._chunks_of(fd)
        finally:
            os.close(fd)

    def _look_inside(self) -> Growth:
        fd = open_regular(self.path)
        if fd is None:
            return "unreadable" if os.path.lexists(self.path) else "missing"
        try:
            growth = self._adopt(fd)
            if growth == "replaced":
                self._restart()
                self._adopt(fd)
            return growth
        finally:
            os.close(fd)

    def _adopt(self, fd: int) -> Growth:
        """Take note of the open file's state, unless it is another file than the one followed: then nothing changes."""
        seen = os.fstat(fd)
        identity = (seen.st_dev, seen.st_ino)
        if self._file not in (None, identity) or seen.st_size < self.offset or not self._holds_mark(fd):
            return "replaced"
        if self._mark is None:
            self._mark = (self.offset, read_at(fd, max(0, self.offset - _FINGERPRINT), min(self.offset, _FINGERPRINT)))
        self._file, self.size, self.mtime_ns = identity, seen.st_size, seen.st_mtime_ns
        if not self.offset <= self._searched <= self.size:
            self._searched = self.offset
        return self._growth()

    def _growth(self) -> Growth:
        return "grown" if self.size > max(self._searched, self.offset) else "unchanged"

    def _holds_mark(self, fd: int) -> bool:
        if self._mark is None:
            return True
        position, content = self._mark
        return read_at(fd, position - len(content), len(content)) == content

    def _restart(self) -> None:
        self.offset = self._searched = 0
        self._file = self._mark = None

    def _lines_of(self, fd: int, limit: int | None) -> Iterator[Line]:
        given = 0
        while chunk := self._next_chunk(fd):
            base = end = self.offset
            try:
                for line in split_lines(chunk, base):
                    self.offset = end = line.end
                    yield line
                    given += 1
                    if given == limit or self.offset != end:  # moved: somebody polled or iterated in between
                        return
            finally:
                if self.offset == end:
                    self._mark = (end, chunk[max(0, end - base - _FINGERPRINT) : end - base])

    def _chunks_of(self, fd: int) -> Iterator[Lines]:
        while chunk := self._next_chunk(fd):
            base, length = self.offset, chunk.rfind(b"\n") + 1
            self.offset = end = base + length
            self._mark = (end, chunk[max(0, length - _FINGERPRINT) : length])
            yield Lines(base, chunk[:length])
            if self.offset != end:  # moved: somebody polled or iterated in between
                return

    def _next_chunk(self, fd: int) -> bytes:
        """Bytes from `offset` on that hold a complete line; empty when there is none left."""
        while self.offset < self.size:
            chunk = read_at(fd, self.offset, min(CHUNK, self.size - self.offset))
            if b"\n" in chunk:
                return chunk
            newline = find_in(fd, b"\n", max(self._searched, self.offset + len(chunk)), self.size)
            if newline is None:
                break
            if newline - self.offset <= self._max_line:
                chunk = read_at(fd, self.offset, newline + 1 - self.offset)
                return chunk if b"\n" in chunk else b""
            self._step_over(fd, newline + 1)
        self._searched = max(self.offset, self.size)
        return b""

    def _step_over(self, fd: int, end: int) -> None:
        self.skipped += 1
        self._mark = (end, read_at(fd, end - _FINGERPRINT, _FINGERPRINT))
        self.offset = end


def _digest(fd: int, offset: int) -> str:
    length = min(offset, _PLACE_FINGERPRINT)
    return sha256(read_at(fd, 0, length) + read_at(fd, offset - length, length)).hexdigest()
