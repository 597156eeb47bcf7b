"""Whether a text stands in a transcript already: what was to be given back may have been, when CCC ended before it noted so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ccc_hookspecs.claude.jsonl import JsonlFollower, parse
from ccc_hookspecs.claude.text import well_formed


def stands_in(transcript: Path, text: str, since: int) -> bool:
    """True when a message of a person that was appended behind `since`, in bytes, holds this text. False for a file that cannot be read."""
    sought = well_formed(text)
    for line in JsonlFollower(transcript, start=since).lines():
        for record in parse(line):
            if record.data.get("type") == "user" and any(sought in given for given in _texts(record.data)):
                return True
    return False


def _texts(record: Mapping[str, Any]) -> Iterator[str]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping) and isinstance(block.get("text"), str):
            yield block["text"]
