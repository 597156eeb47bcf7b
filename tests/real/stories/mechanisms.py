"""Each mechanism at its own moment, and each alone."""

from __future__ import annotations

from pathlib import Path

from tests.real.files import json_lines
from tests.real.stories.registry import story
from tests.real.waiting import wait_until
from tests.real.world import World


@story("g", "terminal launched, headless idle")
def launch_with_idle_headless(world: World) -> None:
    world.start("g1 by ccc")
    terminal = world.terminal(launched=True)
    assert world.head() is None, "the idle headless lives beside the terminal"
    world.ask(terminal, "g2 in the terminal")
    terminal.leave()
    world.send("g3 by ccc")


@story("h", "terminal launched, headless busy")
def launch_with_busy_headless(world: World) -> None:
    world.forks = 1
    world.only("terminal_launch", "use_time")
    world.start("h1 by ccc")
    with world.serving() as events:
        world.keep_busy("h2 by ccc")
        busy = world.head()
        terminal = world.terminal(launched=True)
        assert world.head() == busy, "the busy headless was ended"
        world.ask(terminal, "h3 in the terminal")
        assert world.head() == busy, "the busy headless was ended"
        world.release()
        wait_until(lambda: world.head() is None, "the end of the headless once it is idle")
        wait_until(lambda: retired_by(events) == ["retire_stale.terminal_launch"], "the event of the retirement")
        terminal.leave()
        world.send("h4 by ccc")


@story("i", "watcher alone")
def watcher_alone(world: World) -> None:
    world.only("watcher")
    world.start("i1 by ccc")
    with world.serving() as events:
        terminal = world.terminal()
        world.ask(terminal, "i2 in the terminal")
        wait_until(lambda: world.head() is None, "the end of the idle headless beside a terminal")
        wait_until(lambda: retired_by(events) == ["retire_stale.watcher"], "the event of the retirement")
        terminal.leave()
        world.send("i3 by ccc")


@story("j", "use-time check alone", core=True)
def use_time_alone(world: World) -> None:
    world.only("use_time")
    with world.serving():
        world.start("j1 by ccc")
        world.takes_a_turn("j2 in a terminal")
        before = world.head()
        assert before is not None
        world.send("j3 by ccc")
        assert world.head() not in (before, None)


@story("k", "terminal launch alone")
def terminal_launch_alone(world: World) -> None:
    world.only("terminal_launch")
    world.start("k1 by ccc")
    terminal = world.terminal(launched=True)
    assert world.head() is None, "the idle headless lives beside the terminal"
    world.ask(terminal, "k2 in the terminal")
    terminal.leave()
    world.send("k3 by ccc")


def retired_by(events: Path) -> list[str]:
    """The mechanisms that retired a headless, by what `ccc-host serve` told."""
    return [event["by"] for event in json_lines(events) if event["what"] == "retired"]
