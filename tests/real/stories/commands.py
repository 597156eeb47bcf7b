"""Slash commands as messages."""

from __future__ import annotations

from tests.real.files import Transcript
from tests.real.stories.registry import story
from tests.real.waiting import wait_until
from tests.real.world import World

COMMANDS = ("/cost", "/hello you", "/compact")
"""A local one, a custom one whose text is given to the model, and the one that begins a new chain."""


@story("n", "slash command when turns have to be given back")
def slash_command(world: World) -> None:
    world.forks = len(COMMANDS)
    world.custom_command("hello", "Say hello custom")
    world.start("n0 by ccc")
    for number, command in enumerate(COMMANDS, 1):
        world.keep_busy(f"n{number} by ccc")
        world.one_shot(f"n{number} by another program")
        world.release()
        world.command(command)
        wait_until(lambda: has_run(command, world), f"the outcome of {command}")  # noqa: B023 - waited for here
        world.send(f"n{number} after {command[1:]}")


def has_run(command: str, world: World) -> bool:
    transcript = world.transcript()
    match command.split()[0]:
        case "/hello":
            return any("Say hello custom" in one["asked"] for one in world.requests())
        case "/compact":
            return bool(transcript.compactions())
    return any("Total code changes" in output for output in local_outputs(transcript))


def local_outputs(transcript: Transcript) -> list[str]:
    """What local commands printed."""
    found = [record.get("content") or (record.get("message") or {}).get("content") for record in transcript.records]
    return [text for text in found if isinstance(text, str) and text.startswith("<local-command-stdout>")]


@story("o", "/clear as a message, then others")
def clear(world: World) -> None:
    world.start("o1 by ccc")
    before = world.head()
    world.command("/clear")
    world.send("o2 by ccc")
    world.facts["another process"] = world.head() != before
    world.send("o3 by ccc")
    wait_until(world.settled, "the delivery of every message")
