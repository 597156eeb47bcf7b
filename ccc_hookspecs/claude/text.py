"""The texts of messages: what stands in one, and what of it reaches the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def well_formed(text: str) -> str:
    """The text with U+FFFD for every half of a surrogate pair.

    The Messages API refuses a request that holds one half ("no low surrogate in string", anthropics/claude-code#6273), and so, once it
    is in the transcript, every later request of the session. 2.1.332 sends U+FFFD in its place; 2.0.42 sends it as it is.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_command(text: str) -> bool:
    """Whether Claude Code takes the text for a slash command, be it one that it knows or not."""
    return text.lstrip().startswith("/")


def texts_in(content: object) -> Iterator[str]:
    """The texts of a message's `content`, which is one text or a list of blocks; none of anything else."""
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping) and isinstance(block.get("text"), str):
            yield block["text"]
