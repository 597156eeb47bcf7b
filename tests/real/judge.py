"""What must hold at the end of every story, by what the API was sent and what is on the disk."""

from __future__ import annotations

import re
import reprlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.real.files import CATCH_UP, Transcript, json_lines, own_words
from tests.real.waiting import NotSeen, wait_until
from tests.real.world import Text, World

FORGOTTEN = "was answered without"
"""Stands in every complaint about an answer whose context lacked a turn."""


LAG_SECONDS = 5.0
"""How long the transcript may lag behind what a process printed; a second was measured on a quiet machine."""

_MARK = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def complaints(world: World) -> list[str]:
    """Whatever does not hold, in words."""
    with suppress(NotSeen):
        wait_until(lambda: all_written(world), "the last answers in the transcript", LAG_SECONDS)
    transcript = world.transcript()
    found = [*_not_once(world, transcript), *_branches(world, transcript)]
    for message in world.given:
        if message.by_ccc:
            found += _message(world, transcript, message)
    return [*found, *_given_back_twice(transcript), *_ended_at_work(world)]


def all_written(world: World) -> bool:
    """Whether the transcript holds an answer to every message."""
    transcript = world.transcript()
    return all(transcript.answered(given.text) for given in world.given if given.by_ccc)


def _not_once(world: World, transcript: Transcript) -> Iterator[str]:
    for given in world.given:
        if (times := len(transcript.of(given.text))) != 1:
            yield f"{given.text!r} is {times} times in the transcript"


def _branches(world: World, transcript: Transcript) -> Iterator[str]:
    """A branch is added where two wrote at once, which a story expects, and by a stale process, which none does."""
    found = transcript.forks({given.text for given in world.given})
    if found > world.forks:
        yield f"{found} branches were added, {world.forks} by turns that were taken at once"


def _message(world: World, transcript: Transcript, message: Text) -> Iterator[str]:
    # A request behind its answer is for what came since: the end of a background task, a tool's result.
    if (times := max(Counter(len(request["answers"]) for request in world.asked(message.text)).values(), default=0)) > 1:
        yield f"the API was asked {times} times for {message.text!r}"
    if not transcript.answered(message.text):
        yield f"{message.text!r} has no answer"
    if transcript.is_typed(message.text):
        # A terminal answers from its own memory.
        return
    yield from _forgotten(world, transcript, message)
    yield from _told_twice(world, message)
    yield from _forgotten_answers(world, transcript, message)


def _forgotten(world: World, transcript: Transcript, message: Text) -> Iterator[str]:
    """Every turn that was taken before the message was given must be in the context of its answer, or in a summary of what was before.

    Before means that the API was asked earlier. The order in the transcript would not do: 2.0.42 writes a headless's prompt only when
    its answer is there.
    """
    own = world.request_of(message.text)
    for given in world.given:
        request = world.request_of(given.text)
        if own is None or request is None or request["at"] >= own["at"]:
            continue
        summed_up = any(given.text in summary.text and summary.at < own["at"] for summary in transcript.summaries())
        if not summed_up and not any(given.text in text for text in own["texts"]):
            yield f"{message.text!r} {FORGOTTEN} {given.text!r}"


def _told_twice(world: World, message: Text) -> Iterator[str]:
    """No context holds a turn more than once."""
    own = world.request_of(message.text)
    if own is None:
        return
    for given in world.given:
        if (times := sum(own_words(text) == given.text for text in own["texts"])) > 1:
            yield f"{given.text!r} is {times} times in the context of {message.text!r}"


def _forgotten_answers(world: World, transcript: Transcript, message: Text) -> Iterator[str]:
    """So must every answer that the model had given by then, to whomever."""
    own = world.request_of(message.text)
    if own is None:
        return
    taken_back = [answer for text in world.taken_back for answer in transcript.answers_to(text)]
    for answer in transcript.answers():
        if answer in taken_back:
            continue
        known = answer.text in own["answers"] or any(answer.text in text for text in own["texts"])
        if answer.at < own["at"] and not known:
            yield f"{message.text!r} {FORGOTTEN} the answer {reprlib.repr(answer.text)}"


def caught_up(transcript: Transcript) -> list[str]:
    """The ids of the turns that were given back, each as often as it was."""
    texts = [block["text"] for record in transcript.records for block in _blocks(record) if block.get("type") == "text"]
    return [turn for text in texts if text.startswith(CATCH_UP) for turn in _MARK.findall(text.partition(">")[0])]


def _blocks(record: dict[str, Any]) -> list[dict[str, Any]]:
    content = (record.get("message") or {}).get("content") if record.get("type") == "user" else None
    return content if isinstance(content, list) else []


def _given_back_twice(transcript: Transcript) -> Iterator[str]:
    for turn, times in Counter(caught_up(transcript)).items():
        if times > 1:
            yield f"turn {turn} was given back {times} times"


def _ended_at_work(world: World) -> Iterator[str]:
    """The log of a process that was ended says that its last turn was over."""
    for log in world.home.glob(".local/state/ccc-host/heads/*.log"):
        if (open_since := open_turn(log)) is not None:
            yield f"the process of {log.name} ended in the middle of a turn: {open_since} was its last word"


def open_turn(log: Path) -> str | None:
    """What a headless printed of a turn that it never closed; None when it closed its last."""
    last: str | None = None
    for event in json_lines(log):
        last = _opens(event, last)
    return last


def _opens(event: dict[str, Any], last: str | None) -> str | None:
    match event:
        case {"type": "result"} | {"type": "system", "subtype": "session_state_changed", "state": "idle"}:
            return None
        case {"type": "assistant" | "user" as kind, "parent_tool_use_id": None}:
            return str(kind)
        case {"type": "system", "subtype": "init" | "session_state_changed" as kind}:
            return str(kind)
    return last
