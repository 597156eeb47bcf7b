"""A host that is killed with SIGKILL at any moment neither loses a message nor has it delivered twice."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest

from ccc_hookspecs.host.host import EmbeddedHost
from ccc_hookspecs.host.records import Session
from ccc_hookspecs.testing.harness import wait_until
from ccc_hookspecs.testing.simulator import NEWEST
from tests.ccc_hookspecs.host.crash_driver import HISTORY, Feeding, Stale
from tests.ccc_hookspecs.host.world import World

DRIVER = str(Path(__file__).with_name("crash_driver.py"))
STEPS = (
    "ask",
    "intend",
    "write",
    "wrote",
    "written",
    "ask",
    "respawn",
    "spawn",
    "planned",
    "started",
    "ask",
    "intend",
    "write",
    "wrote",
    "written",
)
"""The checkpoints that one text to a live headless, and one that has it replaced, pass."""
FEEDING = ("ask", "intend", "write", "wrote", *STEPS[1:5])
"""Those of a text that has history written before it."""


def drive(world: World, session: Session, step: int, *texts: str) -> subprocess.Popen[bytes]:
    root = str(Path(__file__).parents[3])
    return subprocess.Popen(
        [sys.executable, DRIVER, str(world.state), session.session_id, str(step), *texts], env=world.environ(PYTHONPATH=root), cwd=root
    )


def recover(world: World, host: EmbeddedHost, session: Session) -> None:
    """Another host takes on what the killed one left, to the end."""

    def settled() -> bool:
        host.recover()
        host.drive(session.session_id)
        return not host.store.outbox.open_of(session.session_id)

    wait_until(settled, "every message delivered")


def kept(host: EmbeddedHost) -> list[str]:
    """The ids of every message that was ever kept, in order."""
    with host.store.database.reading() as db:
        return [row["message_id"] for row in db.execute("SELECT message_id FROM outbox ORDER BY seq")]


def alive(world: World) -> list[int]:
    """The heads of this world that run, as the process table has it."""
    return [pid for pid in world._heads() if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]


@pytest.mark.case("C75", "C78")
@pytest.mark.parametrize("step", range(1, len(STEPS) + 1), ids=[f"{n}-{name}" for n, name in enumerate(STEPS, 1)])
def test_killed_at_a_step(world: World, step: int) -> None:
    """Whatever the step, both texts are in the transcript exactly once and in order, and one headless is left."""
    host = world.host()
    session = world.session(host, "first")
    driver = drive(world, session, step, "second", "stale third")
    assert driver.wait(60) == -signal.SIGKILL
    recover(world, host, session)
    assert world.prompts(session) == kept(host)
    head = host.headless_for(session.session_id)
    assert alive(world) == ([] if head is None else [head.pid])


def test_the_steps_are_these(world: World) -> None:
    """The list above is what a delivery passes, so that the test above misses none."""
    passed: list[str] = []

    class Noting(EmbeddedHost):
        def checkpoint(self, name: str) -> None:
            passed.append(name)

    session = world.session(world.host(), "first")
    host = world.host(Stale(), Feeding(), kind=Noting)
    for text in ("second", "stale third", "fed fourth"):
        world.until(host, host.send(session.session_id, text))
    assert tuple(passed) == STEPS + FEEDING


@pytest.mark.case("C75", "C78")
@pytest.mark.parametrize("step", range(1, len(FEEDING) + 1), ids=[f"{n}-{name}" for n, name in enumerate(FEEDING, 1)])
def test_killed_at_a_step_with_history(world: World, step: int) -> None:
    """Whatever the step, the text is there once, the history at most once, and as an input as soon as it may be there."""
    host = world.host()
    session = world.session(host, "first")
    pid = world.headless(host, session).pid
    assert drive(world, session, step, "fed second").wait(60) == -signal.SIGKILL
    recover(world, host, session)
    prompts, head = world.prompts(session), world.headless(host, session)
    assert [prompt for prompt in prompts if prompt != HISTORY] == kept(host)
    noted = [one.message_id for one in head.sent or () if one.history]
    assert prompts.count(HISTORY) <= len(noted) == (step > 2)
    assert (head.pid, prompts.count(HISTORY)) == (pid, step > 3)


def _grew(host: EmbeddedHost, before: list[str]) -> bool:
    return len(kept(host)) > len(before)


@pytest.mark.case("C75")
@pytest.mark.parametrize("release", ["2.0.42", "2.1.119", "2.1.216", NEWEST])
def test_killed_at_any_moment(world: World, release: str) -> None:
    """Three hosts after each other, each killed somewhere on its way: everything kept is there once, in order."""
    world.simulator.release = release
    moments = random.Random(release)
    host = world.host()
    session = host.begin(world.home.project)
    world.until(host, host.send(session.session_id, "first"))
    for number in range(3):
        before = kept(host)
        driver = drive(world, session, 0, *(f"{'stale ' if n % 2 else ''}text {number}.{n}" for n in range(6)))
        wait_until(partial(_grew, host, before), "a kept text")
        try:
            driver.wait(moments.uniform(0.0, 1.0))
        except subprocess.TimeoutExpired:
            driver.kill()
        driver.wait()
    recover(world, host, session)
    assert world.prompts(session) == kept(host)
    assert len(kept(host)) > 1
    head = host.headless_for(session.session_id)
    assert alive(world) == ([] if head is None else [head.pid])
