"""What one record means, whatever it holds."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccc_plugins.retire_stale.judgement.entries import CONVERSATION, Kind, entry_of, seconds, texts_of, writer_of

TOOL_RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3))
IDS = ["uuid", "parentUuid", "logicalParentUuid"]
MEMBERS = [
    *IDS,
    "type",
    "subtype",
    "isSidechain",
    "isMeta",
    "isCompactSummary",
    "compactMetadata",
    "attachment",
    "entrypoint",
    "timestamp",
    "version",
    "origin",
]
RECORDS = st.dictionaries(
    st.sampled_from(MEMBERS), JSON | st.sampled_from(["user", "assistant", "system", "attachment", "compact_boundary"])
)
MESSAGES = st.fixed_dictionaries({}, optional={"id": JSON, "content": JSON | st.lists(st.fixed_dictionaries({"type": JSON, "text": JSON}))})


def user(content: object, **fields: Any) -> dict[str, Any]:
    return {"type": "user", "uuid": "u", "message": {"role": "user", "content": content}, **fields}


KINDS: list[tuple[str, dict[str, Any], Kind]] = [
    ("a typed text", user("hello"), "prompt"),
    ("a sent text", user([{"type": "text", "text": "hello"}]), "prompt"),
    ("an image alone", user([{"type": "image", "source": {}}]), "prompt"),
    ("an answer", {"type": "assistant", "uuid": "a", "message": {"id": "msg_1", "content": []}}, "answer"),
    ("a compaction", {"type": "system", "subtype": "compact_boundary", "uuid": "b"}, "boundary"),
    ("its summary", user("This session is being continued", isCompactSummary=True), "note"),
    ("an interruption", user([{"type": "text", "text": "[Request interrupted by user for tool use]"}]), "note"),
    ("a shell command of a person", user("<bash-input>ls</bash-input>"), "shell"),
    ("a text accepted in a turn", {"type": "attachment", "uuid": "q", "attachment": {"type": "queued_command", "prompt": "and"}}, "queued"),
    ("another attachment", {"type": "attachment", "uuid": "x", "attachment": {"type": "date"}}, "other"),
    ("a tool's result", user([TOOL_RESULT]), "other"),
    ("a tool's result with a text", user([TOOL_RESULT, {"type": "text", "text": "x"}]), "other"),
    ("a meta record", user("Say hello", isMeta=True), "other"),
    ("a task notice by its origin", user("done", origin={"kind": "task-notification"}), "other"),
    ("a task notice by its text", user("<task-notification>\n<task-id>b1</task-id>"), "other"),
    ("a command", user("<command-name>/cost</command-name>"), "echo"),
    ("what a command printed", user("<local-command-stdout>Total cost</local-command-stdout>"), "echo"),
    ("what a command printed, newer", {"type": "system", "subtype": "local_command", "uuid": "s"}, "echo"),
    ("a caveat", user("Caveat: The messages below were generated"), "echo"),
    ("an unknown command of 2.1.6", user("Unknown skill: nonsense"), "echo"),
    ("an unknown command of 2.1.119", user("Unknown command: /nonsense"), "echo"),
    ("an unknown command of 2.0.42", user("Unknown slash command: nonsense"), "echo"),
    ("a person who says so", user("Unknown command: what do you mean by that?"), "prompt"),
    ("an error of the API", {"type": "system", "subtype": "api_error", "uuid": "s"}, "other"),
    ("a summary line", {"type": "summary", "uuid": "s"}, "other"),
    ("progress", {"type": "progress", "uuid": "p"}, "other"),
    ("no type", {"uuid": "n"}, "other"),
    ("no id", {"type": "assistant", "message": {"id": "msg_1"}}, "other"),
    ("an empty id", {"type": "assistant", "uuid": ""}, "other"),
]


@pytest.mark.parametrize(("record", "kind"), [pytest.param(record, kind, id=name) for name, record, kind in KINDS])
def test_each_record_is_of_one_kind(record: dict[str, Any], kind: Kind) -> None:
    """The shapes of eight releases, each with what it counts as."""
    assert entry_of(record, 0).kind == kind


def test_conversation_is_what_a_person_or_the_model_said() -> None:
    """A record that is no conversation never makes anything stale."""
    assert {"prompt", "answer", "boundary", "note", "shell"} == CONVERSATION
    assert not entry_of(user("<command-name>/cost</command-name>"), 0).is_conversation


@pytest.mark.parametrize("record", [record for _, record, kind in KINDS if kind in CONVERSATION])
def test_a_side_chain_is_no_conversation(record: dict[str, Any]) -> None:
    """Whatever a subagent says stands off the main chain, and is no leaf either."""
    entry = entry_of({**record, "isSidechain": True}, 0)
    assert entry.kind == "other"
    assert not entry.in_tree


def test_the_parent_of_a_compaction_is_the_record_that_it_replaces() -> None:
    """A boundary stands at a root of its own, and names what it continues beside that."""
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None, "logicalParentUuid": "a9"}
    assert entry_of(boundary, 0).parent == "a9"
    assert entry_of(boundary, 0).physical_parent is None
    both = entry_of({**boundary, "parentUuid": "p"}, 0)
    assert both.parent == both.physical_parent == "p"


@pytest.mark.parametrize(
    ("metadata", "segment"),
    [
        ({"preservedSegment": {"headUuid": "h", "anchorUuid": "a", "tailUuid": "t"}}, ("h", "a", "t")),
        ({"preservedSegment": {"headUuid": "h", "tailUuid": 7}}, ("h", "", "")),
        ({"preservedSegment": {}}, None),
        ({"preservedSegment": "h"}, None),
        ({}, None),
        ("h", None),
    ],
)
def test_a_compaction_may_keep_a_segment(metadata: object, segment: tuple[str, str, str] | None) -> None:
    """Only a compaction does."""
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "compactMetadata": metadata}
    assert entry_of(boundary, 0).segment == segment
    assert entry_of({**boundary, "subtype": "turn_duration"}, 0).segment is None


@pytest.mark.parametrize(
    ("entrypoint", "writer"),
    [("cli", "typed"), ("claude-vscode", "typed"), ("sdk-cli", "sdk"), ("sdk-ts", "sdk"), (None, "unknown"), (7, "unknown")],
)
def test_the_entry_point_tells_who_writes(entrypoint: object, writer: str) -> None:
    """Releases up to 2.1.61 name none."""
    assert writer_of(entrypoint) == writer


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-11-30T11:35:00.500Z", 1796038500.5),
        ("2026-11-30T12:35:00.500+01:00", 1796038500.5),
        ("2026-11-30T11:35:00", None),
        ("soon", None),
        (None, None),
        (1796038500, None),
    ],
)
def test_a_stamp_without_a_zone_is_no_time(text: object, at: float | None) -> None:
    """Only what is certainly a moment counts as one."""
    assert seconds(text) == at


@pytest.mark.case("C77")
def test_half_a_character_is_kept_as_it_is() -> None:
    """A lone surrogate in a text neither raises nor changes what the record is."""
    assert entry_of(user("half \ud83d of it"), 0).kind == "prompt"
    assert texts_of(user("half \ud83d of it")) == ("half \ud83d of it",)


@given(RECORDS, MESSAGES | JSON, st.integers(min_value=0))
def test_no_record_raises(record: dict[str, Any], message: object, offset: int) -> None:
    """Whatever the members hold, there is an entry, and without an id it is not conversation."""
    entry = entry_of({**record, "message": message}, offset)
    assert entry.offset == offset
    assert not entry.is_conversation or entry.uuid
    assert entry.timestamp is None or math.isfinite(entry.timestamp)
    assert isinstance(texts_of({**record, "message": message}), tuple)
