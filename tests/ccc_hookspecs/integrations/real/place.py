"""Where the real CCC is, and why stories cannot be played in it."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from tests.real.isolation import unavailable


@dataclass(frozen=True, slots=True)
class Place:
    """`checkout`: CCC's. `watchtower`: a checkout of WatchTower, which CCC must be able to import; None when it is installed."""

    checkout: Path
    watchtower: Path | None

    @classmethod
    def given(cls, checkout: str, watchtower: str) -> Place:
        """As environment variables or arguments have it; an empty text is none."""
        return cls(Path(checkout or "/nowhere"), Path(watchtower) if watchtower else None)

    def arguments(self) -> list[str]:
        """What `given` makes the same from."""
        return [str(self.checkout), str(self.watchtower or "")]

    def missing(self, release: str) -> str | None:
        """What is missing for a story with this release of Claude Code, or None."""
        if not (self.checkout / "server.py").is_file():
            return "CCC_CHECKOUT names no checkout of the real CCC"
        if self.watchtower is None and importlib.util.find_spec("watchtower") is None:
            return "CCC needs WatchTower, and CCC_WATCHTOWER names no checkout of it"
        return unavailable(release)


HERE = Place.given(os.environ.get("CCC_CHECKOUT", ""), os.environ.get("CCC_WATCHTOWER", ""))
"""As the environment of the tests names it."""
