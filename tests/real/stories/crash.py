"""The host is killed at any moment."""

from __future__ import annotations

import random
import time

from tests.real.stories.registry import story
from tests.real.world import World

SEED = 20420
ROUNDS = 6
EARLIEST = 0.25
"""Of the time that a whole send takes: by then `ccc-host` is up and has not kept the message yet."""


@story("m", "host killed at random moments of a send")
def host_killed(world: World) -> None:
    chance = random.Random(SEED)
    world.start("m0 by ccc")
    world.one_shot("m0 by another program")
    began = time.monotonic()
    world.send("m0 again by ccc")
    whole = time.monotonic() - began
    found = []
    for number in range(1, ROUNDS + 1):
        # Two of three find a stale process, so that they are killed in the middle of a retirement or of a fresh start.
        if number % 3:
            world.one_shot(f"m{number} by another program")
        text = f"m{number} by ccc"
        found.append(world.killed_send(text, chance.uniform(EARLIEST, 1) * whole))
        with world.serving():
            world.wait_settled()
        if found[-1] is None:
            world.send(text)
    world.facts["message when the host was killed"] = found
    world.send("m last by ccc")
