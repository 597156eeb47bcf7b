"""The comparison of requests sees what it must see, by made ones; needs no Claude Code."""

from __future__ import annotations

from typing import Any

import pytest

from tests.real.requests.comparison import NORMALISATIONS, differences
from tests.real.requests.kinds import KINDS, NORMALISED, RELEASES


def said(role: str, *texts: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text} for text in texts]}


def result(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": text}]}


TURNS = [said("user", "one"), said("assistant", "yes"), said("user", "two")]


@pytest.mark.parametrize(
    "other",
    [
        TURNS[:-1],
        TURNS[:1] + TURNS[2:],
        [TURNS[0], said("assistant", "no"), TURNS[2]],
        [said("user", "one", "more"), *TURNS[1:]],
        [said("system", "one"), *TURNS[1:]],
        [TURNS[0], TURNS[2], TURNS[1]],
        [said("user", "one\n"), *TURNS[1:]],
        [TURNS[0], result("yes"), TURNS[2]],
    ],
    ids=["shorter", "no answer", "another answer", "a block more", "another role", "another order", "a line break", "another block"],
)
def test_a_difference_is_seen(other: list[dict[str, Any]]) -> None:
    """Whatever is said more, less, by another or elsewhere, in either of the two; also where everything is normalised."""
    assert differences(TURNS, other)
    assert differences(other, TURNS)
    assert differences(TURNS, other, list(NORMALISATIONS))


def test_the_same_is_the_same() -> None:
    """A text alone is a block of text, and where the API's cache is marked says nothing to the model."""
    marked = {"role": "user", "content": [{"type": "text", "text": "two", "cache_control": {"type": "ephemeral"}}]}
    assert differences(TURNS, [{"role": "user", "content": "one"}, TURNS[1], marked]) == []


def test_a_difference_is_told_with_both_sides() -> None:
    """What the fresh process has and the healed one lacks stands behind a minus."""
    told = differences(TURNS[:1], TURNS)
    assert [line for line in told if line.startswith("-")][1:] == [
        "---- assistant",
        '-{"text": "yes", "type": "text"}',
        "---- user",
        '-{"text": "two", "type": "text"}',
    ]


PREFACED = "The user sent a new message while you were working:\ntwo\n\n"
OLD = f"done\n\n<system-reminder>\n{PREFACED}IMPORTANT: After completing your current task, you MUST.\n</system-reminder>"
NEW = f"{PREFACED}This is how Claude Code surfaces messages the user sends mid-turn."


@pytest.mark.parametrize(
    ("name", "healed", "fresh"),
    [
        ("token budget", TURNS, [*TURNS, said("system", "<total_tokens>15 tokens left</total_tokens>")]),
        ("announcements", TURNS, [*TURNS, said("system", "# Environment\n - Shell: bash\n\nNew agent types are now available: x")]),
        (
            "no response requested",
            [said("user", "one\n", "two")],
            [said("user", "one"), said("assistant", "No response requested."), said("user", "two")],
        ),
        ("mid-turn preface", [result("done"), said("user", "two")], [result(OLD)]),
        ("mid-turn preface", [result("done"), said("user", "two")], [result("done"), said("system", NEW)]),
        ("mid-turn preface", [result("done"), said("user", "two")], [result("done"), said("user", NEW)]),
    ],
)
def test_what_cannot_be_the_same_is_named(name: str, healed: list[dict[str, Any]], fresh: list[dict[str, Any]]) -> None:
    """Under its name it makes no difference, and without it does."""
    assert differences(healed, fresh)
    assert differences(healed, fresh, [name]) == []


@pytest.mark.parametrize("name", [name for name in NORMALISATIONS if name != "cache_control"])
def test_nothing_else_goes_with_what_is_named(name: str) -> None:
    """A person's words stay where they are, also beside what is made the same, and so does anything else that the system says."""
    for other in ("<total_tokens>", "# Environment", PREFACED, "No response requested."):
        assert differences(TURNS, [said("user", other), *TURNS], [name])
    assert differences(TURNS, [*TURNS, said("system", "<total_tokens>15</total_tokens>\n\nsaid by a hook\n\n# Environment")], [name])
    assert differences([result("done"), said("user", "three")], [result(OLD)], [name])


def test_every_name_is_one() -> None:
    """What the kinds and the releases name is there, and of a kind that is known to differ is said on which release."""
    named = [*NORMALISED.values(), *(kind.normalised for kind in KINDS.values())]
    assert {name for names in named for name in names} <= set(NORMALISATIONS)
    assert {release for kind in KINDS.values() for release in kind.faults} | set(NORMALISED) <= set(RELEASES)
    assert any(kind.became == "neither" for kind in KINDS.values())
