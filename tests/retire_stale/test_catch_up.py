"""The text that gives back the turns which a fresh process lacks."""

from __future__ import annotations

import time
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccc_plugins.retire_stale.catch_up import catch_up
from ccc_plugins.retire_stale.evidence.branches import Turn
from ccc_plugins.retire_stale.judgement.entries import entry_of

TURNS = st.lists(
    st.builds(
        Turn,
        st.uuids().map(str),
        st.lists(st.text(st.characters(), max_size=60), max_size=2).map(tuple),
        st.lists(st.text(st.characters(), max_size=60), max_size=2).map(tuple),
    ),
    max_size=6,
    unique_by=lambda turn: turn.uuid,
)


def turn(asked: str, answered: str = "yes") -> Turn:
    return Turn(str(uuid.uuid4()), (asked,), (answered,))


def gives_back(text: str) -> tuple[str, ...] | None:
    """What a transcript tells later of a message that began with this text."""
    record = {"type": "user", "uuid": "u", "message": {"role": "user", "content": [{"type": "text", "text": text}]}}
    return entry_of(record, 0).gives_back


def test_nothing_lacking_is_nothing_to_give() -> None:
    """Without a turn there is no text."""
    assert catch_up([], 20_000) is None


def test_the_turns_stand_in_their_order_with_who_said_what() -> None:
    """Each turn is told whole, oldest first, and the marker names them all."""
    turns = [turn("first question", "first answer"), turn("second question", "second answer")]
    given_back = catch_up(turns, 20_000)
    assert given_back is not None
    said = ["[user] first question", "[assistant] first answer", "[user] second question", "[assistant] second answer"]
    assert [line for line in given_back.text.splitlines() if line.startswith(("[user]", "[assistant]"))] == said
    assert given_back.cut == 0
    assert gives_back(given_back.text) == given_back.turns == tuple(t.uuid for t in turns)


def test_the_oldest_are_cut_first_and_the_text_says_so() -> None:
    """What does not fit is not marked as given back, so that it is not believed to be known."""
    turns = [turn("old " * 100), turn("middle"), turn("new")]
    given_back = catch_up(turns, 500)
    assert given_back is not None
    assert given_back.cut == 1
    assert "[earlier turns are left out here: 1]" in given_back.text
    assert "old" not in given_back.text
    assert gives_back(given_back.text) == tuple(t.uuid for t in turns[1:])


def test_the_newest_is_shortened_when_it_alone_is_too_long() -> None:
    """Some of the last turn is better than nothing of it."""
    turns = [turn("old"), turn("new " * 1000)]
    given_back = catch_up(turns, 600)
    assert given_back is not None
    assert len(given_back.text) <= 600
    assert "new new" in given_back.text
    assert given_back.text.count("[…]") == 1
    assert given_back.turns == (turns[1].uuid,)


@pytest.mark.parametrize("limit", [0, 50])
def test_without_room_it_is_still_said_that_turns_are_lacking(limit: int) -> None:
    """A limit that holds no turn leaves a short note, and marks nothing as given back."""
    given_back = catch_up([turn("secret one"), turn("secret two")], limit)
    assert given_back is not None
    assert "[earlier turns are left out here: 2]" in given_back.text
    assert "secret" not in given_back.text
    assert gives_back(given_back.text) == given_back.turns == ()


@given(turns=TURNS, limit=st.integers(0, 1500))
def test_it_keeps_to_its_limit_and_marks_what_it_holds(turns: list[Turn], limit: int) -> None:
    """Whatever was said, the text is no longer than allowed unless it is the bare note, and its marker tells exactly what it repeats."""
    given_back = catch_up(turns, limit)
    assert (given_back is None) == (not turns)
    if given_back is not None:
        assert len(given_back.text) <= limit or given_back.turns == ()
        assert gives_back(given_back.text) == given_back.turns == tuple(t.uuid for t in turns[given_back.cut :])


def test_thousands_of_turns_are_cut_at_once() -> None:
    """The time grows with what there is to say and not with its square: ten thousand long turns take a moment."""
    turns = [turn("x" * 2000) for _ in range(10_000)]
    began = time.monotonic()
    given_back = catch_up(turns, 20_000)
    assert time.monotonic() - began < 5
    assert given_back is not None
    assert 0 < len(given_back.turns) < 10
