"""Two requests to the Messages API, block for block.

What cannot be the same is made the same first, each thing by its name in `NORMALISATIONS`, and only where a kind of turn asks for it.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

Message = Mapping[str, Any]
Block = Mapping[str, Any]
Part = tuple[str, Block]
"""A block, behind the role of who said it."""


def differences(healed: Sequence[Message], fresh: Sequence[Message], normalised: Sequence[str] = ()) -> list[str]:
    """Where two requests differ, as the lines of a diff; none when they say the same to the model.

    `normalised`: names of `NORMALISATIONS`, in the order in which they are to be made.
    """
    before, after = ([*_lines(messages, normalised)] for messages in (fresh, healed))
    return list(difflib.unified_diff(before, after, "fresh", "healed", lineterm="", n=0))


def _lines(messages: Sequence[Message], normalised: Sequence[str]) -> Iterator[str]:
    """A line for each block, and one where another role begins."""
    parts = [(str(message["role"]), block) for message in messages for block in blocks(message)]
    for name in ("cache_control", *normalised):
        parts = list(NORMALISATIONS[name](parts))
    before = ""
    for role, block in parts:
        if role != before:
            yield f"--- {role}"
        yield json.dumps(block, sort_keys=True, ensure_ascii=False)
        before = role


def blocks(message: Message) -> list[Block]:
    """The blocks of a message; a text alone is short for one block of text."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _without_cache_control(parts: Iterable[Part]) -> Iterator[Part]:
    """`cache_control` says how much of the request the API may keep for the next one. It stands at the last blocks, whichever those are."""
    for role, block in parts:
        yield role, {name: value for name, value in block.items() if name != "cache_control"}


def _without_paragraphs(parts: Iterable[Part], left_out: re.Pattern[str]) -> Iterator[Part]:
    """Without the paragraphs of the system's messages that begin so, nor what is empty then."""
    for role, block in parts:
        said = block.get("text")
        if role != "system" or not isinstance(said, str):
            yield role, block
        elif kept := [paragraph for paragraph in said.split("\n\n") if not left_out.match(paragraph)]:
            yield role, {**block, "text": "\n\n".join(kept)}


_ANNOUNCED = re.compile(
    r"The following tools just became available|The following deferred tools are (now|no longer) available"
    r"|New agent types are now available|The following agent types are no longer available|This is ambient context|# Environment"
)


def _without_announcements(parts: Iterable[Part]) -> Iterator[Part]:
    """A terminal has another environment and other tools than a headless. It announces them in its turn, and a process that is resumed
    takes them back. For a process that is healed they never came, and never went.
    """
    return _without_paragraphs(((role, block) for role, block in parts if block.get("type") != "tool_addition"), _ANNOUNCED)


def _without_token_budget(parts: Iterable[Part]) -> Iterator[Part]:
    """2.1.275 tells behind each answer how many tokens are left, which each process counts for itself."""
    return _without_paragraphs(parts, re.compile("<total_tokens>"))


NO_RESPONSE = "No response requested."


def _without_no_response(parts: Iterable[Part]) -> Iterator[Part]:
    """Behind a message that has no answer, such as the echo of `/exit`, a process that is resumed says this in the model's name.

    One that is healed joins the message with the next one, with a line break between.
    """
    found: list[Part] = []
    for role, block in parts:
        if role == "assistant" and block.get("text") == NO_RESPONSE:
            above, text = found.pop()
            found.append((above, {**text, "text": f"{text['text']}\n"}))
        else:
            found.append((role, block))
    return iter(found)


_MID_TURN = re.compile(
    r"(?:\n\n<system-reminder>\n)?The user sent a new message while you were working:\n(?P<text>.*?)"
    r"\n\n(?:IMPORTANT: After completing your current task|This is how Claude Code surfaces messages)[^<]*(?:</system-reminder>)?\Z",
    re.DOTALL,
)


def _with_mid_turn_texts_alone(parts: Iterable[Part]) -> Iterator[Part]:
    """A text that was typed in the middle of a turn gets a preface from Claude Code, in words and a place that differ by the release:
    behind a tool's result, or as the system. History that is given cannot be prefaced, so there the person's words stand alone.
    """
    for role, block in parts:
        name = "content" if block.get("type") == "tool_result" else "text"
        said = block.get(name)
        found = _MID_TURN.search(said) if isinstance(said, str) else None
        if found is None:
            yield role, block
            continue
        assert isinstance(said, str)
        if before := said[: found.start()]:
            yield role, {**block, name: before}
        yield "user", {"type": "text", "text": found["text"]}


NORMALISATIONS: dict[str, Callable[[Iterable[Part]], Iterator[Part]]] = {
    "cache_control": _without_cache_control,
    "token budget": _without_token_budget,
    "announcements": _without_announcements,
    "no response requested": _without_no_response,
    "mid-turn preface": _with_mid_turn_texts_alone,
}
"""By name; each says in its docstring why it cannot be the same. `cache_control` is left out everywhere."""
