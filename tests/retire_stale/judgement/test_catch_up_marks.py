"""A catch-up is known by its mark in whatever record Claude Code made of the message that it stood in front of."""

from __future__ import annotations

from typing import Any

import pytest

from ccc_plugins.retire_stale.catch_up import catch_up
from ccc_plugins.retire_stale.evidence.branches import Turn
from ccc_plugins.retire_stale.judgement.branches import Tree, lacking
from ccc_plugins.retire_stale.judgement.entries import Kind, entry_of

LOST = "d81099cf-92d4-43cc-bd56-fcd7025ea463"
GIVEN = catch_up([Turn(LOST, ("said elsewhere",), ("answered elsewhere",))], 10_000)
assert GIVEN is not None
CATCH_UP = {"type": "text", "text": GIVEN.text}
LOCAL = "<command-name>/cost</command-name>\n<command-message>cost</command-message>\n<command-args></command-args>"
CUSTOM = "<command-message>hello</command-message>\n<command-name>/hello</command-name>"


def user(uuid: str, parent: str | None, *blocks: dict[str, str] | str, **members: Any) -> dict[str, Any]:
    content = blocks[0] if len(blocks) == 1 and isinstance(blocks[0], str) else list(blocks)
    return {"type": "user", "uuid": uuid, "parentUuid": parent, "message": {"role": "user", "content": content}, **members}


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        pytest.param(user("m", "a", CATCH_UP, {"type": "text", "text": "go on"}), "prompt", id="plain text"),
        pytest.param(user("m", "a", CATCH_UP, {"type": "text", "text": LOCAL}), "echo", id="built-in command"),
        pytest.param(user("m", "a", CATCH_UP, {"type": "text", "text": "Say hello"}, isMeta=True), "other", id="custom command"),
    ],
)
def test_the_mark_is_read_whatever_it_stands_in_front_of(record: dict[str, Any], kind: Kind) -> None:
    """A record is of the kind that the person's own text makes it, and tells which turns its catch-up gave back."""
    entry = entry_of(record, 0)
    assert entry.kind == kind
    assert entry.gives_back == (LOST,)


def test_what_a_subagent_was_told_gives_nothing_back() -> None:
    """Off the main chain a mark says nothing."""
    assert entry_of(user("m", "a", CATCH_UP, isSidechain=True), 0).gives_back is None


def test_a_turn_given_back_by_a_custom_command_is_not_lacking_any_more() -> None:
    """The branch that the expansion of a slash command stands on has the turn, so it is not given back twice."""
    records = [
        user("first", None, "first"),
        user(LOST, "first", "said elsewhere", entrypoint="cli"),
        user("busy", "first", "meanwhile", entrypoint="sdk-cli"),
        user("command", "busy", CUSTOM, entrypoint="sdk-cli"),
        user("expansion", "command", CATCH_UP, {"type": "text", "text": "Say hello"}, isMeta=True, entrypoint="sdk-cli"),
    ]
    entries = [entry_of(record, offset) for offset, record in enumerate(records)]
    assert [entry.uuid for entry in lacking(Tree.of(entries[:4]), "command")] == [LOST]
    assert lacking(Tree.of(entries), "expansion") == ()
