"""Somebody else takes a turn while the headless lives."""

from __future__ import annotations

from tests.real.stories.registry import story
from tests.real.waiting import wait_until
from tests.real.world import LONG_SECONDS, World


@story("a", "terminal turn between injects", core=True, control=True)
def between_injects(world: World) -> None:
    with world.serving():
        world.start("a1 by ccc")
        world.send("a2 by ccc")
        before = world.head()
        world.takes_a_turn("a3 in a terminal")
        world.send("a4 by ccc")
        assert world.head() not in (before, None)
        world.send("a5 by ccc")


@story("b", "terminal turn before the first inject")
def before_the_first_inject(world: World) -> None:
    world.start("b1 by ccc")
    world.takes_a_turn("b2 in a terminal")
    world.send("b3 by ccc")
    with world.serving():
        before = world.head()
        world.takes_a_turn("b4 in a terminal")
    # Found again by a host that never saw it.
    world.send("b5 by ccc")
    assert world.head() != before


@story("c", "terminal came and went while no host runs", core=True)
def while_no_host_runs(world: World) -> None:
    with world.serving():
        world.start("c1 by ccc")
        world.send("c2 by ccc")
    world.takes_a_turn("c3 in a terminal")
    with world.serving():
        world.send("c4 by ccc")


@story("d", "terminal turn while the headless is mid-turn", core=True, control=True)
def mid_turn(world: World) -> None:
    world.forks = 1
    world.start("d1 by ccc")
    before = world.head()
    world.keep_busy("d2 by ccc")
    world.takes_a_turn("d3 in a terminal")
    kept = world.send("d4 by ccc", "--no-wait")
    world.facts["message while busy"] = kept["hold"]["signs"] if kept["hold"] else kept["state"]
    assert world.head() == before, "the busy headless was ended"
    world.release()
    world.send("d5 by ccc")
    world.check_order("d4 by ccc", "d5 by ccc")


@story("r", "terminal opened mid-turn, its turn afterwards", core=True)
def opened_mid_turn(world: World) -> None:
    world.forks = 1
    world.start("r1 by ccc")
    busy = world.keep_busy("r2 by ccc")
    terminal = world.terminal()
    world.release()
    wait_until(lambda: world.transcript().answered(busy), "the headless's answer in the transcript")
    # What the terminal loaded lacks that answer.
    world.ask(terminal, "r3 in a terminal")
    terminal.leave()
    world.send("r4 by ccc")
    world.send("r5 by ccc")


@story("e", "terminal window killed mid-turn")
def window_killed(world: World) -> None:
    world.start("e1 by ccc")
    terminal = world.terminal()
    text = f"SLOW {LONG_SECONDS} e2 in a terminal"
    world.type(terminal, text)
    wait_until(lambda: bool(world.transcript().of(text)), "the terminal's prompt in the transcript")
    terminal.close()
    world.send("e3 by ccc")
    world.send("e4 by ccc")


@story("f", "another `claude -p --resume`")
def another_one_shot(world: World) -> None:
    world.start("f1 by ccc")
    world.one_shot("f2 by another program")
    world.send("f3 by ccc")
    world.one_shot("f4 by another program")
    world.one_shot("f5 by another program")
    world.send("f6 by ccc")
