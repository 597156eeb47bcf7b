"""Several hosts at once: in one process, in processes that share a state directory, after a fork, and on many threads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from ccc_hookspecs.signals import headless_retired, plugin_failed
from ccc_hookspecs.testing.harness import wait_until
from ccc_hookspecs.testing.home import ClaudeHome
from ccc_hookspecs.testing.recording import RecordingHost
from ccc_hookspecs.values import Decision, Injection, Respawn, TerminalLaunch, Tick
from ccc_plugins.retire_stale.mechanisms import terminal_launch, use_time, watcher
from ccc_plugins.retire_stale.plugin import Plugin, plugin
from ccc_plugins.retire_stale.settings import Settings
from tests.retire_stale.mechanisms.conftest import Stage

ROOT = Path(__file__).parents[3]


class ElsewhereHost(RecordingHost):
    """A host of the same home with a state directory of its own."""

    @property
    def state_dir(self) -> Path:
        return super().state_dir.parent / "other-state"


def beat(host: RecordingHost, number: int, mechanism: object = watcher) -> None:
    mechanism.on_tick(host, Tick(number=number, monotonic=float(number), interval=5.0))  # type: ignore[attr-defined]


def test_the_ticks_of_another_host_do_not_count(stage: Stage, claude_home: ClaudeHome) -> None:
    """Two hosts in one process that tick in turn each see their own terminal twice in a row, and one sighting is never two."""
    other = ElsewhereHost(claude_home)
    theirs = stage.simulator.headless()
    theirs.ask("of the other host")
    other.adopt(theirs)
    stage.terminal()
    stage.simulator.terminal(theirs.session_id)
    beat(stage.host, 1)
    beat(other, 1)
    assert stage.head.alive
    assert theirs.alive
    beat(stage.host, 2)
    beat(other, 2)
    assert not stage.head.alive
    assert not theirs.alive


@pytest.mark.case("C86", "C87")
def test_a_deferral_of_another_process_of_the_host_is_not_dropped(stage: Stage, claude_home: ClaudeHome) -> None:
    """A process of the host that does not know the headless leaves its deferral to the one that does, until it is gone."""
    stage.work("SLOW 1")
    stage.launch()
    stranger = RecordingHost(claude_home)
    beat(stranger, 1, terminal_launch)
    assert len(plugin.flow(stranger).deferrals.all()) == 1
    stage.head.wait_idle()
    stage.tick(terminal_launch)
    assert not stage.head.alive
    assert plugin.flow(stranger).deferrals.all() == ()


@pytest.mark.case("C86")
def test_a_deferral_of_a_process_that_ended_by_itself_is_dropped(stage: Stage, claude_home: ClaudeHome) -> None:
    """Nobody is asked again about a process that is gone, whichever process of the host notices."""
    stage.work("SLOW 5")
    stage.launch()
    stage.head.kill()
    stranger = RecordingHost(claude_home)
    beat(stranger, 1, terminal_launch)
    assert plugin.flow(stranger).deferrals.all() == ()


def test_a_process_that_serves_another_session_by_now_is_not_asked_for(stage: Stage) -> None:
    """A deferral is about a session's headless, and goes when its process is registered under another session."""
    stage.work("SLOW 1")
    stage.launch()
    stage.head.wait_idle()
    stage.host.released(stage.head.headless)
    stage.host.adopt(replace(stage.head.headless, session_id=str(uuid.uuid4())))
    stage.tick(terminal_launch)
    assert stage.head.alive
    assert plugin.flow(stage.host).deferrals.all() == ()


@contextmanager
def left_stopped(stage: Stage) -> Iterator[None]:
    """Another process of this host stops the headless for its second look, and is killed there."""
    headless = stage.head.headless
    arguments = [str(stage.host.state_dir), str(headless.pid), str(headless.start_time), headless.session_id, "--hang", "--unlocked"]
    command = [sys.executable, "-m", "tests.retire_stale.retire_once", *arguments]
    host = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    with host:
        assert host.stdin is not None
        assert host.stdout is not None
        assert host.stdout.readline() == "ready\n"
        host.stdin.write("go\n")
        host.stdin.flush()
        assert host.stdout.readline() == "frozen\n"
        host.kill()
    assert psutil.Process(headless.pid).status() == psutil.STATUS_STOPPED
    yield


@pytest.mark.parametrize("mechanism", [terminal_launch, watcher], ids=lambda m: m.NAME)
def test_a_process_that_another_host_left_stopped_goes_on_at_the_next_tick(stage: Stage, mechanism: object) -> None:
    """A host that runs already mends what another process of it broke, without a start of its own in between."""
    stage.tick(mechanism)
    with left_stopped(stage):
        stage.tick(mechanism)
        assert psutil.Process(stage.head.pid).status() != psutil.STATUS_STOPPED
        assert "and on" in stage.head.ask("and on")


def test_a_process_that_another_host_left_stopped_goes_on_before_a_text_goes_in(stage: Stage) -> None:
    """With no mechanism that ticks, the next text still finds a process that can answer it."""
    assert stage.inject() is None
    with left_stopped(stage):
        assert stage.inject() is None
        assert "and on" in stage.head.ask("and on")


def test_a_child_of_a_fork_begins_anew(stage: Stage) -> None:
    """A lock that a thread held when the process forked does not block the child for ever."""
    forked = Plugin()
    forked.flow(stage.host)
    with forked._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            forked.flow(stage.host)
            forked.use(Settings(mode="shadow"))
            os._exit(0 if forked.settings.mode == "shadow" else 1)
        _, status = os.waitpid(child, 0)
    assert status == 0


def test_settings_may_change_while_a_hook_runs(stage: Stage) -> None:
    """A retirement under way ends as it began, and the next hook call goes by the new settings."""
    from ccc_hookspecs.signals import retirement_proposed

    def reconfigure(sender: str, event: object) -> None:
        plugin.use(Settings(mode="shadow"))

    stage.take_over("from terminal")
    with retirement_proposed.connected_to(reconfigure):
        assert isinstance(stage.inject(), Respawn)
    assert not stage.head.alive
    stage.resume().ask("again")
    stage.take_over("from terminal again")
    assert stage.inject() is None
    assert stage.head.alive


def test_hooks_of_many_threads_retire_once(stage: Stage) -> None:
    """Injects, launches and ticks at once on one stale session end its headless once, and none of them fails."""
    stage.take_over("from terminal")
    stage.terminal()
    headless = stage.head.headless
    barrier = threading.Barrier(8)
    answers: list[Decision | None] = []
    errors: list[BaseException] = []

    def inject() -> None:
        with stage.host.session_lock(headless.session_id, 30):
            if stage.host.headless_for(headless.session_id) is not None:
                answers.append(
                    use_time.pre_inject(
                        stage.host, Injection(session_id=headless.session_id, text="x", message_id=str(uuid.uuid4()), headless=headless)
                    )
                )

    def launch() -> None:
        terminal_launch.on_terminal_launch(stage.host, TerminalLaunch(session_id=headless.session_id, headless=headless))

    def tick() -> None:
        beat(stage.host, 1)
        beat(stage.host, 2)

    def run(work: object) -> None:
        barrier.wait(20)
        try:
            work()  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001 - the test tells what any thread raised
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in (inject, launch, inject, tick, launch, inject, launch, inject)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    wait_until(lambda: not stage.head.alive, "the end of the headless")
    assert len(stage.signals.of(headless_retired)) == 1
    assert all(isinstance(answer, Respawn) for answer in answers)
    assert len(answers) <= 1
    assert stage.signals.of(plugin_failed) == []
