"""A finished line of CCC's for the FIFO: read, and with what the session is owed in front of its text."""

from __future__ import annotations

import json
from typing import Final

from ccc_hookspecs.checks import is_uuid
from ccc_hookspecs.claude.text import well_formed

LARGE_LINE_SECONDS: Final = 30.0
"""How long a long line may take, such as one with a catch-up: it can be larger than the pipe, and half a line must not stay in it."""


def parsed(raw: bytes) -> tuple[str | None, str]:
    """The message id of a line, None when it has none, and its text."""
    message = json.loads(raw)
    text = "\n".join(str(block.get("text", "")) for block in message["message"]["content"])
    return (message["uuid"] if is_uuid(message.get("uuid")) else None), text


def with_catch_up(raw: bytes, catch_up: str | None) -> bytes:
    """The line with the catch-up as its first text block; the same without one."""
    if catch_up is None:
        return raw
    message = json.loads(raw)
    message["message"]["content"].insert(0, {"type": "text", "text": well_formed(catch_up)})
    return json.dumps(message).encode() + b"\n"


def patience(catch_up: str | None) -> float:
    """Seconds that the writing may take at least."""
    return LARGE_LINE_SECONDS if catch_up is not None else 0.0
