"""Where the real CCC is, and why stories cannot be played in it."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from tests.real.isolation import unavailable

CHECKOUT = Path(os.environ.get("CCC_CHECKOUT") or "/nowhere")
"""The checkout of CCC."""

WATCHTOWER = os.environ.get("CCC_WATCHTOWER")
"""A checkout of WatchTower, which CCC must be able to import; None when it is installed."""


def missing(release: str) -> str | None:
    """What is missing for a story with this release of Claude Code, or None."""
    if not (CHECKOUT / "server.py").is_file():
        return "CCC_CHECKOUT names no checkout of the real CCC"
    if WATCHTOWER is None and importlib.util.find_spec("watchtower") is None:
        return "CCC needs WatchTower, and CCC_WATCHTOWER names no checkout of it"
    return unavailable(release)


def version() -> str:
    """The version of the checkout."""
    lines = (CHECKOUT / "server.py").read_text(encoding="utf-8").splitlines()
    return next(line.split('"')[1] for line in lines if line.startswith("__version__"))
