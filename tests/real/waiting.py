"""Waiting for what the real program does in its own time."""

from __future__ import annotations

from collections.abc import Callable

from ccc_hookspecs.testing import home
from ccc_hookspecs.testing.home import NotSeen

__all__ = ["PATIENCE", "NotSeen", "wait_until"]

PATIENCE = 60.0
"""Seconds until what was waited for counts as not coming; a busy machine may take many times what a quiet one takes."""


def wait_until(seen: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    """Wait until `seen` says True. Raises `NotSeen`."""
    home.wait_until(seen, what, seconds, every=0.05)
