"""What happens to sessions in the real CCC. Each story is played by CCC's HTTP API alone, but for the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.ccc_hookspecs.integrations.real.center import CenterWorld
from tests.real.stories.commands import local_outputs
from tests.real.stories.healing import background_of, compacted_in_a_terminal
from tests.real.waiting import wait_until

Story = Callable[[CenterWorld], None]


def between(world: CenterWorld) -> None:
    """A terminal takes a turn between two texts."""
    world.start("a1 by ccc")
    world.send("a2 by ccc")
    before = world.head()
    world.takes_a_turn("a3 in a terminal")
    world.send("a4 by ccc")
    world.facts["replaced"] = world.head() != before
    world.send("a5 by ccc")


def before_the_first(world: CenterWorld) -> None:
    """A terminal takes a turn before the first text that CCC injects."""
    world.start("b1 by ccc")
    world.takes_a_turn("b2 in a terminal")
    world.send("b3 by ccc")


def while_ccc_is_down(world: CenterWorld) -> None:
    """A terminal comes and goes while CCC does not run."""
    world.start("c1 by ccc")
    world.send("c2 by ccc")
    world.shut()
    world.takes_a_turn("c3 in a terminal")
    world.open()
    world.send("c4 by ccc")


def mid_turn(world: CenterWorld) -> None:
    """A terminal takes a turn while the headless is mid-turn; both hang below the same one."""
    world.forks = 1
    world.start("d1 by ccc")
    world.offer("SLOW 9 d2 by ccc")
    world.wait_asked("SLOW 9 d2 by ccc")
    world.takes_a_turn("d3 in a terminal")
    world.wait_answered("SLOW 9 d2 by ccc")
    world.send("d4 by ccc")
    world.send("d5 by ccc")


def nobody_else(world: CenterWorld) -> None:
    """With nobody else on the session, one process answers everything."""
    world.start("e1 by ccc")
    head = world.head()
    for text in ("e2 by ccc", "e3 by ccc", "e4 by ccc"):
        assert world.send(text)["via"] == "spawn-fifo"
    assert world.head() == head
    assert world.activity("RETIRE") == []


def busy(world: CenterWorld) -> None:
    """Texts for a stale process that works are held in CCC's queue, in order, and it finishes its turn."""
    world.forks = 1
    world.start("f1 by ccc")
    head = world.head()
    world.offer("SLOW 15 f2 by ccc")
    world.wait_asked("SLOW 15 f2 by ccc")
    world.takes_a_turn("f3 in a terminal")
    for text in ("f4 by ccc", "f5 by ccc"):
        answer = world.offer(text)
        assert answer["queued"], answer
        assert "another writer" in answer["queued_reason"], answer
    assert world.head() == head
    world.wait_answered("f5 by ccc")
    lines = [world.transcript().of(text)[0].line for text in ("f4 by ccc", "f5 by ccc")]
    assert lines == sorted(lines)
    assert world.activity("HOLD")


def background(world: CenterWorld) -> None:
    """A background task that CCC does not see lives on: its process is told what was said elsewhere, and goes on answering."""
    world.start("g1 by ccc")
    head = world.head()
    world.send("BG: sleep 3600")
    server = background_of(head)
    world.takes_a_turn("g2 in a terminal")
    world.one_shot("g3 by another program")
    world.send("g4 by ccc")
    world.takes_a_turn("g5 in a terminal")
    world.send("g6 by ccc")
    assert world.head() == head
    assert server.is_running()
    assert len(world.activity("HEALED")) == 2


def local_command(world: CenterWorld) -> None:
    """A local command, then another program's turn, and once more."""
    world.start("n1 by ccc")
    for number in (1, 2):
        world.post("/api/inject-input", session_id=world.session_id, text="/cost")
        wait_until(lambda: len(local_outputs(world.transcript())) == number, "the outcome of /cost")  # noqa: B023 - waited for here
        world.one_shot(f"n{number} by another program")
        world.send(f"n{number} after it by ccc")


def held_over_a_restart(world: CenterWorld) -> None:
    """CCC is stopped while it holds a text."""
    world.forks = 1
    world.start("h1 by ccc")
    world.offer("SLOW 20 h2 by ccc")
    world.wait_asked("SLOW 20 h2 by ccc")
    world.takes_a_turn("h3 in a terminal")
    assert world.offer("h4 by ccc")["queued"]
    world.shut()
    world.open()
    world.wait_answered("h4 by ccc")


def restarted_by_itself(world: CenterWorld) -> None:
    """CCC's own restart, which replaces its processes, keeps the plugins."""
    world.start("m1 by ccc")
    attached = len(world.activity("ATTACH"))
    world.restart()
    wait_until(lambda: len(world.activity("ATTACH")) > attached, "the plugins after the restart")
    world.takes_a_turn("m2 in a terminal")
    world.send("m3 by ccc")


def by_pid(world: CenterWorld) -> None:
    """A text that goes to a process by its pid is judged as well."""
    world.start("i1 by ccc")
    world.takes_a_turn("i2 in a terminal")
    assert world.by_pid("i3 by ccc")["ok"]
    world.wait_answered("i3 by ccc")


def question(world: CenterWorld) -> None:
    """A synchronous question is answered by a process that knows everything."""
    world.start("j1 by ccc")
    world.takes_a_turn("j2 in a terminal")
    answer = world.question("j3 by ccc")
    assert answer["ok"], answer
    assert "j2 in a terminal" in answer["text"]


def compaction(world: CenterWorld) -> None:
    """`/compact` runs in a process that knows everything."""
    world.start("k1 by ccc")
    head = world.head()
    world.takes_a_turn("k2 in a terminal")
    assert world.post("/api/session/compact", session_id=world.session_id)["ok"]
    wait_until(lambda: bool(world.transcript().compactions()), "the compaction")
    assert world.head() != head


def watched(world: CenterWorld) -> None:
    """While a terminal is open the idle process is ended by the watcher, and the next text gets a fresh one."""
    world.start("l1 by ccc")
    head = world.head()
    terminal = world.terminal()
    world.ask(terminal, "l2 in a terminal")
    wait_until(lambda: world.head() != head, "the end of the idle headless")
    terminal.leave()
    world.send("l3 by ccc")
    assert any("retire_stale.watcher" in line for line in world.activity("RETIRE"))


ROLLED_BACK: Final[dict[str, Story]] = {one.__name__: one for one in (between, before_the_first, while_ccc_is_down, mid_turn)}
"""Those that CCC answers from a memory that lacks a turn when the plugin is away."""

STORIES: Final[dict[str, Story]] = ROLLED_BACK | {
    one.__name__: one
    for one in (
        nobody_else,
        busy,
        background,
        local_command,
        compacted_in_a_terminal,
        held_over_a_restart,
        restarted_by_itself,
        by_pid,
        question,
        compaction,
        watched,
    )
}
