"""Physical lines of a JSONL file, and the raw reads that the readers of this package share."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

CHUNK = 1 << 18
"""Bytes read at a time: few enough to stay in the processor's cache, and in memory that is used again and again."""

MAX_LINE = 64 << 20
"""Lines longer than this are not held in memory."""

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Line:
    r"""One complete physical line: it ended with `b"\n"`, the only line separator there is.

    `offset` is the position of its first byte in the file, `end` that of the byte after its newline. `data` is its
    content without the newline, a carriage return before it, NUL bytes (a crash leaves runs of them) and, at the start
    of the file, a byte order mark.
    """

    offset: int
    end: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Lines:
    r"""Some complete lines on end: `data`, which stands at `offset` in the file and ends with `b"\n"`. Iterating gives each as a `Line`."""

    offset: int
    data: bytes

    @property
    def plain(self) -> bool:
        """Whether every line is, byte for byte, what `Line.data` would hold of it."""
        return b"\0" not in self.data and b"\r" not in self.data and not (self.offset == 0 and self.data.startswith(_BOM))

    def __iter__(self) -> Iterator[Line]:
        return split_lines(self.data, self.offset)


def clean(piece: bytes, offset: int) -> bytes:
    """`piece`, the bytes of a line that starts at `offset`, as `Line.data` holds them."""
    piece = piece.replace(b"\0", b"").rstrip(b"\r")
    return piece.removeprefix(_BOM) if offset == 0 else piece


def split_lines(chunk: bytes, base: int) -> Iterator[Line]:
    """The complete lines of `chunk`, which starts at position `base` of the file; what follows its last newline is left out."""
    pieces = chunk.split(b"\n")
    del pieces[-1]
    dirty = base == 0 or b"\r" in chunk or b"\0" in chunk
    for piece in pieces:
        end = base + len(piece) + 1
        yield Line(base, end, clean(piece, base) if dirty else piece)
        base = end


def open_regular(path: str) -> int | None:
    """A descriptor of the regular file at `path`, or None when there is none or it cannot be opened. Never blocks."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError):
        return None
    try:
        regular = stat.S_ISREG(os.fstat(fd).st_mode)
    except OSError:
        regular = False
    if not regular:
        os.close(fd)
        return None
    return fd


def read_at(fd: int, offset: int, length: int) -> bytes:
    """`length` bytes from `offset`; fewer when the file ends before or cannot be read on."""
    parts = []
    while length > 0:
        try:
            part = os.pread(fd, min(length, CHUNK), offset)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
        offset += len(part)
        length -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
