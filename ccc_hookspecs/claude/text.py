"""Which texts reach the model."""

from __future__ import annotations


def well_formed(text: str) -> str:
    """The text with U+FFFD for every half of a surrogate pair.

    The Messages API refuses a request that holds one half ("no low surrogate in string", anthropics/claude-code#6273), and so, once it
    is in the transcript, every later request of the session. 2.1.332 sends U+FFFD in its place; 2.0.42 sends it as it is.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
