"""Waiting for what the real program does in its own time."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 60.0
"""Seconds until what was waited for counts as not coming; a busy machine may take many times what a quiet one takes."""


class NotSeen(AssertionError):
    """What a story waited for did not come."""


def wait_until(seen: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    """Wait until `seen` says True. Raises `NotSeen`."""
    end = time.monotonic() + seconds
    while not seen():
        if time.monotonic() > end:
            raise NotSeen(f"not seen within {seconds:g} s: {what}")
        time.sleep(0.05)
