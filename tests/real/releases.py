"""The releases of Claude Code that are played with, and where they are."""

from __future__ import annotations

import os
from pathlib import Path

FULL = ("2.1.332", "2.0.42")
"""Every story is played with these: the newest, and the one that says least about itself."""

CORE = ("2.1.119", "2.1.216")
"""What changed between the two above first shows on these; the stories of the core are played with them."""

RELEASES = (*FULL, *CORE)

VARIABLE = "CCC_REAL_RELEASES"


def _cache() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get(VARIABLE) or base / "ccc-retire-stale" / "claude")


CACHE = _cache()
"""Where `.ci/claude` installs them. Read when this module is imported: tests have a home of their own."""


def program(release: str) -> Path:
    """The `claude` of a release, whether or not it is there."""
    return CACHE / release / "node_modules" / ".bin" / "claude"
