"""Nobody else is on the session, or a person drives it by more than plain texts."""

from __future__ import annotations

from tests.real.stories.registry import story
from tests.real.world import World
from tests.real.writes import FifoWrites

INJECTS = 10


@story("l", "nobody else: ten injects", core=True)
def nobody_else(world: World) -> None:
    world.start("l0 by ccc")
    head = world.row()["headless"]
    with world.serving(), FifoWrites(world.fifo()) as writes:
        said = [world.send(f"l{number} by ccc") for number in range(1, INJECTS + 1)]
    assert world.row()["headless"] == head, "the process is another one"
    assert [one["attempts"] for one in said] == [0] * INJECTS
    assert writes.count == INJECTS, f"{writes.count} writes into the FIFO for {INJECTS} messages"


@story("p", "two messages while busy")
def two_while_busy(world: World) -> None:
    world.start("p1 by ccc")
    with world.serving():
        head = world.head()
        texts = [world.keep_busy("p2 by ccc"), "p3 by ccc", "p4 by ccc"]
        for text in texts[1:]:
            world.send(text, "--no-wait")
        world.release()
        world.wait_settled()
        world.send("p5 by ccc")
    assert world.head() == head
    world.check_order(*texts)


@story("q", "message while a terminal in tmux has the session")
def into_the_terminal(world: World) -> None:
    world.start("q1 by ccc")
    terminal = world.terminal()
    world.ask(terminal, "q2 in the terminal")
    with world.serving():
        world.send("q3 by ccc", "--no-wait")
        # Typed into it, or kept until it has gone where a release does not say on which session a terminal is.
        waiting = world.row()["messages"]
        world.facts["message while a terminal is open"] = waiting[0]["state"] if waiting else "delivered"
        if waiting and waiting[0]["state"] != "held":
            world.wait_settled()
        terminal.leave()
        world.send("q4 by ccc")


@story("s", "hold overruled by a person")
def overruled(world: World) -> None:
    world.environ["CCC_PLUGIN__RETIRE_STALE__HEAL"] = "never"
    world.start("s1 by ccc")
    before = world.head()
    world.command("BG: sleep 600")
    world.one_shot("s2 by another program")
    held = world.send("s3 by ccc", "--no-wait")
    assert held["state"] == "held", held
    assert held["hold"]["lingering"], held
    world.facts["held by"] = held["hold"]["signs"]
    assert world.head() == before, "the headless was ended in spite of its background task"
    overruled = world.ccc("send", world.session_id, "--now")[-1]
    assert overruled["ending"] == "answered", overruled
    assert world.head() not in (before, None)
