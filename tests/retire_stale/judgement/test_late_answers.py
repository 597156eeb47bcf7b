"""What a fork in the middle of a headless's turn leaves out: the other's turns, or the answer that came late."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ccc_plugins.retire_stale.evidence.branches import Turn, read_tree, turns_of
from ccc_plugins.retire_stale.judgement.branches import lacking

NOTHING_ASKED = "No response requested."


def user(uuid: str, parent: str | None, text: str, entrypoint: str = "sdk-cli") -> dict[str, Any]:
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    return {"type": "user", "uuid": uuid, "parentUuid": parent, "entrypoint": entrypoint, "message": message}


def assistant(uuid: str, parent: str, *blocks: str, entrypoint: str = "sdk-cli", message_id: str | None = None) -> dict[str, Any]:
    """An answer with these texts; `tool:` begins a call instead. What Claude Code says itself is marked as it marks it."""
    content = [{"type": "tool_use", "id": b, "name": "Bash"} if b.startswith("tool:") else {"type": "text", "text": b} for b in blocks]
    message = {"id": message_id or f"msg-{uuid}", "model": "<synthetic>" if blocks == (NOTHING_ASKED,) else "m", "content": content}
    return {"type": "assistant", "uuid": uuid, "parentUuid": parent, "entrypoint": entrypoint, "message": message}


def result(uuid: str, parent: str, call: str) -> dict[str, Any]:
    content = [{"type": "tool_result", "tool_use_id": call, "content": "done"}]
    return {"type": "user", "uuid": uuid, "parentUuid": parent, "entrypoint": "sdk-cli", "message": {"content": content}}


def lacking_turns(directory: Path, leaf: str, *records: dict[str, Any]) -> tuple[Turn, ...]:
    path = directory / "transcript.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    tree = read_tree(path)
    return turns_of(path, tree, lacking(tree, leaf))


@pytest.mark.parametrize("writer", ["cli", "sdk-cli"])
def test_the_other_turn_is_given_back_when_the_late_answer_is_read(tmp_path: Path, writer: str) -> None:
    """Another process, a terminal or a second headless, took a turn meanwhile; the branch of the late answer lacks it."""
    records = [
        user("asked", None, "long work"),
        assistant("filler", "asked", NOTHING_ASKED, entrypoint=writer),
        user("other", "filler", "meanwhile", writer),
        assistant("answered", "other", "noted", entrypoint=writer),
        assistant("late", "asked", "work done"),
    ]
    assert lacking_turns(tmp_path, "late", *records) == (Turn("other", ("meanwhile",), ("noted",)),)


@pytest.mark.parametrize("writer", ["cli", "sdk-cli"])
@pytest.mark.parametrize("late_last", [False, True])
def test_the_late_answer_is_given_back_with_its_prompt_when_the_other_turn_is_read(tmp_path: Path, writer: str, late_last: bool) -> None:
    """Whoever opened the session in the middle of the turn has the prompt without its answer, whichever was written first."""
    late = [assistant("late", "asked", "work"), assistant("more", "late", "done")]
    other = [
        assistant("filler", "asked", NOTHING_ASKED, entrypoint=writer),
        user("other", "filler", "afterwards", writer),
        assistant("answered", "other", "noted", entrypoint=writer),
    ]
    records = [user("asked", None, "long work"), *(other + late if late_last else late + other)]
    assert lacking_turns(tmp_path, "answered", *records) == (Turn("late", ("long work",), ("work", "done")),)


@pytest.mark.parametrize("late_last", [False, True])
def test_attachments_of_the_prompt_are_no_branch_that_was_left_behind(tmp_path: Path, late_last: bool) -> None:
    """They are written with the prompt, before the terminal opens, and the answer hangs below them (behind a compaction, 2.1.119)."""
    late = [assistant("late", "attached", "work done")]
    other = [
        assistant("filler", "asked", NOTHING_ASKED, entrypoint="cli"),
        user("other", "filler", "afterwards", "cli"),
        assistant("answered", "other", "noted", entrypoint="cli"),
    ]
    attached = {"type": "attachment", "uuid": "attached", "parentUuid": "asked", "entrypoint": "sdk-cli", "attachment": {"type": "file"}}
    records = [user("asked", None, "long work"), attached, *(other + late if late_last else late + other)]
    assert lacking_turns(tmp_path, "answered", *records) == (Turn("late", ("long work",), ("work done",)),)


def test_a_late_answer_is_given_back_with_the_turns_behind_it(tmp_path: Path) -> None:
    """A message that waited in the busy process made a turn of its own, on the same branch."""
    records = [
        user("asked", None, "long work"),
        assistant("late", "asked", "work done"),
        user("queued", "late", "and then?"),
        assistant("then", "queued", "that"),
        assistant("filler", "asked", NOTHING_ASKED, entrypoint="cli"),
        user("other", "filler", "afterwards", "cli"),
    ]
    found = lacking_turns(tmp_path, "other", *records)
    assert found == (Turn("late", ("long work",), ("work done",)), Turn("queued", ("and then?",), ("that",)))


def test_a_late_answer_is_given_back_once(tmp_path: Path) -> None:
    """The mark of the catch-up on the branch names it."""
    late = "d81099cf-92d4-43cc-bd56-fcd7025ea463"
    records = [
        user("asked", None, "long work"),
        assistant(late, "asked", "work done"),
        assistant("filler", "asked", NOTHING_ASKED, entrypoint="cli"),
        user("other", "filler", "afterwards", "cli"),
        user("next", "other", f'<ccc-catch-up turns="{late}">\n[assistant] work done\n</ccc-catch-up>'),
    ]
    assert lacking_turns(tmp_path, "next", *records) == ()


@pytest.mark.parametrize("leaf", ["went-on", "first-result"])
def test_parallel_tools_leave_nothing_out(tmp_path: Path, leaf: str) -> None:
    """The calls of one message and their results fork the tree too, whichever of them is read."""
    records = [
        user("asked", None, "two things"),
        assistant("first-call", "asked", "tool:a", message_id="msg"),
        assistant("second-call", "first-call", "tool:b", message_id="msg"),
        result("second-result", "second-call", "tool:b"),
        result("first-result", "first-call", "tool:a"),
        assistant("went-on", "second-result", "both done"),
    ]
    assert lacking_turns(tmp_path, leaf, *records[: 5 if leaf == "first-result" else 6]) == ()


def test_a_call_without_words_is_no_turn(tmp_path: Path) -> None:
    """A headless that was ended in the middle of its tools has said nothing that could be given back."""
    records = [
        user("asked", None, "long work"),
        assistant("call", "asked", "tool:a"),
        assistant("filler", "asked", NOTHING_ASKED, entrypoint="cli"),
        user("other", "filler", "afterwards", "cli"),
    ]
    assert lacking_turns(tmp_path, "other", *records) == ()


def test_a_process_beside_a_terminal_in_a_turn_is_not_taken_for_the_terminal(tmp_path: Path) -> None:
    """F03 on releases that name no entry point: the snapshot tells that the prompt was typed, not what another process says below it."""
    records: list[dict[str, Any]] = [
        {"type": "file-history-snapshot", "messageId": "asked", "snapshot": {}},
        user("asked", None, "long work in a terminal"),
        assistant("filler", "asked", NOTHING_ASKED),
        user("other", "filler", "meanwhile"),
        assistant("answered", "other", "noted"),
        assistant("late", "asked", "work done"),
    ]
    for record in records:
        record.pop("entrypoint", None)
    assert lacking_turns(tmp_path, "late", *records) == (Turn("other", ("meanwhile",), ("noted",)),)
