"""What goes over the wire to and from the Messages API, as far as Claude Code needs it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ccc_hookspecs.testing.simulator import model

Json: TypeAlias = dict[str, Any]

USAGE = {"input_tokens": 10, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. `at`: seconds since the epoch; `texts`: the user texts it carried, oldest first; `tools`: names offered.

    `asked`: the last text, empty when the last block was a tool's result. `answers`: the model's own texts that it carried.
    """

    at: float
    method: str
    path: str
    model: str | None = None
    stream: bool = False
    texts: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    asked: str = ""
    answers: tuple[str, ...] = ()


def user_texts(messages: Sequence[Json]) -> list[str]:
    """The texts of the user's messages, without the reminders that Claude Code adds."""
    blocks = [block for message in messages if message.get("role") == "user" for block in _blocks(message)]
    return [block["text"] for block in blocks if block.get("type") == "text" and "<system-reminder>" not in block["text"]]


def model_texts(messages: Sequence[Json]) -> list[str]:
    """The texts of the model's messages."""
    blocks = [block for message in messages if message.get("role") == "assistant" for block in _blocks(message)]
    return [block["text"] for block in blocks if block.get("type") == "text"]


def asked(messages: Sequence[Json]) -> str:
    """The text of the last block that the user sent, empty when that is a tool's result."""
    blocks = [block for message in messages if message.get("role") == "user" for block in _blocks(message)]
    for block in reversed(blocks):
        if block.get("type") == "tool_result":
            return ""
        if block.get("type") == "text" and "<system-reminder>" not in block["text"]:
            return str(block["text"])
    return ""


def _blocks(message: Json) -> list[Json]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])


def message(request: Request) -> Json:
    """The answer to a request, before it has any content."""
    return {
        "id": "msg_" + uuid.uuid4().hex[:20],
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": dict(USAGE),
    }


def reply_to(request: Request) -> model.Reply:
    """What the simulator's model would say; tools only when some are offered, and nothing that only a process can do."""
    reply = model.answer(list(request.texts), request.asked)
    if isinstance(reply, model.Misbehave) or (isinstance(reply, model.UseTools) and not request.tools):
        return model.Say(model.recite(list(request.texts)))
    return reply


Delta: TypeAlias = tuple[Json, float]
"""One delta of a content block, and the seconds to wait after it."""


def content(request: Request, reply: model.Reply) -> Iterator[tuple[Json, list[Delta]]]:
    """The content blocks of an answer, each as it begins and with the deltas that fill it."""
    if isinstance(reply, model.UseTools):
        for use in reply.uses:
            name = "Task" if use.name == "Agent" and "Task" in request.tools else use.name
            block = {"type": "tool_use", "id": "toolu_" + uuid.uuid4().hex[:16], "name": name, "input": {}}
            yield block, [({"type": "input_json_delta", "partial_json": json.dumps(use.input)}, 0.0)]
        return
    say = reply if isinstance(reply, model.Say) else model.Say(model.recite(list(request.texts)))
    if say.thinking is not None:
        thought: list[Delta] = [({"type": "thinking_delta", "thinking": say.thinking}, 0.0)]
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*thought, ({"type": "signature_delta", "signature": "c2ln"}, 0.0)]
    yield {"type": "text", "text": ""}, _text_deltas(say)


def _text_deltas(say: model.Say) -> list[Delta]:
    """The text word by word over its seconds, the recital at once at the end."""
    if not say.seconds:
        return [({"type": "text_delta", "text": say.text}, 0.0)]
    before, _, after = say.text.partition("SEEN ")
    words = before.split()
    deltas: list[Delta] = [({"type": "text_delta", "text": word + " "}, say.seconds / len(words)) for word in words]
    return [*deltas, ({"type": "text_delta", "text": "SEEN " + after}, 0.0)]
