"""Whether a text stands in a transcript already: what was to be given back may have been, when CCC ended before it noted so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ccc_hookspecs.claude.jsonl import JsonlFollower, parse
from ccc_hookspecs.claude.text import texts_in, well_formed


def stands_in(transcript: Path, text: str, since: int) -> bool:
    """True when a message of a person that was appended behind `since`, in bytes, holds this text. False for a file that cannot be read."""
    sought = well_formed(text)
    for line in JsonlFollower(transcript, start=since).lines():
        for record in parse(line):
            message = record.data.get("message") if record.data.get("type") == "user" else None
            if isinstance(message, Mapping) and any(sought in given for given in texts_in(message.get("content"))):
                return True
    return False
