"""The judge of the stories sees what it must see, by made files; needs no Claude Code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.real.files import Transcript, own_words
from tests.real.judge import caught_up, open_turn
from tests.real.runs import rows
from tests.real.stories import STORIES
from tests.real.table import DOCUMENT, between_marks, markdown, with_table

TURN = "d81099cf-92d4-43cc-bd56-fcd7025ea463"
CATCH_UP = f'<ccc-catch-up turns="{TURN}">\n[user] elsewhere\n</ccc-catch-up>'


def user(uuid: str, parent: str | None, *texts: str, **members: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text} for text in texts]
    return {"type": "user", "uuid": uuid, "parentUuid": parent, "message": {"role": "user", "content": content}, **members}


def answer(uuid: str, parent: str, text: str, model: str = "m") -> dict[str, Any]:
    message = {"model": model, "content": [{"type": "text", "text": text}]}
    return {"type": "assistant", "uuid": uuid, "parentUuid": parent, "timestamp": "2026-11-30T13:00:00.000Z", "message": message}


def transcript(directory: Path, *records: dict[str, Any]) -> Transcript:
    folder = directory / "projects" / "-p"
    folder.mkdir(parents=True)
    (folder / "s.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return Transcript(directory, "s")


def test_a_second_branch_is_counted(tmp_path: Path) -> None:
    """Two texts of which none hangs below the other make a fork, whoever wrote them; a text of nobody's concern does not count."""
    seen = transcript(tmp_path, user("a", None, "one"), user("b", "a", "two"), user("c", "a", "three"), user("d", "a", "else"))
    assert seen.forks({"one", "two"}) == 0
    assert seen.forks({"one", "two", "three"}) == 1


def test_an_answer_belongs_to_the_text_right_above_it(tmp_path: Path) -> None:
    """Not to one further up, and what Claude Code made up itself is no answer."""
    records = [
        user("a", None, "one"),
        answer("x", "a", "No response requested.", "<synthetic>"),
        user("b", "x", "two"),
        answer("y", "b", "yes"),
    ]
    seen = transcript(tmp_path, *records)
    assert (seen.answered("one"), seen.answered("two")) == (False, True)
    assert [found.text for found in seen.answers()] == ["yes"]


@pytest.mark.parametrize("texts", [(CATCH_UP, "go on"), (f"{CATCH_UP}\n\ngo on",)])
def test_a_persons_words_are_told_from_a_catch_up(tmp_path: Path, texts: tuple[str, ...]) -> None:
    """In a block of its own or before the text in one, also where a custom command made a meta record of it."""
    seen = transcript(tmp_path, user("a", None, *texts), user("b", "a", CATCH_UP, "expansion", isMeta=True))
    assert [said.text for said in seen.said] == ["go on"]
    assert caught_up(seen) == [TURN, TURN]
    assert own_words("plain ") == "plain"


def test_a_text_taken_up_mid_turn_is_found(tmp_path: Path) -> None:
    """It stands in an attachment."""
    queued = {"type": "attachment", "uuid": "q", "parentUuid": "a", "attachment": {"type": "queued_command", "prompt": "two"}}
    assert [said.text for said in transcript(tmp_path, user("a", None, "one"), queued).said] == ["one", "two"]


@pytest.mark.parametrize(
    ("events", "word"),
    [
        ([], None),
        ([{"type": "system", "subtype": "init"}, {"type": "result"}], None),
        ([{"type": "result"}, {"type": "system", "subtype": "init"}], "init"),
        ([{"type": "system", "subtype": "session_state_changed", "state": "running"}], "session_state_changed"),
        ([{"type": "assistant", "parent_tool_use_id": None}], "assistant"),
        ([{"type": "result"}, {"type": "assistant", "parent_tool_use_id": "subagent"}], None),
    ],
)
def test_a_turn_that_was_never_closed_is_seen(tmp_path: Path, events: list[dict[str, Any]], word: str | None) -> None:
    """By the log of the process that ran it."""
    log = tmp_path / "log"
    log.write_text("".join(json.dumps(event) + "\n" for event in events))
    assert open_turn(log) == word


def test_the_table_is_written_between_its_marks() -> None:
    """Old rows go, everything else stays; releases are in order, and a story that failed is seen."""
    outcomes = {"2.1.9": {"a": {"passed": False, "seconds": 3.2}}, "2.1.10": {"a-": {"passed": True, "seconds": 1.0}}}
    table = markdown(rows({release: outcomes[release] for release in ("2.1.10", "2.1.9")}))
    assert table.splitlines()[0] == "|  | story | 2.1.9 | 2.1.10 |"
    assert "FAILS, 3 s" in table
    document = with_table("before\n<!-- table -->\nold\n<!-- end of table -->\nafter\n", table)
    assert between_marks(document) == table
    assert document.startswith("before\n")
    assert document.endswith("after\n")
    assert "old" not in document


def test_the_document_shows_every_story_and_none_that_failed() -> None:
    """The table of the document is that of the stories as they are."""
    table = between_marks(DOCUMENT.read_text(encoding="utf-8"))
    shown = [line.split(" | ")[0].strip("| ") for line in table.splitlines()[2:]]
    assert shown == sorted([*STORIES, *(f"{key}-" for key, story in STORIES.items() if story.control)])
    assert "FAILS" not in table
