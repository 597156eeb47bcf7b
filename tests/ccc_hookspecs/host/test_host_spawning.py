"""A headless is started as it should be, and found again by whoever comes later."""

from __future__ import annotations

import json
import os
import signal
import stat
from pathlib import Path

import psutil
import pytest

from ccc_hookspecs.host.errors import UnknownSession
from ccc_hookspecs.host.spawn import INHERITED, MARK, command, environment
from ccc_hookspecs.testing.harness import wait_until
from ccc_hookspecs.values import Tick
from tests.ccc_hookspecs.host.world import Answering, World, end_process


def environ_of(pid: int) -> dict[str, str]:
    return psutil.Process(pid).environ()


@pytest.mark.case("C11")
def test_it_does_not_inherit_the_marks_of_an_enclosing_session(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """With them it would keep no transcript; what a person set themselves stays."""
    for name in [*INHERITED - {MARK}, "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_CHILD_NOTES_DIR"]:
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "1000")
    host = world.host()
    session = world.session(host, "first")
    environ = environ_of(world.headless(host, session).pid)
    assert {name for name in environ if name in INHERITED or name.startswith("CLAUDE_CODE_CHILD_")} == {MARK}
    assert environ["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "1000"
    assert len(world.prompts(session)) == 1


def test_it_says_itself_when_it_is_busy(world: World) -> None:
    """The events of its state are switched on for a headless, and not for a terminal."""
    host = world.host()
    session = world.session(host, "first")
    assert {event["state"] for event in world.log(host, session) if event.get("subtype") == "session_state_changed"} == {"running", "idle"}
    assert "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS" not in environment({}, session)


def test_no_permission_is_widened(world: World) -> None:
    """The command line is the host's streams, the session and the person's own arguments, in both ways to start."""
    session = world.host().begin(world.home.project, ["--model", "opus"])
    streams = ["--input-format", "stream-json", "--output-format", "stream-json", "--model", "opus"]
    assert command(session, resume=False) == [world.claude, "-p", "--verbose", "--session-id", session.session_id, *streams]
    assert command(session, resume=True) == [world.claude, "-p", "--verbose", "--resume", session.session_id, *streams]


def test_its_files_are_private_and_its_fifo_goes_with_it(world: World) -> None:
    """The log stays for as long as it may prove a delivery."""
    host = world.host()
    session = world.session(host, "first")
    head = host.agents.known(session.session_id)
    assert head is not None
    assert stat.S_IMODE(head.fifo.stat().st_mode) == stat.S_IMODE(head.log.stat().st_mode) == 0o600
    assert stat.S_ISFIFO(head.fifo.stat().st_mode)
    end_process(head.pid or 0)
    host.recover()
    assert not head.fifo.exists()
    assert head.log.exists()
    assert host.headless_for(session.session_id) is None
    assert host.headless_agents() == ()


def test_what_a_killed_host_left_behind_is_swept_up(world: World) -> None:
    """A FIFO whose head is known to have ended, and a log of no head at all; a live head keeps both."""
    host = world.host()
    alive, ended = (world.session(host, "first") for _ in range(2))
    kept, left = host.agents.known(alive.session_id), host.agents.known(ended.session_id)
    assert kept is not None
    assert left is not None
    end_process(left.pid or 0)
    host.store.heads.ended(left.id)
    stray = host.store.heads_dir / "stray.log"
    stray.touch()
    world.host().recover()
    assert (left.fifo.exists(), stray.exists(), left.log.exists()) == (False, False, True)
    assert kept.fifo.exists()
    assert kept.log.exists()


@pytest.mark.case("C43")
def test_a_session_stays_with_its_configuration_directory(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever drives it later, with whatever `CLAUDE_CONFIG_DIR`; set to nothing means not set."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "own"))
    host = world.host()
    session = host.begin(world.home.project)
    message = host.send(session.session_id, "first")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "other"))
    world.until(host, message)
    headless = world.headless(host, session)
    assert headless.config_dir == host.config_dir(headless) == tmp_path / "own"
    end_process(headless.pid)
    world.until(host, host.send(session.session_id, "second"))
    assert environ_of(world.headless(host, session).pid)["CLAUDE_CONFIG_DIR"] == str(tmp_path / "own")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "")
    assert host.begin(world.home.project).config_dir is None


def test_a_session_begun_elsewhere_is_taken_up(world: World) -> None:
    """By its full id, in the directory its own records name, with everything said before."""
    elsewhere = world.simulator.headless()
    elsewhere.ask("said elsewhere")
    elsewhere.stop()
    host = world.host()
    session = host.session(elsewhere.session_id.upper())
    assert session.cwd == world.home.project.resolve()
    world.answered(host, host.send(session.session_id, "second"))
    assert world.memory(host, session) == ["said elsewhere", "second"]
    for unknown in ("72350742-dff3-4ee0-a645-6602d6d2b86e", "7235"):
        with pytest.raises(UnknownSession):
            host.session(unknown)


# --- found again


@pytest.mark.case("C88")
def test_another_host_finds_it_again(world: World) -> None:
    """By pid and start time; the next text goes to the same process, and what it was sent before is known."""
    first = world.host()
    session = world.session(first, "first")
    second = world.host()
    second.recover()
    assert second.headless_for(session.session_id) == world.headless(first, session)
    world.answered(second, second.send(session.session_id, "second"))
    assert [one.message_id for one in world.headless(first, session).sent or ()] == world.prompts(session)
    assert len(second.store.journal.entries(what="spawned")) == 1


@pytest.mark.case("C59")
def test_a_pid_that_is_another_process_now_is_not_its_own(world: World) -> None:
    """With another start time it is gone, and is cleared away; nothing is signalled."""
    host = world.host()
    session = world.session(host, "first")
    head = host.agents.known(session.session_id)
    assert head is not None
    bystander = os.getpid()
    host.store.heads.started(head, bystander, 1.0)
    assert host.headless_for(session.session_id) is None
    assert host.agents.end(host.store.heads.get(head.id) or head, "test") is True
    assert host.store.heads.all_live() == ()
    end_process(head.pid or 0)


@pytest.mark.case("C51")
def test_a_process_whose_identity_is_unknown_is_left_alone(world: World) -> None:
    """It counts as alive, so that no second one is started; it is not signalled."""
    host = world.host()
    session = world.session(host, "first")
    head = host.agents.known(session.session_id)
    assert head is not None
    unknown = host.store.heads.started(head, os.getpid(), None)
    assert host.headless_for(session.session_id) is not None
    host.recover()
    assert host.store.heads.all_live() == (unknown,)
    host.store.heads.started(head, head.pid or 0, head.start_time)


@pytest.mark.case("C50", "C74")
def test_a_zombie_is_gone(world: World) -> None:
    """A head that exited and was not reaped yet gets no message; the message goes to a fresh one."""
    host = world.host()
    session = world.session(host, "first")
    other = world.host()
    pid = world.headless(host, session).pid
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: psutil.Process(pid).status() == psutil.STATUS_ZOMBIE, "a zombie")
    assert other.headless_for(session.session_id) is None
    world.until(other, other.send(session.session_id, "second"))
    assert world.headless(other, session).pid != pid
    host.agents.spawner.reap()
    assert not psutil.pid_exists(pid)


def test_a_start_that_was_not_recorded_is_found_by_its_mark(world: World) -> None:
    """A host that died right after the fork leaves a process without a pid on record; it is taken up, not doubled."""
    host = world.host()
    session = world.session(host, "first")
    before = world.headless(host, session)
    with host.store.database.writing() as db:
        db.execute("UPDATE headless SET pid = NULL, start_time = NULL")
    assert host.headless_for(session.session_id) is None
    other = world.host()
    other.recover()
    assert other.headless_for(session.session_id) == before


def test_a_start_that_never_came_to_be_is_forgotten(world: World) -> None:
    """The row of a host that died before the fork does not bar the session."""
    host = world.host()
    session = world.session(host, "first")
    end_process(world.headless(host, session).pid)
    with host.store.database.writing() as db:
        db.execute("UPDATE headless SET pid = NULL, mark = 'never started'")
    world.answered(host, host.send(session.session_id, "second"))
    assert world.memory(host, session) == ["first", "second"]


def test_a_plugin_may_say_twice_that_a_process_is_gone(world: World) -> None:
    """`released` is harmless when repeated, and when it names a process that is not the session's head."""
    host = world.host()
    session = world.session(host, "first")
    first = world.headless(host, session)
    end_process(first.pid)
    host.released(first)
    host.released(first)
    world.until(host, host.send(session.session_id, "second"))
    host.released(first)
    assert host.headless_for(session.session_id) is not None


def test_a_tick_clears_asks_again_and_reaches_the_plugins(world: World) -> None:
    """The dead are cleared away, plugins get the tick, and what waits is taken on, in that order."""
    plugin = Answering()
    host = world.host(plugin)
    session = world.session(host, "first")
    end_process(world.headless(host, session).pid)
    message = host.store.outbox.add(session.session_id, "second")
    host.tick(Tick(number=1, monotonic=1.0, interval=5.0))
    assert [tick.number for tick in plugin.ticks] == [1]
    assert world.now(host, message).state in ("written", "delivered")
    assert [entry.what for entry in host.store.journal.entries()].count("ended") == 1


@pytest.mark.parametrize("deaf", [False, True])
@pytest.mark.case("C80")
def test_a_person_may_end_a_process_whatever_it_does(world: World, deaf: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By SIGTERM, and when it is deaf to that by SIGKILL to its group; the journal says that it was a person's act."""
    monkeypatch.setattr("ccc_hookspecs.host.agents.END_SECONDS", 1.0)
    if deaf:
        monkeypatch.setenv("CCC_SIM_DEAF", "1")
    host = world.host()
    session = world.session(host, "first")
    head = host.agents.known(session.session_id)
    assert head is not None
    assert host.agents.end(head, "a person said so") is True
    assert host.headless_for(session.session_id) is None
    assert [entry.detail["reason"] for entry in host.store.journal.entries(what="overruled")] == ["a person said so"]


def test_the_journal_holds_no_conversation(world: World) -> None:
    host = world.host()
    world.session(host, "a very particular text")
    assert "particular" not in json.dumps([[entry.what, entry.detail] for entry in host.store.journal.entries()])
