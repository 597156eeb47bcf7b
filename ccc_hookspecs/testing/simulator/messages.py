"""The messages of the conversation, as they stand in records and events."""

from __future__ import annotations

from typing import Any

from ccc_hookspecs.testing.simulator import branch
from ccc_hookspecs.testing.simulator.lines import new_id

USAGE = {"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 10}


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def message(message_id: str, model: str, block: dict[str, Any], stop_reason: str | None) -> dict[str, Any]:
    """One content block of an answer; the blocks of one answer share `message_id`."""
    found: dict[str, Any] = {"id": message_id, "type": "message", "role": "assistant", "model": model, "content": [block]}
    return found | {"stop_reason": stop_reason, "stop_sequence": None, "usage": dict(USAGE)}


def synthetic(text: str, stop_reason: str) -> dict[str, Any]:
    """A message that no model wrote."""
    return message(new_id(), "<synthetic>", text_block(text), stop_reason)


def merged(contents: list[Any]) -> list[dict[str, Any]]:
    """The blocks of several inputs, as those of one."""
    blocks: list[dict[str, Any]] = []
    for content in contents:
        blocks.extend([text_block(content)] if isinstance(content, str) else content)
    return blocks


def is_command(content: Any) -> bool:
    """True when an input's text begins with a slash."""
    texts = branch.content_texts(content)
    return bool(texts) and texts[0].lstrip().startswith("/")


def new_message_id() -> str:
    return "msg_" + new_id().replace("-", "")[:20]
