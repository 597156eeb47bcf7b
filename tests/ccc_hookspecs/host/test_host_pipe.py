"""A line goes into a FIFO as a whole or not at all."""

from __future__ import annotations

import json
import os
import select
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ccc_hookspecs.host import pipe as pipes
from ccc_hookspecs.host.pipe import HalfWritten, NoReader, Pipe, PipeFull, user_line

linux = pytest.mark.skipif(sys.platform != "linux", reason="the size of a pipe can be chosen on Linux only")


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "fifo", 0o600)
    return tmp_path / "fifo"


@pytest.fixture
def reader(fifo: Path) -> Iterator[int]:
    """An open reading end that nobody reads from."""
    fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    yield fd
    os.close(fd)


@pytest.mark.case("C74")
def test_without_a_reader_nothing_is_written(fifo: Path, tmp_path: Path) -> None:
    """Also when the FIFO is gone."""
    with pytest.raises(NoReader):
        Pipe(fifo)
    with pytest.raises(NoReader):
        Pipe(tmp_path / "nowhere")


@pytest.mark.case("C74")
def test_a_reader_that_went_away_is_no_reader(fifo: Path) -> None:
    fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    pipe = Pipe(fifo)
    os.close(fd)
    with pytest.raises(NoReader):
        pipe.write(b"line\n")
    pipe.close()
    pipe.close()


@pytest.mark.case("C74")
def test_a_full_pipe_takes_nothing_of_a_short_line(fifo: Path, reader: int) -> None:
    """A line that one write takes as a whole is refused as a whole."""
    pipe = Pipe(fifo)

    def fill() -> None:
        for _ in range(10_000):
            pipe.write(b"x" * 4000 + b"\n")

    with pytest.raises(PipeFull):
        fill()
    assert pipe.unread() % 4001 == 0
    pipe.close()


@linux
@pytest.mark.case("C74")
def test_a_long_line_goes_in_with_one_write_although_nobody_reads(fifo: Path, reader: int) -> None:
    """The pipe is made to hold it, so that no crash can leave a half."""
    line = user_line("72350742-dff3-4ee0-a645-6602d6d2b86e", "long " * 100_000)
    pipe = Pipe(fifo)
    assert len(line) > 65536
    assert pipe.make_room(len(line)) is True
    pipe.write(line)
    assert pipe.unread() == len(line)
    pipe.close()


@pytest.mark.case("C74")
def test_a_long_line_waits_until_what_lies_before_it_is_read(fifo: Path, reader: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the process does not read, nothing of it is written."""
    monkeypatch.setattr(pipes, "ROOM_SECONDS", 0.05)
    pipe = Pipe(fifo)
    pipe.write(b"short\n")
    with pytest.raises(PipeFull):
        pipe.make_room(select.PIPE_BUF + 1)
    assert pipe.unread() == len(b"short\n")
    assert os.read(reader, 100) == b"short\n"
    pipe.make_room(select.PIPE_BUF + 1)
    pipe.close()


@pytest.mark.case("C74")
def test_a_line_larger_than_any_pipe_is_completed_as_it_is_read(fifo: Path) -> None:
    """Every byte arrives in order."""
    fd = os.open(fifo, os.O_RDWR)
    line = user_line("72350742-dff3-4ee0-a645-6602d6d2b86e", "very long " * 300_000)
    got = bytearray()

    def read() -> None:
        while len(got) < len(line):
            got.extend(os.read(fd, 65536))

    pipe = Pipe(fifo)
    assert pipe.make_room(len(line)) is False
    thread = threading.Thread(target=read)
    thread.start()
    pipe.write(line)
    thread.join(60)
    pipe.close()
    os.close(fd)
    assert bytes(got) == line


@pytest.mark.case("C74")
def test_a_process_that_stops_reading_in_the_middle_is_told_apart(fifo: Path, reader: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how much of the line is in its pipe."""
    monkeypatch.setattr(pipes, "FINISH_SECONDS", 0.05)
    pipe = Pipe(fifo)
    line = b"x" * 3_000_000 + b"\n"
    pipe.make_room(len(line))
    with pytest.raises(HalfWritten) as error:
        pipe.write(line)
    assert error.value.written == pipe.unread() > 0
    pipe.close()


@pytest.mark.case("C77")
def test_a_line_is_one_line_of_ascii_whatever_the_text_is() -> None:
    """Line separators are escaped, half a surrogate pair is replaced; both blocks are there, the catch-up first."""
    line = user_line("72350742-dff3-4ee0-a645-6602d6d2b86e", "a\nb\u2028c\ud800", "before \udc00")
    assert line.isascii()
    assert line.count(b"\n") == 1
    message = json.loads(line)
    assert message["uuid"] == "72350742-dff3-4ee0-a645-6602d6d2b86e"
    assert [block["text"] for block in message["message"]["content"]] == ["before \ufffd", "a\nb\u2028c\ufffd"]
