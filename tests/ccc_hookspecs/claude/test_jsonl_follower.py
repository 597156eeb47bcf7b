"""Each complete line of a growing file is given out once, whatever happens to the file meanwhile."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccc_hookspecs.claude.jsonl import JsonlFollower, Line, lines_backward, parse

PIECES = st.lists(
    st.one_of(
        st.binary(max_size=40),
        st.sampled_from([b"\n", b"\r\n", b"\0" * 9, b"\xef\xbb\xbf", b'{"type":"user"}', "\u2028".encode(), b"\x85"]),
    ),
    max_size=12,
)


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def _expected(content: bytes) -> list[bytes]:
    lines = [line.replace(b"\0", b"").rstrip(b"\r") for line in content.split(b"\n")[:-1]]
    return [line.removeprefix(b"\xef\xbb\xbf") if number == 0 else line for number, line in enumerate(lines)]


def _drain(follower: JsonlFollower) -> list[bytes]:
    return [line.data for line in follower.lines()]


@settings(deadline=None)
@given(pieces=PIECES)
def test_any_bytes_appended_in_any_pieces_give_each_line_once(pieces: list[bytes]) -> None:
    """Random bytes, appended piece by piece with a look after each, come out as the lines between newlines."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.jsonl")
        follower = JsonlFollower(path)
        seen: list[bytes] = []
        for piece in pieces:
            _append(path, piece)
            grown = follower.poll() == "grown"
            got = _drain(follower)
            assert grown or not got
            seen += got
        content = b"".join(pieces)
        assert seen == _expected(content)
        assert follower.pending == len(content) - follower.offset
        assert not pieces or follower.poll() == "unchanged"


@pytest.mark.case("C34")
def test_a_record_cut_at_any_byte_is_given_out_only_when_complete(tmp_path: Path) -> None:
    """Half a last line is not passed, and the read position stays before it until its newline is there."""
    content = b'{"type":"user","uuid":"a"}\n{"type":"assistant","text":"\xc3\xa9\\n"}\r\n'
    for cut in range(len(content) + 1):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(content[:cut])
        follower = JsonlFollower(path)
        follower.poll()
        first = _drain(follower)
        assert follower.offset == content.rfind(b"\n", 0, cut) + 1
        assert follower.pending == cut - follower.offset
        _append(path, content[cut:])
        assert follower.poll() == ("grown" if cut < len(content) else "unchanged")
        assert first + _drain(follower) == _expected(content)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_concurrent_appender_loses_and_doubles_nothing(seed: int) -> None:
    """A thread that appends in random pieces, and a reader that looks all the time, agree on every line."""
    chance = random.Random(seed)
    content = b"".join(b'{"n":%d,"text":"%s"}\n' % (number, b"x" * chance.randrange(3000)) for number in range(300))
    cuts = sorted(chance.randrange(len(content)) for _ in range(200))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.jsonl")
        path.touch()

        def write() -> None:
            with path.open("ab", buffering=0) as file:
                for start, end in zip([0, *cuts], [*cuts, len(content)], strict=True):
                    file.write(content[start:end])

        writer = threading.Thread(target=write)
        follower = JsonlFollower(path)
        seen: list[Line] = []
        writer.start()
        while writer.is_alive():
            assert follower.poll() in ("grown", "unchanged")
            seen += follower.lines(limit=chance.choice([None, 1, 7]))
        writer.join()
        follower.poll()
        seen += follower.lines()
    assert [json.loads(line.data)["n"] for line in seen] == list(range(300))
    assert [content[line.offset : line.end] for line in seen] == content.splitlines(keepends=True)


def test_another_process_may_append_meanwhile(tmp_path: Path) -> None:
    """Lines that two processes append at the same time all come out, each once."""
    path = tmp_path / "t.jsonl"
    path.touch()
    code = (
        "import os,sys\n"
        "fd=os.open(sys.argv[1],os.O_WRONLY|os.O_APPEND)\n"
        'for n in range(400): os.write(fd, b\'{"w":%d,"n":%d}\\n\' % (int(sys.argv[2]), n))\n'
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path), str(number)]) for number in range(2)]
    follower = JsonlFollower(path)
    seen: list[tuple[int, int]] = []
    try:
        done = False
        while not done:
            done = all(writer.poll() is not None for writer in writers)
            assert follower.poll() in ("grown", "unchanged")
            seen += [(data["w"], data["n"]) for line in follower.lines() for data in [parse(line)[0].data]]
    finally:
        for writer in writers:
            writer.wait(30)
    assert len(seen) == 800
    assert [n for w, n in seen if w == 0] == [n for w, n in seen if w == 1] == list(range(400))


def test_only_newline_ends_a_line(tmp_path: Path) -> None:
    """Separators that text may hold (U+2028, U+0085, form feed, a lone carriage return) end no line."""
    text = "a\u2028b\u2029c\x85d\x0ce\x1cf".encode() + b"\rg"
    path = tmp_path / "t.jsonl"
    path.write_bytes(text + b"\n")
    assert _drain(JsonlFollower(path)) == [text]


@pytest.mark.case("C35")
def test_byte_order_mark_and_carriage_returns_are_not_content(tmp_path: Path) -> None:
    """The mark at the start of the file and a carriage return before a newline are left out, in a file that mixes both endings."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"uuid":"a"}\r\n{"uuid":"b"}\n{"uuid":"c"}\r\n')
    lines = list(JsonlFollower(path).lines())
    assert [parse(line)[0].data["uuid"] for line in lines] == ["a", "b", "c"]
    assert lines[0].offset == 0
    assert lines[-1].end == path.stat().st_size


@pytest.mark.case("C31")
def test_runs_of_nul_bytes_hide_no_record(tmp_path: Path) -> None:
    """A run in the middle, one at the end and one before a valid record give exactly the valid records."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"uuid":"a"}\n' + b"\0" * 9000 + b'{"uuid":"b"}\n' + b"\0" * 143_000)
    follower = JsonlFollower(path)
    assert _drain(follower) == [b'{"uuid":"a"}', b'{"uuid":"b"}']
    assert follower.pending == 143_000
    _append(path, b'{"uuid":"c"}\n')
    assert follower.poll() == "grown"
    assert _drain(follower) == [b'{"uuid":"c"}']


@pytest.mark.case("C36")
@pytest.mark.parametrize("size", [0, 30, 4000], ids=["empty", "smaller", "larger"])
def test_a_replaced_file_is_reported_once_and_read_from_its_start(tmp_path: Path, size: int) -> None:
    """Another file under the name, whatever its size, is `replaced`; then all of it is given out."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"uuid":"old"}\n' * 20)
    follower = JsonlFollower(path)
    follower.poll()
    assert len(_drain(follower)) == 20
    other = tmp_path / "other"
    other.write_bytes(b"[1]\n" * (size // 4))
    other.replace(path)
    assert follower.poll() == "replaced"
    assert follower.offset == 0
    assert follower.poll() == ("grown" if size else "unchanged")
    assert len(_drain(follower)) == size // 4


@pytest.mark.case("C36")
def test_a_file_that_shrinks_between_look_and_read_gives_nothing_wrong(tmp_path: Path) -> None:
    """When the file is cut after the look, no line of the old or the new content is made up, and the next look says so."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"uuid":"a"}\n' * 10)
    follower = JsonlFollower(path)
    follower.poll()
    assert len(list(follower.lines(limit=5))) == 5
    assert follower.poll() == "grown"
    os.truncate(path, 20)
    assert _drain(follower) == []
    assert follower.poll() == "replaced"


@pytest.mark.case("C36")
def test_content_rewritten_in_place_is_noticed_by_what_precedes_the_position(tmp_path: Path) -> None:
    """The same inode, larger than before, but with other bytes before the read position, is `replaced`."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"uuid":"a"}\n' * 10)
    follower = JsonlFollower(path)
    follower.poll()
    _drain(follower)
    inode = path.stat().st_ino
    with path.open("r+b") as file:
        file.write(b'{"uuid":"b"}\n' * 30)
    assert path.stat().st_ino == inode
    assert follower.poll() == "replaced"
    assert _drain(follower) == [b'{"uuid":"b"}'] * 30


def test_an_unfinished_line_that_is_cut_off_again_voids_nothing(tmp_path: Path) -> None:
    """When only bytes that were never given out disappear, following goes on."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"uuid":"a"}\n{"uuid":"b')
    follower = JsonlFollower(path)
    follower.poll()
    assert _drain(follower) == [b'{"uuid":"a"}']
    os.truncate(path, 13)
    assert follower.poll() == "unchanged"
    _append(path, b'{"uuid":"c"}\n')
    assert follower.poll() == "grown"
    assert _drain(follower) == [b'{"uuid":"c"}']


def test_a_missing_file_that_appears_is_growth(tmp_path: Path) -> None:
    """Absence is an answer of its own, also of the folder, and the first appearance is growth from nothing."""
    path = tmp_path / "later" / "t.jsonl"
    follower = JsonlFollower(path)
    assert follower.poll() == "missing"
    assert _drain(follower) == []
    path.parent.mkdir()
    path.write_bytes(b"{}\n")
    assert follower.poll() == "grown"
    assert _drain(follower) == [b"{}"]
    path.unlink()
    assert follower.poll() == "missing"


def test_what_is_no_readable_file_is_unreadable(tmp_path: Path) -> None:
    """A folder, a FIFO without a writer (which is not waited for) and a link to itself are `unreadable` and have no lines."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path, tmp_path / "fifo", tmp_path / "loop"):
        follower = JsonlFollower(path)
        assert follower.poll() == "unreadable"
        assert _drain(follower) == []
        assert list(lines_backward(path)) == []


def test_a_file_without_rights_is_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that may not be opened is `unreadable`, has no lines, and is read once it may be opened."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"{}\n")
    follower = JsonlFollower(path)

    def refuse(*_args: object) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        assert follower.poll() == "unreadable"
        assert _drain(follower) == []
    assert follower.poll() == "grown"
    assert _drain(follower) == [b"{}"]


def test_following_from_a_position_checks_what_stands_before_it(tmp_path: Path) -> None:
    """A start in the middle gives the lines after it; one beyond the end means that the file is not the one meant."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"n":1}\n{"n":2}\n')
    follower = JsonlFollower(path, start=8)
    assert follower.poll() == "grown"
    assert [line.offset for line in follower.lines()] == [8]
    beyond = JsonlFollower(path, start=100)
    assert beyond.poll() == "replaced"
    assert len(_drain(beyond)) == 2


def test_leaving_an_iteration_early_keeps_the_rest(tmp_path: Path) -> None:
    """What was not taken is given by the next call, and an iteration that was overtaken by another gives nothing twice."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(b"%d\n" % number for number in range(10)))
    follower = JsonlFollower(path)
    first = follower.lines()
    assert next(first).data == b"0"
    assert [line.data for line in follower.lines(limit=3)] == [b"1", b"2", b"3"]
    assert list(first) == []
    assert follower.poll() == "grown"
    assert _drain(follower) == [b"%d" % number for number in range(4, 10)]
    assert list(follower.lines(limit=0)) == []


def test_lines_longer_than_a_chunk_are_whole_and_longer_than_the_limit_are_counted(tmp_path: Path) -> None:
    """A line of several chunks is one line; one above `max_line` is stepped over, and its neighbours are not."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"first\n" + b"x" * 3_000_000 + b"\n" + b"y" * 5_000_000 + b"\nlast\n" + b"z" * 2_000_000)
    follower = JsonlFollower(path, max_line=4_000_000)
    assert follower.poll() == "grown"
    assert [len(line.data) for line in follower.lines()] == [5, 3_000_000, 4]
    assert follower.skipped == 1
    assert follower.pending == 2_000_000
    assert follower.poll() == "unchanged"
    _append(path, b"\nend\n")
    assert follower.poll() == "grown"
    assert [len(line.data) for line in follower.lines()] == [2_000_000, 3]


@pytest.mark.case("C37")
def test_a_sparse_file_of_gigabytes_takes_constant_memory(tmp_path: Path) -> None:
    """Following the end of a 4 GiB file, and finding its last lines, holds a few MiB at most."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"uuid":"a"}\n')
    os.truncate(path, 4 << 30)
    _append(path, b'\n{"uuid":"b"}\n')
    tracemalloc.start()
    try:
        follower = JsonlFollower(path, start=4 << 30)
        assert follower.poll() == "grown"
        assert _drain(follower) == [b"", b'{"uuid":"b"}']
        backward = lines_backward(path)
        assert next(backward).data == b'{"uuid":"b"}'
        assert follower.poll() == "unchanged"
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.case("C37")
def test_reading_a_large_file_takes_constant_memory(tmp_path: Path) -> None:
    """All lines of 40 MB, with a line of 8 MB among them, take a few times the longest line, not the file."""
    path = tmp_path / "t.jsonl"
    with path.open("wb") as file:
        for number in range(16):
            file.write((b'{"n":1,"text":"' + b"x" * 2000 + b'"}\n') * 1000)
            file.write(b"y" * (8 << 20 if number == 8 else 10) + b"\n")
    tracemalloc.start()
    try:
        assert sum(1 for _ in JsonlFollower(path).lines()) == 16_016
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
