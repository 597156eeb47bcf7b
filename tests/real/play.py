"""Plays stories with one release, one after another, and prints the outcome of each as JSON.

    python -m tests.real.play PROGRAM KEY...

Run by `tests.real.inside`. A key with a minus, such as `a-`, is played without the plugin.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from tests.real.judge import FORGOTTEN, complaints
from tests.real.stories import by_key, without_plugin
from tests.real.world import World


def played(program: Path, key: str, home: Path) -> dict[str, Any]:
    """The outcome of one story. `home`: a directory for it, not there yet and with a short name, for a socket will be in it."""
    began = time.monotonic()
    world = World(home, program, plugin=not without_plugin(key))
    found: list[str] = []
    try:
        try:
            world.check_plugins()
            by_key(key).play(world)
        except Exception as error:  # noqa: BLE001 - whatever went wrong in one story is its outcome, and no other's
            found.append(f"{type(error).__name__}: {error} ({where(error)})")
        found += complaints(world)
    finally:
        world.close()
    passed = forgot(found) if without_plugin(key) else not found
    return {"story": key, "passed": passed, "seconds": round(time.monotonic() - began, 1), "complaints": found, "facts": world.facts}


def where(error: Exception) -> str:
    """The line of the story at which it ended."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "stories" in frame.filename]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "before it began"


def forgot(found: list[str]) -> bool:
    """Whether the judge saw a rollback."""
    return any(FORGOTTEN in complaint for complaint in found)


def main() -> None:
    program, *keys = sys.argv[1:]
    for number, key in enumerate(keys):
        print(json.dumps(played(Path(program), key, Path.home() / f"{number}{key.partition(':')[0]}")), flush=True)


if __name__ == "__main__":
    main()
