"""One snapshot sees every process, each as it is now, and one bad row spoils nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import psutil
import pytest

from ccc_hookspecs.processes import start_time
from ccc_hookspecs.testing.harness import wait_until
from ccc_plugins.retire_stale.evidence import procfs, psutil_rows
from ccc_plugins.retire_stale.evidence.process_table import ProcessRow, ProcessTable, snapshot
from tests.retire_stale.evidence.conftest import Actors

pytestmark = pytest.mark.alone

S = str(uuid.uuid4())

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_a_row_is_what_psutil_says(actors: Actors) -> None:
    """Every field of a living process agrees with psutil, and its identity with that of the contract."""
    process = actors.start("--resume", S)
    other = psutil.Process(process.pid)
    wait_until(lambda: other.status() == psutil.STATUS_SLEEPING, "nothing left to do for it")
    row = snapshot().rows[process.pid]
    assert (row.ppid, row.name, row.status) == (os.getpid(), other.name(), other.status())
    assert list(row.argv or ()) == other.cmdline()
    assert row.exe == other.exe()
    assert row.uid == other.uids().real
    assert row.pgid == row.sid == process.pid
    assert row.tty is None
    assert row.unknown == frozenset()
    assert row.cpu_seconds == pytest.approx(sum(other.cpu_times()[:2]), abs=0.05)
    assert row.identity == (process.pid, start_time(process.pid))


@linux
def test_both_ways_of_looking_agree(actors: Actors) -> None:
    """What is read from /proc and what psutil tells give the same rows."""
    pids = [actors.start("--resume", S, tty=True).pid, actors.start(name="node").pid, os.getpid()]
    direct, through = snapshot(), psutil_rows.read_all({})
    for pid in pids:
        for field in ("start_time", "ppid", "pgid", "sid", "name", "argv", "exe", "tty", "uid"):
            assert getattr(direct.rows[pid], field) == getattr(through[pid].row, field)
    again = psutil_rows.read_all(through)
    assert [again[pid].row.argv for pid in pids] == [through[pid].row.argv for pid in pids]


@pytest.mark.case("C55")
def test_only_a_device_is_a_terminal(actors: Actors) -> None:
    """A process with a controlling terminal shows its device, one without shows none."""
    table = snapshot()
    assert not any((row.tty or "/dev/").partition("/dev/")[0] for row in table.rows.values())
    shown = actors.start(tty=True)
    hidden = actors.start()
    table = snapshot(table)
    tty = table.rows[shown.pid].tty
    assert tty is not None
    assert Path(tty).is_char_device()
    assert table.rows[hidden.pid].tty is None


@linux
def test_device_numbers_are_named_as_the_system_does() -> None:
    """Pseudo terminals beyond the first 256, consoles, serial lines, and what has no name of its own."""
    assert procfs._device(0) is None
    assert procfs._device(os.makedev(136, 3)) == "/dev/pts/3"
    assert procfs._device(os.makedev(137, 4)) == "/dev/pts/260"
    assert procfs._device(os.makedev(4, 1)) == "/dev/tty1"
    assert procfs._device(os.makedev(4, 65)) == "/dev/ttyS1"
    assert procfs._device(os.makedev(229, 0)) == "/dev/char/229:0"


@linux
def test_an_unchanged_row_is_not_read_again(actors: Actors, monkeypatch: pytest.MonkeyPatch) -> None:
    """A settled process costs one read, and its row is the very same."""
    process = actors.start("--resume", S)
    monkeypatch.setattr(procfs, "SETTLED_SECONDS", 0.0)
    time.sleep(0.05)
    first = snapshot()
    read: list[str] = []
    original = procfs._read

    def note(path: str, size: int) -> bytes | None:
        read.append(path)
        return original(path, size)

    monkeypatch.setattr(procfs, "_read", note)
    second = snapshot(first)
    assert second.rows[process.pid] is first.rows[process.pid]
    assert [path for path in read if path.startswith(f"/proc/{process.pid}/")] == [f"/proc/{process.pid}/stat"]


@linux
def test_a_changed_row_keeps_its_command_line_and_shows_what_is_new(actors: Actors, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopping a settled process changes its status and nothing of what it runs."""
    process = actors.start("--resume", S)
    monkeypatch.setattr(procfs, "SETTLED_SECONDS", 0.0)
    time.sleep(0.05)
    first = snapshot()
    process.send_signal(19)
    _wait_for_status(process.pid, "stopped")
    row = snapshot(first).rows[process.pid]
    assert row.status == "stopped"
    assert (row.argv, row.exe, row.uid) == tuple(getattr(first.rows[process.pid], field) for field in ("argv", "exe", "uid"))


def _wait_for_status(pid: int, status: str) -> None:
    deadline = time.monotonic() + 10
    while snapshot().rows[pid].status != status:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_process_that_runs_another_program_now_is_read_again(actors: Actors) -> None:
    """The same pid and start with a new program, as a shell that ends by becoming claude, shows the new command line."""
    code = "sys.stdin.readline(); os.execv(os.path.realpath('/bin/sh'), ['claude', '-c', 'echo next; read x', '--resume', sys.argv[-1]])"
    process = actors.start(S, name="bash", code=f"print('up', flush=True); {code}")
    first = snapshot()
    assert (first.rows[process.pid].argv or ())[0] == "bash"
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "next\n"
    second = snapshot(first)
    assert second.rows[process.pid].identity == first.rows[process.pid].identity
    assert [row.pid for row in second.by_session[S]] == [process.pid]
    process.stdin.write("\n")
    process.stdin.flush()


@linux
def test_a_command_line_that_was_seen_outlives_its_replacement(actors: Actors) -> None:
    """A release that shows only `claude` a second after its start is still known by what it showed before."""
    code = (
        "sys.stdin.readline()\n"
        "print('next', flush=True)\n"
        "os.execve(os.path.realpath('/proc/self/exe'), ['claude'], {**os.environ, 'PYTHONHOME': sys.base_prefix})"
    )
    process = actors.start("--resume", S, name="/x/@anthropic-ai/claude-code/cli.js", code=f"print('up', flush=True)\n{code}")
    first = snapshot()
    assert first.rows[process.pid] in first.by_session[S]
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    deadline = time.monotonic() + 10
    while psutil.Process(process.pid).cmdline() != ["claude"]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    second = snapshot(first)
    assert [row.pid for row in second.by_session[S]] == [process.pid]
    assert snapshot().rows[process.pid].argv == ("claude",)


@pytest.mark.case("C50")
def test_a_zombie_is_a_row_that_is_not_alive(actors: Actors) -> None:
    """A child that has exited and was not reaped is seen as that, and is no candidate any more."""
    process = actors.start("--resume", S)
    process.kill()
    _wait_for_status(process.pid, "zombie")
    table = snapshot()
    assert not table.rows[process.pid].alive
    assert S not in table.by_session


@pytest.mark.case("C50")
def test_a_process_that_ends_meanwhile_spoils_nothing(actors: Actors, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pid that is listed and then gone has no row; all others have theirs."""
    process = actors.start()
    listed = [*os.listdir("/proc"), str(2**22 + 1)] if sys.platform == "linux" else []
    monkeypatch.setattr(os, "listdir", lambda _path: listed)
    table = snapshot()
    assert 2**22 + 1 not in table.rows
    assert process.pid in table.rows


@linux
@pytest.mark.case("C50")
def test_what_may_not_be_read_is_unknown(actors: Actors, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command line, a user and a program that are refused leave a row that says so; a garbled record leaves a bare one."""
    refused, garbled, fine = (actors.start("--resume", S) for _ in range(3))
    original = procfs._read

    def refuse(path: str, size: int) -> bytes | None:
        if path in (f"/proc/{refused.pid}/cmdline", f"/proc/{refused.pid}/status"):
            return None
        return b"garbage" if path == f"/proc/{garbled.pid}/stat" else original(path, size)

    monkeypatch.setattr(procfs, "_read", refuse)
    rows = snapshot().rows
    assert rows[refused.pid].argv is None
    assert "argv" in rows[refused.pid].unknown
    assert rows[garbled.pid].start_time is None
    assert {"start_time", "argv"} <= rows[garbled.pid].unknown
    assert rows[fine.pid].argv is not None


class _Refusing:
    """A process of which psutil may tell little."""

    def __init__(self, pid: int, error: psutil.Error) -> None:
        self.pid = pid
        self._error = error

    def __getattr__(self, name: str) -> Any:
        def ask() -> Any:
            raise self._error

        return ask

    def oneshot(self) -> Any:
        return psutil.Process().oneshot()

    def name(self) -> str:
        return "claude"


@pytest.mark.case("C50")
@pytest.mark.parametrize("error", [psutil.AccessDenied(1), psutil.ZombieProcess(1)], ids=["denied", "zombie"])
def test_errors_of_psutil_are_unknown_fields(error: psutil.Error) -> None:
    """A refused process keeps its row with its fields unknown; a zombie's row says that it is one."""
    read = psutil_rows._read_one(_Refusing(os.getpid(), error), None)
    assert read is not None
    assert read.row.argv is None
    assert {"argv", "tty", "uid", "exe"} <= read.row.unknown
    assert read.row.alive is not isinstance(error, psutil.ZombieProcess)


@pytest.mark.case("C50")
def test_a_process_that_psutil_finds_gone_has_no_row() -> None:
    """One that ended between the listing and the look is left out."""
    assert psutil_rows._read_one(_Refusing(2**22 + 1, psutil.NoSuchProcess(1)), None) is None


def test_nothing_to_be_seen_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a process list the snapshot is empty and says that it could not be read."""

    def refuse(_path: str) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "listdir", refuse)
    assert snapshot() == ProcessTable({}, readable=False)


@pytest.mark.case("C49")
def test_children_are_found_whatever_their_clock_says() -> None:
    """A child that seems to have started before its parent, as after a step of the clock, is still its child."""
    parent, child = ProcessRow(pid=5, start_time=100.0), ProcessRow(pid=6, ppid=5, start_time=10.0)
    table = ProcessTable({5: parent, 6: child, 7: ProcessRow(pid=7)})
    assert table.children == {5: (child,)}


def test_a_reused_pid_is_another_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same pid and name but another start nothing of the old row is kept."""
    if sys.platform != "linux":
        pytest.skip("reads /proc")
    fields = b" ".join([b"S", b"1", *[b"5"] * 17, b"%d", b"0"])
    old = procfs._read_one(2**22 + 1, b"1 (claude) " + fields % 700, None, 1e9)
    kept = old._replace(row=ProcessRow(pid=2**22 + 1, start_time=old.row.start_time, name="claude", argv=("claude", "--resume", S)))
    same = procfs._read_one(2**22 + 1, b"1 (claude) " + fields % 700, kept, 1e9)
    other = procfs._read_one(2**22 + 1, b"1 (claude) " + fields % 900, kept, 1e9)
    assert same.row.argv == ("claude", "--resume", S)
    assert other.row.argv is None


def test_a_name_with_brackets_and_spaces_is_read_right(actors: Actors, tmp_path: Path) -> None:
    """The name may hold what separates the fields."""
    program = tmp_path / "a) S (1 b"
    program.symlink_to("/bin/cat")
    process = subprocess.Popen([str(program)], stdin=subprocess.PIPE)
    try:
        row = snapshot().rows[process.pid]
        deadline = time.monotonic() + 10
        while row.name != program.name:
            assert time.monotonic() < deadline
            row = snapshot().rows[process.pid]
        assert (row.ppid, row.start_time) == (os.getpid(), start_time(process.pid))
    finally:
        process.communicate(timeout=10)
