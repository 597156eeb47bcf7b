"""What can be read of a line is read, and nothing on a line raises."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccc_hookspecs.claude.jsonl import Line, parse

CORPUS = Path(__file__).parents[2] / "corpus"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=5), JSON, max_size=4)


def _line(data: bytes) -> Line:
    return Line(100, 100 + len(data) + 1, data)


def _read(data: bytes) -> list[dict[str, Any]]:
    return [record.data for record in parse(_line(data))]


def _corpus_lines() -> list[bytes]:
    files = sorted(CORPUS.glob("*/lone-battery/transcript.jsonl")) + sorted(CORPUS.glob("*/states-idle/stdout.log"))
    return [line for file in files for line in file.read_bytes().split(b"\n") if line]


@settings(deadline=None)
@given(data=st.binary(max_size=200))
def test_any_bytes_are_parsed_without_an_exception(data: bytes) -> None:
    """Random bytes give records or nothing."""
    assert all(100 <= record.offset <= 100 + len(data) for record in parse(_line(data)))


@settings(deadline=None)
@given(
    parts=st.lists(
        st.sampled_from(['{"a":', "{", "}", "[", "]", '"', '{"type":"user","uuid":"u"', ",", "1e999", "\\ud800", " ", "NaN"]), max_size=30
    )
)
def test_any_mix_of_json_pieces_is_parsed_without_an_exception(parts: list[str]) -> None:
    """Pieces of JSON in any order give objects or nothing."""
    assert all(isinstance(data, dict) for data in _read("".join(parts).encode()))


@settings(deadline=None)
@given(data=OBJECTS)
def test_an_intact_object_is_one_record(data: dict[str, Any]) -> None:
    """A line that is one JSON object is that object, at the line's position."""
    (record,) = parse(_line(json.dumps(data).encode()))
    assert record.data == data
    assert record.offset == 100


@pytest.mark.case("C32")
@settings(deadline=None)
@given(first=OBJECTS, second=OBJECTS)
def test_two_objects_on_one_line_are_two_records(first: dict[str, Any], second: dict[str, Any]) -> None:
    """`{...}{...}` gives both, in order, at increasing positions."""
    records = parse(_line(json.dumps(first).encode() + json.dumps(second).encode()))
    assert [record.data for record in records] == [first, second]
    assert records[0].offset < records[1].offset


@pytest.mark.case("C32")
def test_a_record_cut_by_the_next_one_loses_only_itself() -> None:
    """Real records, broken off at every position by the next one on the same line: exactly the next one is recovered."""
    lines = _corpus_lines()
    checked = 0
    for broken, whole in zip(lines[::5], lines[1::5], strict=False):
        expected = json.loads(whole)
        for cut in range(1, len(broken), 7):
            assert _read(broken[:cut] + whole) == [expected]
            checked += 1
    assert checked > 2000


@pytest.mark.case("C31", "C32")
def test_a_record_alone_and_cut_gives_nothing_of_itself() -> None:
    """A record that breaks off never passes a nested object of its own off as a record that could be of a conversation."""
    for broken in _corpus_lines()[::3]:
        for cut in range(1, len(broken) - 1, 5):
            found = _read(broken[:cut])
            assert all("uuid" not in data or data.get("uuid") != json.loads(broken).get("uuid") for data in found)
            assert not any("sessionId" in data or "session_id" in data for data in found)


@pytest.mark.case("C32")
def test_the_rest_of_a_cut_record_on_its_own_line_is_nothing() -> None:
    """The line that holds what followed an interleaved write is no record."""
    tail = b'ctly","stop":null}],"usage":{"type":"x","sessionId":"s"}},"uuid":"u","sessionId":"s"}'
    assert _read(tail) == []
    assert _read(b'{"type":"text","text":"x"}],"role":"assistant"},"uuid":"u","sessionId":"s"}') == []


def test_text_that_is_not_quite_json_is_still_read() -> None:
    """Invalid UTF-8 is replaced; lone surrogates, NaN and raw control characters are kept."""
    (data,) = _read(b'{"bad":"\xff\xfe","lone":"\\ud83d","nan":NaN,"tab":"a\tb","big":1e999}')
    assert data["bad"] == "\ufffd\ufffd"
    assert data["lone"] == "\ud83d"
    assert math.isnan(data["nan"])
    assert data["tab"] == "a\tb"
    assert data["big"] == math.inf


@pytest.mark.case("C77")
def test_a_lone_surrogate_in_either_form_survives() -> None:
    """An escaped lone surrogate and its raw three bytes both come out as that code point, in a record that is otherwise intact."""
    assert _read(b'{"a":"\\udc80","b":"\xed\xb2\x80"}') == [{"a": "\udc80", "b": "\udc80"}]


def test_numbers_and_nesting_beyond_every_limit_raise_nothing() -> None:
    """A number of ten thousand digits keeps its record; a nesting too deep loses only its own."""
    digits = b"9" * 10_000
    assert _read(b'{"n":' + digits + b',"uuid":"u"}') == [{"n": digits.decode(), "uuid": "u"}]
    deep = b'{"a":' * 200_000
    assert _read(deep) == []
    assert _read(b"[" * 200_000) == []
    good = b'{"type":"user","uuid":"u"}'
    assert _read(good + deep) == [json.loads(good)]
    assert _read(b'{"a":' * 50_000 + b'"cut' + good) in ([], [json.loads(good)])


@pytest.mark.parametrize("data", [b"", b"  ", b"\xef\xbb\xbf", b"null", b"[{}]", b"17", b'"text"', b"{", b"}{", b"\\"])
def test_a_line_without_an_object_is_nothing(data: bytes) -> None:
    """Blank lines and JSON values that are no objects give no record."""
    assert parse(_line(data)) == ()


def test_a_hostile_line_costs_no_more_than_a_few_readings() -> None:
    """A megabyte of openings that all fail, each at the far end, ends by the budget of work."""
    assert _read(b'{"a":[' + b'{"b":"c",' * 120_000) == []
    assert _read((b'{"a":"' + b"x" * 50) * 20_000) == []


def test_a_byte_order_mark_inside_a_file_is_stepped_over() -> None:
    """Files joined end to end leave marks before records; the record behind one is read."""
    assert _read(b'\xef\xbb\xbf{"uuid":"u"}') == [{"uuid": "u"}]
