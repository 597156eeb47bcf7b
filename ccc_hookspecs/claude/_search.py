"""Finding bytes and lines in a file of any size, forward and backward, in constant memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ccc_hookspecs.claude._lines import CHUNK, MAX_LINE, Line, clean, open_regular, read_at, split_lines

PathLike = str | os.PathLike[str]


def find(path: PathLike, needle: bytes, *, start: int = 0, end: int | None = None) -> int | None:
    """Position of the first `needle` that lies wholly in `[start, end)`; None when there is none or the file cannot be read."""
    with _opened(path) as (fd, size):
        return find_in(fd, needle, start, _clip(end, size))


def rfind(path: PathLike, needle: bytes, *, end: int | None = None, start: int = 0) -> int | None:
    """Position of the last `needle` that lies wholly in `[start, end)`; None when there is none or the file cannot be read."""
    with _opened(path) as (fd, size):
        return rfind_in(fd, needle, start, _clip(end, size))


def line_at(path: PathLike, offset: int) -> Line | None:
    """The complete line that holds the byte at `offset`.

    None when that byte lies past the last newline (the line is not finished, or the file is shorter), when the line is
    longer than 64 MiB, and when the file cannot be read.
    """
    with _opened(path) as (fd, size):
        newline = find_in(fd, b"\n", offset, size) if 0 <= offset < size else None
        return None if newline is None else _line_before(fd, newline)


def lines_backward(path: PathLike, end: int | None = None) -> Iterator[Line]:
    """The complete lines that end at or before `end` (default: the end of the file), last one first.

    Lines longer than 64 MiB are left out. A file that cannot be read has no lines.
    """
    with _opened(path) as (fd, size):
        last = rfind_in(fd, b"\n", 0, _clip(end, size))
        stop = 0 if last is None else last + 1
        while stop > 0:
            lines, stop = _lines_before(fd, stop)
            yield from reversed(lines)


def _lines_before(fd: int, stop: int) -> tuple[list[Line], int]:
    """Some complete lines, in order, of which the last ends at `stop`, and where the first of them starts."""
    length = min(stop, CHUNK)
    base = stop - length
    chunk = read_at(fd, base, length)
    if len(chunk) < length:
        return [], 0
    first = 0 if base == 0 else chunk.find(b"\n") + 1
    if first < length:
        return list(split_lines(chunk[first:], base + first)), base + first
    line = _line_before(fd, stop - 1)
    previous = rfind_in(fd, b"\n", 0, stop - 1)
    return ([] if line is None else [line]), (0 if previous is None else previous + 1)


def find_in(fd: int, needle: bytes, start: int, end: int) -> int | None:
    """As `find`, in an open file."""
    position = max(0, start)
    buffer = _buffer(needle, end - position)
    while end - position >= len(needle):
        got = _fill(fd, buffer, position, end)
        found = buffer.find(needle, 0, got)
        if found >= 0:
            return position + found
        if got < len(needle):
            return None
        position += got - len(needle) + 1
    return None


def rfind_in(fd: int, needle: bytes, start: int, end: int) -> int | None:
    """As `rfind`, in an open file."""
    start = max(0, start)
    buffer = _buffer(needle, end - start)
    while end - start >= len(needle):
        position = max(start, end - len(buffer))
        got = _fill(fd, buffer, position, end)
        found = buffer.rfind(needle, 0, got)
        if found >= 0:
            return position + found
        if position == start:
            return None
        end = position + len(needle) - 1
    return None


def _buffer(needle: bytes, span: int) -> bytearray:
    """Room for a chunk and for a needle that begins at its end, no larger than the span to search."""
    return bytearray(max(0, min(CHUNK + len(needle) - 1, span)))


def _fill(fd: int, buffer: bytearray, position: int, end: int) -> int:
    """Read from `position` into `buffer`, not past `end`; the number of bytes read, 0 when the file cannot be read on."""
    want = min(len(buffer), end - position)
    got = 0
    with memoryview(buffer) as view:
        while got < want:
            try:
                count = os.preadv(fd, [view[got:want]], position + got)
            except OSError:
                return got
            if count == 0:
                return got
            got += count
    return got


def _line_before(fd: int, newline: int) -> Line | None:
    """The line whose newline is at that position; None when it is longer than `MAX_LINE`."""
    previous = rfind_in(fd, b"\n", newline - MAX_LINE - 1, newline)
    offset = previous + 1 if previous is not None else 0
    if newline - offset > MAX_LINE:
        return None
    return Line(offset, newline + 1, clean(read_at(fd, offset, newline - offset), offset))


def _clip(end: int | None, size: int) -> int:
    return size if end is None else min(end, size)


@contextmanager
def _opened(path: PathLike) -> Iterator[tuple[int, int]]:
    """The file's descriptor and size; `(-1, 0)`, in which nothing is found, when it cannot be opened."""
    fd = open_regular(os.fspath(path))
    if fd is None:
        yield -1, 0
        return
    try:
        yield fd, os.fstat(fd).st_size
    finally:
        os.close(fd)
