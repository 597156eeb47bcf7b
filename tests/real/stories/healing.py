"""A stale process is healed in place, or leaves nothing behind that would hide a turn."""

from __future__ import annotations

import psutil

from tests.real.stories.registry import story
from tests.real.terminal import Terminal
from tests.real.waiting import wait_until
from tests.real.world import LONG_SECONDS, World

TAKES_NO_HISTORY = {"2.0.42": "takes no history, so the text is held until a person decides"}
TOO_SHORT = "its terminal refuses to compact so short a session"


@story("t", "terminal turn while a background command runs on", core=True, unfit=TAKES_NO_HISTORY)
def background_command(world: World) -> None:
    world.start("t1 by ccc")
    world.send("BG: sleep 3600")
    before = world.head()
    server = background_of(before)
    world.takes_a_turn("t2 in a terminal")
    world.one_shot("t3 by another program")
    world.send("t4 by ccc")
    assert world.head() == before, "another process took the text"
    world.takes_a_turn("t5 in a terminal")
    world.send("t6 by ccc")
    assert world.head() == before, "another process took the text"
    assert server.is_running(), "the background command was ended"


def background_of(pid: int | None) -> psutil.Process:
    """The background command of a headless."""
    head = psutil.Process(pid)
    wait_until(lambda: any("sleep" in child.name() for child in head.children(recursive=True)), "the background command")
    return next(child for child in head.children(recursive=True) if "sleep" in child.name())


@story("u", "local command, then another program's turn", core=True)
def local_command_before(world: World) -> None:
    world.start("u1 by ccc")
    world.command("/cost")
    world.one_shot("u2 by another program")
    world.send("u3 by ccc")
    world.command("/cost")
    world.takes_a_turn("u4 in a terminal")
    world.send("u5 by ccc")


@story("v", "terminal compacts and takes a turn", core=True, unfit={"2.1.216": TOO_SHORT})
def compacted_in_a_terminal(world: World) -> None:
    world.start("v1 by ccc")
    terminal = world.terminal()
    compact(world, terminal)
    world.ask(terminal, "v2 in a terminal")
    terminal.leave()
    world.send("v3 by ccc")
    world.send("v4 by ccc")


def compact(world: World, terminal: Terminal) -> None:
    """Compact the session in a terminal, until that is on the disk."""
    before = world.transcript().compactions()
    terminal.type("/compact")
    wait_until(lambda: world.transcript().compactions() > before, "the compaction")


@story("w", "a fresh process beside a terminal, whose turn comes later")
def beside_a_terminal(world: World) -> None:
    world.forks = 1
    world.start("w1 by ccc")
    terminal = world.terminal(launched=True)
    world.ccc("send", world.session_id, "/cost", "--now")
    world.ask(terminal, "w2 in a terminal")
    terminal.leave()
    world.send("w3 by ccc")
    world.send("w4 by ccc")


@story("x", "a fresh process beside a terminal that is mid-turn")
def beside_a_busy_terminal(world: World) -> None:
    world.forks = 1
    world.start("x1 by ccc")
    terminal = world.terminal(launched=True)
    busy = f"SLOW {LONG_SECONDS} x2 in a terminal"
    world.type(terminal, busy)
    world.send("x3 by ccc", "--now")
    world.release()
    wait_until(lambda: world.transcript().answered(busy), "the terminal's answer")
    terminal.leave()
    world.send("x4 by ccc")
    world.send("x5 by ccc")


@story("y", "terminal compacts and leaves, then both are at work at once", core=True, unfit={"2.1.216": TOO_SHORT})
def at_once_behind_a_compaction(world: World) -> None:
    world.forks = 1
    world.start("y1 by ccc")
    terminal = world.terminal()
    compact(world, terminal)
    terminal.leave()
    answered = world.keep_busy("y2 by ccc")
    terminal = world.terminal()
    typed = f"SLOW {LONG_SECONDS} y3 in a terminal"
    world.type(terminal, typed)
    world.release()
    for text in (answered, typed):
        wait_until(lambda: world.transcript().answered(text), f"the answer to {text}")  # noqa: B023 - waited for here
    terminal.leave()
    world.send("y4 by ccc")
    world.send("y5 by ccc")


@story("z", "terminal summarizes what it said, and goes on", unfit={"2.0.42": "its terminal cannot"})
def summarized_from_here(world: World) -> None:
    world.forks = 1
    world.start("z1 by ccc")
    terminal = world.terminal()
    world.ask(terminal, "z2 in a terminal")
    world.ask(terminal, "z3 in a terminal")
    terminal.rewind(2, "Summarize from here")
    wait_until(lambda: bool(world.transcript().summaries()), "the summary")
    world.ask(terminal, "z4 in a terminal")
    terminal.leave()
    world.send("z5 by ccc")
    world.send("z6 by ccc")
