"""Plays stories in the real CCC with one release of Claude Code, one after another, and prints the outcome of each as JSON.

    python -m tests.ccc_hookspecs.integrations.real.play CLAUDE CHECKOUT WATCHTOWER KEY...

Run by `tests.real.inside`. A key is a story's name; with `+control` behind it CCC's control plane is on, and with `-` behind
all the plugin is away.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from tests.ccc_hookspecs.integrations.real.center import CenterWorld
from tests.ccc_hookspecs.integrations.real.place import Place
from tests.ccc_hookspecs.integrations.real.stories import STORIES
from tests.real.judge import complaints
from tests.real.play import forgot, where

ANSWERS_IN_SHORT = 400


def played(claude: Path, place: Place, key: str) -> dict[str, Any]:
    """The outcome of one story."""
    name, _, control = key.rstrip("-").partition("+")
    plugin, began = not key.endswith("-"), time.monotonic()
    world = CenterWorld(Path.home() / key, claude, place, plugin=plugin, control_plane=bool(control))
    found: list[str] = []
    try:
        try:
            world.open()
            STORIES[name](world)
        except Exception as error:  # noqa: BLE001 - whatever went wrong in one story is its outcome, and no other's
            found.append(f"{type(error).__name__}: {str(error)[:ANSWERS_IN_SHORT]} ({where(error)})")
        found += [*complaints(world), *world.ended_at_work()]
        world.facts["retired"] = [line.split("reason=")[-1] for line in world.activity("RETIRE")]
    finally:
        world.shut()
        world.close()
    passed = forgot(found) if not plugin else not found
    outcome = {"story": key, "complaints": found, "facts": world.facts, "passed": passed}
    return outcome | {"seconds": round(time.monotonic() - began, 1)}


def main() -> None:
    claude, checkout, watchtower, *keys = sys.argv[1:]
    for key in keys:
        print(json.dumps(played(Path(claude), Place.given(checkout, watchtower), key)), flush=True)


if __name__ == "__main__":
    main()
