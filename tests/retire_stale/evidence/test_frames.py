"""The lines that give a headless what it lacks: what is said in them, and what is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ccc_plugins.retire_stale.evidence.branches import read_tree
from ccc_plugins.retire_stale.evidence.frames import closing_frame, frames_of
from ccc_plugins.retire_stale.judgement.copies import copy_id
from ccc_plugins.retire_stale.judgement.history import Lack
from tests.retire_stale.builders import Session

TEXT = {"type": "text", "text": "hi"}


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def told(session: Session, *records: dict[str, Any], copies: bool = False, tasks: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
    """The lines that give these records, as JSON."""
    tree = read_tree(session.transcript)
    ids = [record["uuid"] for record in records]
    lack = Lack(entries=tuple(tree.nodes[uuid] for uuid in ids), copies=frozenset(ids if copies else ()))
    return [json.loads(frame.line) for frame in frames_of(session.transcript, session.id, lack, tasks)]


def test_a_turn_is_given_as_it_was_said(session: Session) -> None:
    """Messages under their own ids, unchanged; only a person's asks for no answer, and is acknowledged."""
    prompt = session.user(None, "question")
    answer = session.assistant(prompt["uuid"], TEXT)
    user, assistant = told(session, prompt, answer)
    common = {"session_id": session.id, "parent_tool_use_id": None}
    assert user == {"type": "user", "uuid": prompt["uuid"], "shouldQuery": False, "message": prompt["message"], **common}
    assert assistant == {"type": "assistant", "uuid": answer["uuid"], "message": answer["message"], **common}


def test_a_copy_has_ids_of_its_own(session: Session) -> None:
    """Its record's, and an answer's message id, by which a reader would put the two together."""
    prompt = session.user(None, "question")
    answer = session.assistant(prompt["uuid"], TEXT)
    user, assistant = told(session, prompt, answer, copies=True)
    assert (user["uuid"], assistant["uuid"]) == (copy_id(prompt["uuid"]), copy_id(answer["uuid"]))
    assert assistant["message"]["id"] != answer["message"]["id"]
    assert {**assistant["message"], "id": 0} == {**answer["message"], "id": 0}


@pytest.mark.parametrize(
    ("content", "given"),
    [
        ("/compact", "\u2060/compact"),
        ([TEXT, {"type": "text", "text": "/cost now"}], [TEXT, {"type": "text", "text": "\u2060/cost now"}]),
        ([{"type": "text", "text": "/cost"}, TEXT], [{"type": "text", "text": "/cost"}, TEXT]),
        (" /compact", " /compact"),
        ("a /path", "a /path"),
        ("", ""),
        ([], []),
    ],
)
def test_nothing_is_run_as_a_command(session: Session, content: object, given: object) -> None:
    """What Claude Code would run gets a mark in front that nobody sees; all else stays as it was."""
    (line,) = told(session, session.user(None, content))
    assert line["message"]["content"] == given


def test_a_text_from_the_middle_of_a_turn_is_given_like_any_other(session: Session) -> None:
    """Under the id of its attachment; other attachments say nothing."""
    queued = session.attachment(None, "queued_command", prompt="typed while busy")
    other = session.attachment(queued["uuid"], "total_tokens_reminder", used=1)
    (line,) = told(session, queued, other)
    assert (line["type"], line["uuid"], line["message"]) == ("user", queued["uuid"], {"role": "user", "content": "typed while busy"})


def test_a_call_without_a_result_is_left_out(session: Session) -> None:
    """A tool that was cut off by the end of its process: a call that nobody answers is refused by the model."""
    prompt = session.user(None, "do it")
    done = session.assistant(prompt["uuid"], {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}})
    result = session.user(done["uuid"], [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}])
    cut = session.assistant(result["uuid"], {"type": "tool_use", "id": "t2", "name": "Bash", "input": {}})
    assert [line["uuid"] for line in told(session, prompt, done, result, cut)] == [prompt["uuid"], done["uuid"], result["uuid"]]


def test_what_claude_code_says_itself_is_left_out(session: Session) -> None:
    """A summary, and what it said in the model's name."""
    summary = session.user(None, "what happened so far", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    made_up = session.assistant(summary["uuid"], message={"role": "assistant", "model": "<synthetic>", "content": [TEXT]})
    assert told(session, summary, made_up) == []


def test_what_another_says_of_its_own_tasks_is_left_out(session: Session) -> None:
    """A second process takes the first one's background task for killed; of others' tasks it tells the truth."""

    def notice(task: str) -> dict[str, Any]:
        text = f"<task-notification>\n<task-id>{task}</task-id>\n<status>killed</status>\n</task-notification>"
        return session.user(session.last, text, origin={"kind": "task-notification"})

    own, others = notice("b1own"), notice("b2other")
    assert [line["uuid"] for line in told(session, own, others, tasks=frozenset({"b1own"}))] == [others["uuid"]]


def test_an_answer_that_speaks_of_a_task_is_no_notice(session: Session) -> None:
    """Only what Claude Code tells of a task is left out, not what anybody says about it."""
    answer = session.assistant(None, {"type": "text", "text": "<task-notification> <task-id>b1own</task-id>"})
    assert [line["uuid"] for line in told(session, answer, tasks=frozenset({"b1own"}))] == [answer["uuid"]]


def test_the_end_of_the_branch_is_given_as_an_answer_that_says_nothing(session: Session) -> None:
    """A `last-prompt` may name a record that cannot be given: with its id on the headless's line, what that says next is read."""
    prompt = session.user(None, "question")
    answer = session.assistant(prompt["uuid"], TEXT)
    end = session.system(answer["uuid"], "turn_duration")
    tree = read_tree(session.transcript)
    entries = (tree.nodes[prompt["uuid"]], tree.nodes[answer["uuid"]])
    *_, last = frames_of(session.transcript, session.id, Lack(entries=entries, end=end["uuid"]))
    said = json.loads(last.line)
    assert (said["type"], said["uuid"], said["message"]["model"]) == ("assistant", end["uuid"], "<synthetic>")
    assert said["message"]["content"] == [{"type": "text", "text": ""}]
    assert len(frames_of(session.transcript, session.id, Lack(entries=entries, end=answer["uuid"]))) == 2


def test_half_a_surrogate_pair_is_not_handed_on(session: Session) -> None:
    """Nothing that the model would refuse for ever gets into one more memory; a line stays one line for any reader."""
    prompt = session.user(None, "half \ud83d and whole \U0001f600 \u2028 end")
    tree = read_tree(session.transcript)
    (frame,) = frames_of(session.transcript, session.id, Lack(entries=(tree.nodes[prompt["uuid"]],)))
    assert json.loads(frame.line)["message"]["content"] == "half \ufffd and whole \U0001f600 \u2028 end"
    assert frame.line.isascii()


def test_the_closing_line_says_nothing() -> None:
    """It asks for no answer, and has an id of its own each time."""
    one, other = closing_frame("s"), closing_frame("s")
    assert json.loads(one.line)["message"] == {"role": "user", "content": []}
    assert json.loads(one.line)["shouldQuery"] is False
    assert one.message_id != other.message_id
    assert one.line.endswith(b"\n")
