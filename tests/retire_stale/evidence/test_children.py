"""Running tools are told from everything else that lives below a headless."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from ccc_plugins.retire_stale.evidence import children
from ccc_plugins.retire_stale.evidence.children import cpu_seconds, running_tools
from ccc_plugins.retire_stale.evidence.process_table import ProcessRow, ProcessTable, snapshot
from tests.retire_stale.evidence.conftest import Actors

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

SPAWN = """
import subprocess
def spawn(*argv, own=False, wired=False):
    streams = subprocess.PIPE if wired else subprocess.DEVNULL
    child = subprocess.Popen(argv, start_new_session=own, stdin=streams, stdout=streams)
    if own or wired:
        import time
        while open(f'/proc/{child.pid}/comm').read().strip() == open('/proc/self/comm').read().strip(): time.sleep(0.005)
    return child
kept = []
def end():
    for child in kept:
        own = os.getpgid(child.pid) == child.pid
        (os.killpg if own else os.kill)(child.pid, 9)
        child.wait()
import atexit; atexit.register(end)
"""


def _named(folder: Path, name: str) -> str:
    link = folder / name
    link.symlink_to("/bin/sleep")
    return str(link)


def _head(pid: int = 10, **more: object) -> ProcessRow:
    values: dict[str, object] = {"start_time": 100.0, "ppid": 1, "pgid": pid, "sid": pid, "name": "claude", "argv": ("claude",), **more}
    return ProcessRow(pid=pid, **values)  # type: ignore[arg-type]


def _child(pid: int, ppid: int = 10, *, sid: int | None = 10, name: str = "bash", status: str = "sleeping", **more: object) -> ProcessRow:
    values: dict[str, object] = {"start_time": 500.0, "ppid": ppid, "pgid": sid, "sid": sid, "name": name, "argv": (name,), **more}
    return ProcessRow(pid=pid, status=status, **values)  # type: ignore[arg-type]


def _tools(*rows: ProcessRow) -> tuple[str, ...]:
    found = running_tools(ProcessTable({row.pid: row for row in (_head(), *rows)}), 10)
    assert found is not None
    return found.tools


@linux
@pytest.mark.case("C65", "C67")
def test_real_children_are_told_apart(actors: Actors, tmp_path: Path) -> None:
    """A tool's shell and a server that a person left running count; caffeinate, ps, a server in the headless's group and zombies do not."""
    code = SPAWN + (
        "kept.append(spawn('/bin/sh', '-c', 'sleep 300; true', own=True))\n"
        f"kept.append(spawn({_named(tmp_path, 'devserver')!r}, '300', own=True))\n"
        f"kept.append(spawn({_named(tmp_path, 'caffeinate')!r}, '300', own=True))\n"
        f"kept.append(spawn({_named(tmp_path, 'ps')!r}, '300', own=True))\n"
        "kept.append(spawn('sleep', '300'))\n"
        "dead = [subprocess.Popen(['true'], start_new_session=own) for own in (True, False)]\n"
        "for child in dead: os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)\n"
        "print(*(child.pid for child in kept), flush=True)\n"
    )
    process = actors.start(code=f"print('up', flush=True)\n{code}")
    assert process.stdout is not None
    shell, server, *_ = process.stdout.readline().split()
    assert process.stdout.readline() == "up\n"
    found = running_tools(snapshot(), process.pid)
    assert found is not None
    assert sorted(found.tools) == sorted([f"sh {shell}", f"devserver {server}"])
    assert found.live == 5


@linux
@pytest.mark.case("C67")
def test_a_real_server_that_left_the_session_is_no_tool(actors: Actors, tmp_path: Path) -> None:
    """Started with the headless and spoken to through its standard streams, it is a server; with other streams it is a tool."""
    code = SPAWN + (
        f"kept.append(spawn({_named(tmp_path, 'server')!r}, '300', own=True, wired=True))\n"
        f"kept.append(spawn({_named(tmp_path, 'tool')!r}, '300', own=True))\n"
        "kept.append(spawn('/bin/sh', '-c', 'sleep 300; true', own=True, wired=True))\n"
        "print(*(child.pid for child in kept), flush=True)\n"
    )
    process = actors.start(code=f"print('up', flush=True)\n{code}")
    assert process.stdout is not None
    _, tool, shell = process.stdout.readline().split()
    assert process.stdout.readline() == "up\n"
    found = running_tools(snapshot(), process.pid)
    assert found is not None
    assert sorted(found.tools) == sorted([f"tool {tool}", f"sh {shell}"])
    assert found.live == 3


@pytest.mark.case("C67")
def test_a_server_in_a_group_of_its_own_within_the_session_is_no_tool() -> None:
    """A shell with job control gives what it runs a group of its own but not a session; below it a real tool is still seen."""
    assert _tools(_child(20, name="node", pgid=20)) == ()
    assert _tools(_child(20, name="node", pgid=20), _child(21, sid=21)) == ("bash 21",)


def test_what_a_server_starts_for_itself_is_no_tool_of_the_headless() -> None:
    """A browser that an MCP server keeps in a session of its own pins nothing."""
    assert _tools(_child(20, name="node"), _child(21, 20, sid=21, name="chrome")) == ()


def test_a_wrapper_is_seen_through() -> None:
    """When the host started a wrapper, the tools of the Claude Code below it count."""
    wrapped = _child(20, name="claude", argv=("claude", "-p"))
    assert _tools(wrapped, _child(21, 20, sid=21)) == ("bash 21",)
    assert _tools(_child(20, name="claude", sid=20, argv=("claude", "-p"))) == ("claude 20",)


def test_a_service_of_the_program_itself_is_no_tool() -> None:
    """A daemon that it left behind in a session of its own is not work."""
    assert _tools(_child(20, sid=20, name="claude", argv=("claude", "daemon", "run"))) == ()


@pytest.mark.case("C49", "C67")
def test_a_defunct_child_hides_no_live_one() -> None:
    """Zombies are stepped over, and a child that seems older than its parent is still one."""
    assert _tools(_child(20, sid=20, status="zombie", argv=()), _child(21, sid=21, start_time=5.0)) == ("bash 21",)
    assert _tools(_child(20, sid=20, status="zombie", argv=())) == ()


def test_a_late_or_unseen_server_counts_as_a_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be proven to be a server is work: one that started later, at an unknown time, or whose streams cannot be seen."""
    monkeypatch.setattr(children, "_is_channel", lambda _pid, _fd: True)
    assert _tools(_child(20, sid=20, name="node", start_time=101.0)) == ()
    assert _tools(_child(20, sid=20, name="node", start_time=111.0)) == ("node 20",)
    assert _tools(_child(20, sid=20, name="node", start_time=None)) == ("node 20",)
    assert _tools(_child(20, sid=20, name="bash", start_time=101.0)) == ("bash 20",)
    assert _tools(_child(20, sid=20, name="node", start_time=101.0, argv=None)) == ("node 20",)
    monkeypatch.undo()
    assert not children._is_channel(2**22 + 1, 0)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not children._is_channel(os.getpid(), 0)


def test_without_sessions_the_group_decides() -> None:
    """Where the session of a process is unknown, its group is compared; where that is unknown too, it counts."""
    assert _tools(_child(20, sid=None, pgid=10)) == ()
    assert _tools(_child(20, sid=None, pgid=20)) == ("bash 20",)
    assert _tools(_child(20, sid=None, pgid=None)) == ("bash 20",)


def test_what_cannot_be_seen_is_unknown() -> None:
    """No row of the headless, or no process list at all, is not the absence of tools."""
    assert running_tools(ProcessTable({}), 10) is None
    assert running_tools(ProcessTable({}, readable=False), 10) is None
    assert cpu_seconds(ProcessTable({}), 10) is None
    assert running_tools(ProcessTable({10: _head()}), 10) == children.Children(tools=(), live=0)


def test_cpu_time_grows_with_work(actors: Actors) -> None:
    """A process that computed has used more than one that only waits."""
    busy = actors.start(code="import time; end = time.process_time() + 0.2\nwhile time.process_time() < end: pass")
    table = snapshot()
    used = cpu_seconds(table, busy.pid)
    assert used is not None
    assert used >= 0.2
    time.sleep(0.05)
    later = cpu_seconds(snapshot(table), busy.pid)
    assert later is not None
    assert later - used < 0.05
