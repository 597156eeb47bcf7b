"""Which children of a headless are running tools.

Measured on 2.0.42, 2.1.6, 2.1.61, 2.1.168, 2.1.216, 2.1.275 and 2.1.332 on Linux: a shell tool, in the foreground or the background,
is a direct child that leads a session of its own, a shell that goes on living while its command runs (a command that starts
with `exec` takes its place). MCP servers stay in the session of the headless, also those that `npx` or a job-controlling shell
starts, unless they leave it themselves. Hooks stay in it up to 2.1.61 and lead their own from 2.1.168 on: there a running hook
counts as a tool.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ccc_plugins.retire_stale.evidence.command_line import claude_arguments, role
from ccc_plugins.retire_stale.evidence.process_table import Identity, ProcessRow, ProcessTable

_NOT_TOOLS = frozenset({"caffeinate", "ps"})
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ash", "ksh", "fish", "pwsh", "powershell"})
_SERVER_STARTS_WITHIN = 10.0
"""Seconds after the headless by which the MCP servers of its configuration are started: measured 0.1 to 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Children:
    """The children of one headless at one moment.

    `tools`: the running tools, each as the program's name and pid. `live`: how many children of any kind are alive. That there are
    none proves nothing: a command may have been left by its shell, and the system may hide it.
    """

    tools: tuple[str, ...]
    live: int


def running_tools(table: ProcessTable, pid: int) -> Children | None:
    """The children of the headless with this pid; None when it, or the processes of the system, cannot be seen.

    A tool is a live child in a session (where that is not known: a process group) other than the headless's. Where the host
    started a wrapper, the Claude Code below it in the same session stands for it. Not tools: `caffeinate`, `ps`, Claude Code's own
    services, and an MCP server that left the session, which is known by all of these: it is no shell, it started within ten
    seconds of the headless, and its standard input and output are pipes or sockets, through which it is spoken to.
    Where those cannot be seen (macOS) it counts as a tool. What a server starts for itself is no tool of the headless.
    """
    head = table.rows.get(pid)
    if head is None or not table.readable:
        return None
    tools = tuple(f"{child.name or 'process'} {child.pid}" for owner in _owners(table, head) for child in _tools_of(table, head, owner))
    return Children(tools=tools, live=sum(child.alive for child in table.children.get(pid, ())))


def claude_below(table: ProcessTable, pid: int) -> tuple[Identity, ...]:
    """The Claude Code at work below a wrapper with this pid, in the wrapper's own session; none below a Claude Code.

    A shell script or a version manager that does not replace itself is such a wrapper: signals to it do not reach what it runs.
    """
    head = table.rows.get(pid)
    if head is None or not head.argv or claude_arguments(head.argv, head.exe) is not None:
        return ()
    return tuple(_workers(table, head, head, {pid}))


def left_behind(table: ProcessTable, pid: int) -> int | None:
    """The pid of a Claude Code at work in the session that a process with this pid led, now that it is gone; None when there is none.

    As long as one lives there, no other process gets that pid.
    """
    rows = (row for row in table.rows.values() if row.alive and pid in (row.sid, row.pgid) and row.pid != pid)
    works = ((row.pid, claude_arguments(row.argv or (), row.exe)) for row in rows)
    return next((found for found, arguments in works if arguments is not None and role(arguments) in ("stream", None)), None)


def descendants(table: ProcessTable, pids: Collection[int]) -> tuple[Identity, ...] | None:
    """Every live process below those with these pids, whatever it is and whatever session it is in.

    None when one of those, or the processes of the system, cannot be seen.
    """
    if not table.readable or not all(pid in table.rows for pid in pids):
        return None
    found: dict[int, ProcessRow] = {}
    above = list(pids)
    while above:
        for child in table.children.get(above.pop(), ()):
            if child.pid not in found and child.pid not in pids:
                found[child.pid] = child
                above.append(child.pid)
    return tuple(row.identity for row in found.values() if row.alive)


def _workers(table: ProcessTable, head: ProcessRow, above: ProcessRow, seen: set[int]) -> Iterator[Identity]:
    for child in table.children.get(above.pid, ()):
        if child.pid in seen or not child.alive or _is_apart(head, child):
            continue
        seen.add(child.pid)
        arguments = claude_arguments(child.argv or (), child.exe)
        if arguments is None:
            yield from _workers(table, head, child, seen)
        elif role(arguments) in ("stream", None):
            yield child.identity


def cpu_seconds(table: ProcessTable, pid: int) -> float | None:
    """User and system time that a process used so far; None when it cannot be seen."""
    row = table.rows.get(pid)
    return None if row is None else row.cpu_seconds


def _owners(table: ProcessTable, head: ProcessRow) -> Iterator[ProcessRow]:
    """The headless and what stands for it below: the Claude Code that a wrapper runs."""
    yield head
    for child in table.children.get(head.pid, ()):
        if (
            child.alive
            and child.pid != head.pid
            and not _is_apart(head, child)
            and claude_arguments(child.argv or (), child.exe) is not None
        ):
            yield from _owners(table, child)


def _tools_of(table: ProcessTable, head: ProcessRow, owner: ProcessRow) -> Iterator[ProcessRow]:
    for child in table.children.get(owner.pid, ()):
        if child.alive and child.name not in _NOT_TOOLS and _is_apart(head, child) and not _is_server(head, child):
            yield child


def _is_apart(head: ProcessRow, child: ProcessRow) -> bool:
    if head.sid is not None and child.sid is not None:
        return head.sid != child.sid
    return head.pgid is None or child.pgid is None or head.pgid != child.pgid


def _is_server(head: ProcessRow, child: ProcessRow) -> bool:
    if role(claude_arguments(child.argv or (), child.exe) or ()) == "service":
        return True
    if not child.argv or os.path.basename(child.argv[0]).lstrip("-") in _SHELLS or child.name in _SHELLS:
        return False
    if head.start_time is None or child.start_time is None or child.start_time - head.start_time > _SERVER_STARTS_WITHIN:
        return False
    return _is_channel(child.pid, 0) and _is_channel(child.pid, 1)


def _is_channel(pid: int, fd: int) -> bool:
    """Whether a standard stream of the process is a pipe or a socket, as far as that can be seen."""
    if sys.platform != "linux":
        return False
    try:
        return os.readlink(f"/proc/{pid}/fd/{fd}").startswith(("pipe:", "socket:"))
    except OSError:
        return False
