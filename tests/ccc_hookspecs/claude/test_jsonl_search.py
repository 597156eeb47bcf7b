"""Bytes and lines are found in files of any size, in both directions, across the borders of what is read at a time."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccc_hookspecs.claude import _search
from ccc_hookspecs.claude.jsonl import JsonlFollower, find, line_at, lines_backward, rfind


@pytest.fixture
def big(tmp_path: Path) -> Path:
    """Three MiB of short lines with a marker that straddles the border of the first chunk and one near the end."""
    path = tmp_path / "t.jsonl"
    content = bytearray(b'{"n":1}\n' * (3 << 17))
    content[(1 << 20) - 3 : (1 << 20) + 3] = b"MARKER"
    content[-20:-14] = b"MARKER"
    path.write_bytes(content)
    return path


def test_a_needle_across_a_border_is_found_from_both_sides(big: Path) -> None:
    """The marker that lies on two chunks is found going forward, and going backward once the later one is excluded."""
    size = big.stat().st_size
    assert find(big, b"MARKER") == (1 << 20) - 3
    assert rfind(big, b"MARKER") == size - 20
    assert rfind(big, b"MARKER", end=size - 15) == (1 << 20) - 3
    assert find(big, b"MARKER", start=(1 << 20) - 2) == size - 20
    assert rfind(big, b"MARKER", end=size - 15, start=(1 << 20) - 2) is None
    assert find(big, b"MARKER", end=(1 << 20) + 2) is None


def _as_bytes_say(position: int | None) -> int:
    return -1 if position is None else position


@settings(deadline=None)
@given(content=st.text("ab\n", max_size=60).map(str.encode), needle=st.text("ab\n", min_size=1, max_size=4).map(str.encode), data=st.data())
def test_searches_agree_with_bytes_at_every_chunk_size(content: bytes, needle: bytes, data: st.DataObject) -> None:
    """Forward and backward search give what `bytes.find` and `bytes.rfind` give, with chunks smaller than the file."""
    start = data.draw(st.integers(0, len(content) + 2))
    end = data.draw(st.none() | st.integers(0, len(content) + 2))
    stop = len(content) if end is None else end
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(_search, "CHUNK", data.draw(st.integers(1, 7)))
        path = Path(folder, "t")
        path.write_bytes(content)
        assert _as_bytes_say(find(path, needle, start=start, end=end)) == content.find(needle, start, stop)
        assert _as_bytes_say(rfind(path, needle, start=start, end=end)) == content.rfind(needle, start, stop)


@settings(deadline=None)
@given(content=st.lists(st.sampled_from([b"a", b"\n", b"bcd", b"\r\n", b"\0", b"\xef\xbb\xbf"]), max_size=20).map(b"".join), data=st.data())
def test_backward_lines_are_the_forward_lines_reversed(content: bytes, data: st.DataObject) -> None:
    """At every chunk size the lines found backward, and the line at each position, are those that following gives."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(_search, "CHUNK", data.draw(st.integers(1, 9)))
        path = Path(folder, "t")
        path.write_bytes(content)
        lines = list(JsonlFollower(path).lines())
        assert list(lines_backward(path)) == lines[::-1]
        end = data.draw(st.integers(0, len(content)))
        assert list(lines_backward(path, end)) == [line for line in lines if line.end <= end][::-1]
        for position in range(len(content) + 1):
            assert line_at(path, position) == next((line for line in lines if line.offset <= position < line.end), None)


def test_a_line_longer_than_a_chunk_is_found_backward(tmp_path: Path) -> None:
    """A line of several chunks between short ones is given whole, and so is the line at a position within it."""
    path = tmp_path / "t"
    path.write_bytes(b"first\n" + b"x" * 3_500_000 + b"\nlast\nunfinished")
    assert [len(line.data) for line in lines_backward(path)] == [4, 3_500_000, 5]
    line = line_at(path, 2_000_000)
    assert line is not None
    assert (line.offset, len(line.data)) == (6, 3_500_000)
    assert line_at(path, path.stat().st_size - 1) is None


def test_a_line_beyond_the_limit_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line above the limit is not held: it is left out of the backward lines and is nobody's line."""
    monkeypatch.setattr(_search, "MAX_LINE", 2_000_000)
    path = tmp_path / "t"
    path.write_bytes(b"first\n" + b"x" * 3_500_000 + b"\nlast\n")
    assert [line.data for line in lines_backward(path)] == [b"last", b"first"]
    assert line_at(path, 100) is None


def test_a_file_that_cannot_be_read_holds_nothing(tmp_path: Path) -> None:
    """A missing file and a folder have no needle and no lines."""
    for path in (tmp_path / "missing", tmp_path):
        assert find(path, b"x") is None
        assert rfind(path, b"x") is None
        assert line_at(path, 0) is None
        assert list(lines_backward(path)) == []


@pytest.mark.case("C37")
def test_a_sparse_file_is_searched_without_holding_it(tmp_path: Path) -> None:
    """The last needle before 256 MiB of nothing is found, and an absent one is not."""
    path = tmp_path / "t"
    path.write_bytes(b'{"uuid":"a"}\n')
    os.truncate(path, 1 << 28)
    assert rfind(path, b'"uuid":"a"') == 1
    assert rfind(path, b'"uuid":"b"') is None
