"""A host whose `claude` is a wrapper that does not replace itself: a shell script, a version manager."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import psutil
import pytest

from ccc_hookspecs.testing.harness import wait_until
from ccc_hookspecs.testing.simulator import MEASURED
from ccc_hookspecs.values import Hold, Respawn
from ccc_plugins.retire_stale.evidence.children import claude_below
from ccc_plugins.retire_stale.evidence.process_rows import ProcessRow
from ccc_plugins.retire_stale.evidence.process_table import ProcessTable
from tests.retire_stale.mechanisms.conftest import Stage


def wrap(stage: Stage, monkeypatch: pytest.MonkeyPatch, release: str = MEASURED[-1]) -> psutil.Process:
    """Give the stage a headless below two shells, on a session that has had a turn; returns the Claude Code below them."""
    program = stage.simulator.program(release)
    outer, inner = (stage.simulator.home.root / name for name in ("wrapper", "inner"))
    inner.write_text(f'#!/bin/sh\n{program} "$@"\nexit $?\n')
    outer.write_text(f'#!/bin/sh\n{inner} "$@"\nexit $?\n')
    for script in (outer, inner):
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    with monkeypatch.context() as patched:
        patched.setattr(stage.simulator, "program", lambda release=None: outer)
        stage.head = stage.simulator.headless()
    stage.head.ask("hello")
    stage.host.adopt(stage.head)
    below = psutil.Process(stage.head.pid).children(recursive=True)
    stage.tools += below  # ended with the test, when the wrapper leaves them behind
    return below[-1]


def ended(process: psutil.Process) -> bool:
    """Whether a process is gone, or only waits to be reaped by whoever took it over."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("release", ["2.1.61", "2.1.332"])
def test_what_the_wrapper_runs_is_gone_with_it(stage: Stage, monkeypatch: pytest.MonkeyPatch, release: str) -> None:
    """`Respawn` comes when neither the wrapper nor the Claude Code below it lives, so that there is one writer."""
    worker = wrap(stage, monkeypatch, release)
    stage.take_over("from terminal")
    assert isinstance(stage.inject(), Respawn)
    assert not stage.head.alive
    assert ended(worker)


def test_what_the_wrapper_runs_is_not_ended_at_work(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its work counts as the headless's, and it answers afterwards."""
    wrap(stage, monkeypatch)
    stage.work("SLOW 1")
    stage.terminal("from terminal")
    assert isinstance(stage.inject(), Hold)
    stage.tick(times=3)
    assert stage.head.alive
    stage.head.wait_idle()
    assert "hello" in stage.head.answers()[-1]


@pytest.mark.case("C80")
def test_what_the_wrapper_runs_is_killed_when_it_ignores_sigterm(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrapper's end alone is not the end."""
    worker = wrap(stage, monkeypatch)
    stage.use(terminate_seconds=0.2)
    stage.head.ask("DEAF")
    stage.take_over("from terminal")
    assert isinstance(stage.inject(), Respawn)
    assert ended(worker)


def test_what_a_wrapper_that_was_killed_leaves_behind_keeps_the_session(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh process beside it would be a second writer; once it is gone, one comes."""
    worker = wrap(stage, monkeypatch)
    stage.take_over("from terminal")
    headless = stage.head.headless
    os.kill(headless.pid, signal.SIGKILL)
    os.waitid(os.P_PID, headless.pid, os.WEXITED | os.WNOWAIT)
    stage.host.adopt(headless)
    held = stage.inject()
    assert isinstance(held, Hold)
    assert str(worker.pid) in held.reason
    assert not stage.host.releases
    stage.end_tools()
    wait_until(lambda: ended(worker), "the end of what the wrapper ran")
    stage.host.adopt(headless)
    assert isinstance(stage.inject(), Respawn)


def row(pid: int, ppid: int, *argv: str, sid: int = 10) -> ProcessRow:
    return ProcessRow(pid=pid, start_time=float(pid), ppid=ppid, pgid=sid, sid=sid, name=Path(argv[0]).name, argv=argv, status="sleeping")


STREAM = ("claude", "-p", "--input-format", "stream-json")


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([row(10, 1, *STREAM), row(11, 10, *STREAM)], []),
        ([row(10, 1, "sh", "wrapper"), row(11, 10, *STREAM)], [11]),
        ([row(10, 1, "sh", "wrapper"), row(11, 10, "claude")], [11]),
        ([row(10, 1, "sh", "wrapper"), row(11, 10, "sh", "inner"), row(12, 11, *STREAM), row(13, 12, *STREAM)], [12]),
        ([row(10, 1, "sh", "wrapper"), row(11, 10, "claude", "mcp", "serve")], []),
        ([row(10, 1, "sh", "wrapper"), row(11, 10, "claude", "--resume", "x")], []),
        ([row(10, 1, "sh", "wrapper"), row(11, 10, *STREAM, sid=11)], []),
        ([row(10, 1, "python", "stand-in.py"), row(11, 10, "npx", "server")], []),
        ([row(10, 11, "sh", "wrapper"), row(11, 10, "sh", "in a circle")], []),
        ([row(11, 10, *STREAM)], []),
    ],
)
def test_who_works_below_a_wrapper(rows: list[ProcessRow], found: list[int]) -> None:
    """The nearest Claude Code in the wrapper's session that is fed as a headless is; nothing below a Claude Code itself."""
    table = ProcessTable({one.pid: one for one in rows})
    assert [identity.pid for identity in claude_below(table, 10)] == found
