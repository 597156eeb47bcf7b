"""What lies unread in a FIFO is counted without taking or disturbing anything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ccc_plugins.retire_stale.evidence.fifo import unread_bytes

READER = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
print("up", flush=True)
for _ in range(3):
    print(len(os.read(fd, 65536)), flush=True)
"""


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "in"
    os.mkfifo(path)
    return path


@pytest.fixture
def reader(fifo: Path) -> Iterator[subprocess.Popen[str]]:
    """Holds the FIFO open for reading and writing, as a headless does, and says how much each read got."""
    process = subprocess.Popen([sys.executable, "-c", READER, str(fifo)], stdout=subprocess.PIPE, text=True)
    assert _line(process) == "up"
    yield process
    process.kill()
    process.communicate(timeout=20)


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.case("C74")
def test_what_a_stopped_reader_has_not_taken_is_counted_and_stays(fifo: Path, reader: subprocess.Popen[str]) -> None:
    """Bytes written while the reader is stopped stay unread, are counted each time, and arrive once it goes on."""
    assert unread_bytes(fifo) == 0
    writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    try:
        reader.send_signal(signal.SIGSTOP)
        os.waitpid(reader.pid, os.WUNTRACED)
        assert os.write(writer, b"x" * 155) == 155
        assert [unread_bytes(fifo) for _ in range(50)] == [155] * 50
        assert os.write(writer, b"y" * 45) == 45
        assert unread_bytes(fifo) == 200
        reader.send_signal(signal.SIGCONT)
        assert _line(reader) == "200"
        assert unread_bytes(fifo) == 0
        assert os.write(writer, b"z") == 1
        assert _line(reader) == "1"
    finally:
        os.close(writer)


def test_looking_ends_no_readers_input(fifo: Path, reader: subprocess.Popen[str]) -> None:
    """The reader sees no end of file when looks come and go, also when nobody else has the FIFO open."""
    for _ in range(50):
        assert unread_bytes(fifo) == 0
    writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    os.write(writer, b"abc")
    os.close(writer)
    assert _line(reader) == "3"
    assert reader.poll() is None


@pytest.mark.case("C74")
def test_a_dead_readers_bytes_are_seen_while_a_writer_keeps_them(fifo: Path, reader: subprocess.Popen[str]) -> None:
    """What a killed reader left is counted as long as somebody holds the FIFO open, and gone afterwards."""
    writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    reader.send_signal(signal.SIGSTOP)
    os.waitpid(reader.pid, os.WUNTRACED)
    os.write(writer, b"x" * 10)
    reader.kill()
    reader.wait(20)
    assert unread_bytes(fifo) == 10
    os.close(writer)
    assert unread_bytes(fifo) == 0


def test_what_is_no_fifo_is_unknown(tmp_path: Path) -> None:
    """A missing path, a file, a folder, a loop of links and an impossible name have no answer."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path / "missing", tmp_path / "file", tmp_path, tmp_path / "loop", tmp_path / "a\0b"):
        assert unread_bytes(path) is None


def test_a_fifo_that_may_not_be_asked_is_unknown(fifo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the system refuses the question the answer is unknown, and the descriptor is closed."""

    def refuse(fd: int, *_args: object) -> int:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr("fcntl.ioctl", refuse)
    before = len(os.listdir("/dev/fd"))
    assert unread_bytes(fifo) is None
    assert len(os.listdir("/dev/fd")) == before
