"""Reading a line's bytes gives what decoding it gives, or nothing at all."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.made_session import Session, spaced
from ccc_hookspecs.claude.jsonl import Line, parse
from ccc_plugins.retire_stale.evidence.skim_event import event_at
from ccc_plugins.retire_stale.evidence.skim_record import entry_at
from ccc_plugins.retire_stale.evidence.stdout_log import StdoutLog
from ccc_plugins.retire_stale.judgement.entries import Entry, entry_of
from ccc_plugins.retire_stale.judgement.stream import Stream

CORPUS = Path(__file__).parents[2] / "corpus"
UUID = "0b6ee27a-5d51-4d8d-a1c3-7c1f3a0f6f0e"
OTHER = "72350742-dff3-4ee0-a645-6602d6d2b86e"
TRICKY = [
    f'"}}]}},"uuid":"{OTHER}","timestamp":"2026-11-30T11:35:00.893Z"',
    f']}},"parent_tool_use_id":null,"session_id":"{OTHER}","uuid":"{OTHER}"',
    '{"parentUuid":null,"isSidechain":false,"message":{"id":"msg_x",',
    f',"type":"assistant","uuid":"{OTHER}"',
    ',"userType":"external","version":"9.9.9"}',
    "\\",
    '\\"',
    "]},",
    "\u2028",
    "é",
]
TEXTS = st.lists(st.sampled_from(TRICKY) | st.text(max_size=5), max_size=4).map("".join)
JSON = st.recursive(
    TEXTS | st.booleans() | st.none(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=5
)
RESULTS = st.fixed_dictionaries(
    {"tool_use_id": st.sampled_from(["toolu_1", "toolu_2"]), "type": st.just("tool_result")},
    optional={
        "content": TEXTS | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}), max_size=2),
        "is_error": st.booleans(),
    },
)
TOOLS = st.sampled_from(["Bash", "CronDelete", "ScheduleWakeup", "Task", "TaskStop", "TaskOutput", "Read"])
GIVEN = JSON | st.fixed_dictionaries(
    {}, optional={"run_in_background": st.booleans(), "delaySeconds": st.just(60), "id": st.just("job1"), "task_id": st.just("b1")}
)
CALLS = st.fixed_dictionaries({"type": st.just("tool_use"), "id": st.just("toolu_1"), "name": TOOLS, "input": GIVEN})
SAID = st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS})
ASKED = st.fixed_dictionaries(
    {
        "role": st.just("user"),
        "content": st.one_of([TEXTS, *[st.lists(RESULTS, min_size=1, max_size=1)] * 4, st.lists(RESULTS | SAID, max_size=2)]),
    }
)
ANSWERED = st.fixed_dictionaries(
    {"id": st.just("msg_1"), "role": st.just("assistant"), "content": st.lists(SAID | SAID | CALLS, max_size=2)}, optional={"usage": JSON}
)
MESSAGES = {"user": ASKED, "assistant": ANSWERED, "system": ASKED | ANSWERED}
RARELY_TRUE = st.sampled_from([False] * 5 + [True])
AFTER = {
    "toolUseResult": JSON,
    "isMeta": st.booleans(),
    "sourceToolAssistantUUID": st.just(OTHER),
    "userType": st.just("external"),
    "entrypoint": st.sampled_from(["cli", "sdk-cli"]),
    "cwd": TEXTS,
    "sessionId": st.just(OTHER),
    "version": st.just("2.1.332"),
}


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    """A transcript record, in the order in which releases write the members or nearly so."""
    record: dict[str, Any] = {"parentUuid": draw(st.sampled_from([None, OTHER])), "isSidechain": draw(RARELY_TRUE)}
    if draw(st.booleans()):
        record |= {"userType": "external", "cwd": draw(TEXTS), "version": "2.0.42"}
    kind = draw(st.sampled_from(["user", "user", "assistant", "assistant", "attachment", "system"]))
    if kind == "attachment":
        record["attachment"] = {"type": draw(st.sampled_from(["date", "queued_command"])), "content": draw(JSON)}
    else:
        record |= {"type": kind} if kind == "user" else {}
        record["message"] = draw(MESSAGES[kind])
    stamp = "yesterday" if draw(RARELY_TRUE) else "2026-11-30T11:35:00.893Z"
    ends = {} if draw(RARELY_TRUE) else {name: draw(AFTER[name]) for name in ("userType", "entrypoint", "sessionId", "version")}
    return record | {"type": kind, "uuid": UUID, "timestamp": stamp} | draw(st.fixed_dictionaries({}, optional=AFTER)) | ends


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    """A stdout event, likewise."""
    kind = draw(st.sampled_from(["user", "user", "assistant", "assistant", "stream_event", "result"]))
    body = {"message": draw(MESSAGES[kind])} if kind in MESSAGES else {"event": draw(JSON)}
    origin = {"parent_tool_use_id": "toolu_9" if draw(RARELY_TRUE) else None, "session_id": draw(st.sampled_from([UUID, OTHER]))}
    if kind == "stream_event":
        origin = dict(reversed(origin.items()))
    elif kind == "result":
        del origin["parent_tool_use_id"]
    after = {"timestamp": st.just("2026-11-30T11:35:00.893Z"), "tool_use_result": JSON, "note": TEXTS}
    named = {"user_message_uuid": OTHER} if draw(RARELY_TRUE) else {}
    return {"type": kind, **body, **origin, "uuid": UUID} | draw(st.fixed_dictionaries({}, optional=after)) | named


def dumped(data: dict[str, Any], *, compact: bool) -> bytes:
    return json.dumps(data, separators=(",", ":") if compact else None, ensure_ascii=False).encode("utf-8", "surrogatepass")


def decoded(line: bytes) -> list[Entry]:
    """The entries of a line that count."""
    found = parse(Line(0, len(line) + 1, line))
    return [entry_of(r.data, r.offset) for r in found if r.data.get("type") == "queue-operation" or isinstance(r.data.get("uuid"), str)]


def agrees(line: bytes) -> bool:
    """Whether the line was skimmed; fails when skimming it says other than decoding it."""
    entry = entry_at(line, 0, len(line), 0)
    if entry is not None:
        assert ([] if entry == "nothing" else [entry]) == decoded(line)
    return entry is not None


def stream_of(lines: list[bytes]) -> Stream:
    stream = Stream()
    for line in lines:
        for record in parse(Line(0, len(line) + 1, line)):
            stream.feed(record.data)
    return stream


def skimmed(lines: list[bytes], folder: Path) -> Stream:
    log = StdoutLog(folder / "stdout.log")
    (folder / "stdout.log").write_bytes(b"".join(line + b"\n" for line in lines))
    assert log.look() == "readable"
    return log.stream


def made(partial: int) -> tuple[bytes, bytes]:
    """A made transcript and its log, of a few hundred KB."""
    session, transcript, log = Session(random.Random(partial)), io.BytesIO(), io.BytesIO()
    for _ in range(6):
        session.turn(transcript, log, partial=partial)
    return transcript.getvalue(), log.getvalue()


def corpus(name: str) -> Iterator[list[bytes]]:
    return (path.read_bytes().splitlines() for path in sorted(CORPUS.glob(f"*/*/{name}")))


def test_every_recorded_transcript_line_reads_the_same() -> None:
    """On all recordings a skimmed record is the decoded one, and most answers and tool results are skimmed."""
    lines = [line for file in corpus("transcript.jsonl") for line in file]
    meant = [line for line in lines if b'"type":"assistant"' in line or b'"type":"tool_result"' in line]
    for line in lines:
        agrees(line)
        assert not agrees(next(spaced(line)).rstrip())
    assert sum(map(agrees, meant)) > 0.8 * len(meant)


def test_every_recorded_log_reads_the_same(tmp_path: Path) -> None:
    """On all recordings, written compactly and with spaces, the stream's state is the one that decoding every event gives."""
    for lines in corpus("stdout.log"):
        assert skimmed(lines, tmp_path) == stream_of(lines)
        loose = [line.rstrip() for line in spaced(b"\n".join(lines))]
        assert skimmed(loose, tmp_path) == stream_of(lines)


@pytest.mark.parametrize("partial", [0, 7])
def test_a_long_session_reads_the_same(partial: int, tmp_path: Path) -> None:
    """Large tool results and partial messages change nothing, and nearly all of them are skimmed."""
    transcript, log = (content.splitlines() for content in made(partial))
    assert sum(map(agrees, transcript)) > 0.8 * len(transcript)
    assert skimmed(log, tmp_path) == stream_of(log)
    results = [line for line in log if b'"tool_result"' in line]
    assert all(event_at(line, 0, len(line), Stream()) is not None for line in results)


@settings(deadline=None, max_examples=150)
@given(record=records(), compact=st.booleans())
def test_any_transcript_record_reads_the_same_or_is_left_to_decoding(record: dict[str, Any], compact: bool) -> None:
    """Whatever texts and members a record holds, also such as look like the end of a message."""
    agrees(dumped(record, compact=compact))


@settings(deadline=None, max_examples=150)
@given(first=records(), second=records(), cut=st.integers(0, 400))
def test_two_records_on_one_line_are_left_to_decoding(first: dict[str, Any], second: dict[str, Any], cut: int) -> None:
    """A record that breaks off where the next begins is never taken for one whole."""
    line = dumped(first, compact=True)
    agrees(line[:cut] + dumped(second, compact=True))
    agrees(line + dumped(second, compact=True))


@settings(deadline=None, max_examples=150)
@given(before=st.lists(events(), max_size=3), event=events(), compact=st.booleans())
def test_any_event_reads_the_same_or_is_left_to_decoding(before: list[dict[str, Any]], event: dict[str, Any], compact: bool) -> None:
    """Whatever came before it, the stream's state after an event is the one that decoding it gives."""
    line = dumped(event, compact=compact)
    stream, plain = (stream_of([dumped(e, compact=True) for e in before]) for _ in range(2))
    found = event_at(line, 0, len(line), stream)
    if found is not None:
        stream.feed(found)
        plain.feed(event)
    assert stream == plain


@settings(deadline=None, max_examples=150)
@given(first=events(), second=events(), cut=st.integers(0, 300))
def test_two_events_on_one_line_are_left_to_decoding(first: dict[str, Any], second: dict[str, Any], cut: int) -> None:
    """An event that breaks off where the next begins is never taken for one whole."""
    for line in (
        dumped(first, compact=True)[:cut] + dumped(second, compact=True),
        dumped(first, compact=True) + dumped(second, compact=True),
    ):
        stream = Stream()
        found = event_at(line, 0, len(line), stream)
        if found is not None:
            stream.feed(found)
            assert stream == stream_of([line])
