"""A process is known by its pid and its start time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from ccc_hookspecs.processes import has_ended, is_in_use, start_time

READY = "import sys; print('ready', flush=True); sys.stdin.read()"


@contextmanager
def child(script: str = READY) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.communicate()


def test_it_stays_the_same_while_the_process_lives() -> None:
    """The same process gives the same start time at each look, and it lies between its parent's and now."""
    with child() as process:
        first = start_time(process.pid)
        assert first is not None
        assert start_time(process.pid) == first
        mine = start_time(os.getpid())
        assert mine is not None
        assert mine <= first


def test_two_processes_started_apart_differ() -> None:
    """A later process has a later start time, so that a pid given anew is told from the one before."""
    with child() as one:
        time.sleep(2.5 / os.sysconf("SC_CLK_TCK"))
        with child() as other:
            first, second = start_time(one.pid), start_time(other.pid)
    assert first is not None
    assert second is not None
    assert first < second


def test_it_agrees_with_psutil() -> None:
    """On the wall clock it is the moment that psutil names, but for the clock's own steps since boot."""
    value = start_time(os.getpid())
    assert value is not None
    born = value + psutil.boot_time() if sys.platform == "linux" else value
    assert born == pytest.approx(psutil.Process().create_time(), abs=1.5)


def test_nobody_has_none() -> None:
    """A pid that nobody has, or that nobody can have, has no start time."""
    with child() as process:
        pid = process.pid
    assert start_time(pid) is None
    assert start_time(-1) is None
    assert start_time(2**30) is None


def test_only_what_is_gone_for_certain_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has the pid, or one that started at another time has; a process that cannot be looked at may live."""
    with child() as process:
        started = start_time(process.pid)
        assert started is not None
        assert (has_ended(process.pid, started), has_ended(process.pid, started - 1)) == (False, True)
        with monkeypatch.context() as blind:
            blind.setattr("ccc_hookspecs.processes.start_time", lambda pid: None)
            assert (has_ended(process.pid, started), has_ended(process.pid, started - 1)) == (False, False)
            assert has_ended(2**30, started)
    assert has_ended(process.pid, started)
    assert [is_in_use(pid) for pid in (os.getpid(), 1, process.pid, 2**80)] == [True, True, False, False]


def test_a_zombie_still_has_its_own() -> None:
    """Until it is reaped, an ended process keeps its identity."""
    process = subprocess.Popen([sys.executable, "-c", "print('x')"], stdout=subprocess.PIPE)
    try:
        before = start_time(process.pid)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert before is not None
        assert start_time(process.pid) == before
    finally:
        process.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a name in brackets before the number")
def test_a_name_with_brackets_and_spaces_hides_nothing() -> None:
    """A program called `a) 1 (b` is read like any other."""
    with child("open('/proc/self/comm', 'w').write('a) 1 (b'); " + READY) as process:
        assert Path(f"/proc/{process.pid}/comm").read_text() == "a) 1 (b\n"
        own = start_time(os.getpid())
        theirs = start_time(process.pid)
    assert own is not None
    assert theirs is not None
    assert own <= theirs < own + 3600


def test_threads_may_ask_at_once() -> None:
    """Many threads asking for the same process get the same answer."""
    answers: list[float | None] = []
    threads = [threading.Thread(target=lambda: answers.append(start_time(os.getpid()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert len(set(answers)) == 1
