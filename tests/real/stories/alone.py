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
    lines = [world.transcript().of(text)[0].line for text in texts]
    assert lines == sorted(lines), "the messages are out of order"


@story("q", "message while a terminal in tmux has the session")
def into_the_terminal(world: World) -> None:
    world.start("q1 by ccc")
    terminal = world.terminal()
    world.ask(terminal, "q2 in the terminal")
    said = world.send("q3 by ccc")
    world.facts["q3 went"] = said["ending"]
    terminal.leave()
    world.send("q4 by ccc")
