"""The model that the simulator asks: what it answers depends on the last text alone, and shows everything it was sent.

    SLOW n          streams for n seconds, then recites
    UNTIL path      streams until the file is there, then recites
    RUN: command    runs the command in the foreground
    BG: command     runs the command in the background
    TWO:            two commands in one answer
    ASK: command    runs the command after a person allowed it
    TASK: text      a subagent that is told this text; `TASK: SLOW n` is one that takes n seconds
    THINK           thinks before it recites
    WAKE: n         arms a wake-up in n seconds
    CUSTOM: Name {} any other tool
    FAIL400 FAIL500 the request is refused
    CRASH           the process dies at once, in the middle of the turn
    DEAF            the process ignores SIGTERM from now on, then recites
    LATE n          recites; the transcript gets the answer n seconds after the turn's end

Any other text is answered by reciting.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ccc_hookspecs.claude.text import well_formed


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One tool call. `ask`: a person is asked first, whatever the permission mode is."""

    name: str
    input: dict[str, Any]
    ask: bool = False


@dataclass(frozen=True, slots=True)
class Say:
    """The answer's text, after `seconds` of streaming, or when the file `until` is there.

    `late`: seconds by which its record reaches the transcript after the turn's end.
    """

    text: str
    seconds: float = 0.0
    until: str | None = None
    thinking: str | None = None
    late: float | None = None


@dataclass(frozen=True, slots=True)
class UseTools:
    uses: tuple[ToolUse, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """The request failed with this HTTP status."""

    status: int
    message: str


@dataclass(frozen=True, slots=True)
class Misbehave:
    """The process does something to itself, then goes on with `then`."""

    what: Literal["crash", "deaf"]
    then: Say = field(default_factory=lambda: Say(""))


Reply: TypeAlias = Say | UseTools | Refused | Misbehave


def recite(memory: list[str]) -> str:
    """What an answer says: every user text that the process remembers."""
    return "SEEN " + json.dumps(memory, ensure_ascii=False)


def answer(memory: list[str], asked: str) -> Reply:
    """The answer to `asked`, the last text of the turn; a recital when that is empty, as after a tool's result.

    Refused when half a surrogate pair is anywhere in memory, as the Messages API does (see `well_formed`).
    """
    if any(text != well_formed(text) for text in memory):
        return Refused(400, "The request body is not valid JSON: no low surrogate in string")
    last = asked.strip()
    word, _, rest = last.partition(" ")
    match word:
        case "SLOW":
            seconds = _seconds(rest)
            return Say("".join(f"w{index} " for index in range(int(seconds * 2))) + recite(memory), seconds=seconds)
        case "UNTIL":
            return Say(recite(memory), until=rest)
        case "LATE":
            return Say(recite(memory), late=_seconds(rest))
        case "THINK":
            return Say(recite(memory), thinking="hmm")
        case "CRASH":
            return Misbehave("crash")
        case "DEAF":
            return Misbehave("deaf", Say(recite(memory)))
        case "FAIL400" | "FAIL500":
            return Refused(int(word[4:]), "stub says no")
    tools = _tools(last)
    return UseTools(tools) if tools else Say(recite(memory))


def _seconds(text: str) -> float:
    try:
        return float(text.split()[0])
    except (IndexError, ValueError):
        return 1.0


def _tools(text: str) -> tuple[ToolUse, ...]:
    name, colon, rest = text.partition(":")
    rest = rest.strip()
    if not colon:
        return ()
    match name:
        case "RUN" | "ASK":
            return (ToolUse("Bash", {"command": rest, "description": "x"}, ask=name == "ASK"),)
        case "BG":
            return (ToolUse("Bash", {"command": rest, "description": "x", "run_in_background": True}),)
        case "TWO":
            return (
                ToolUse("Bash", {"command": "echo a", "description": "x"}),
                ToolUse("Bash", {"command": "echo b", "description": "y"}),
            )
        case "TASK":
            return (ToolUse("Agent", {"description": "d", "prompt": rest or "hi", "subagent_type": "general-purpose"}),)
        case "WAKE":
            return (ToolUse("ScheduleWakeup", {"delaySeconds": _seconds(rest), "reason": "r", "prompt": "wake"}),)
        case "CUSTOM":
            return _custom(rest)
    return ()


def _custom(text: str) -> tuple[ToolUse, ...]:
    name, _, arguments = text.partition(" ")
    try:
        given = json.loads(arguments or "{}")
    except ValueError:
        return ()
    return (ToolUse(name, given),) if name and isinstance(given, dict) else ()
