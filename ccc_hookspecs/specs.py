"""The hooks that a host calls and a plugin implements, and what a host offers to a plugin.

A plugin is a module or an object whose functions carry `@hookimpl`. It may also have `configure(settings)`, which the
plugin manager calls once before it registers the plugin (see `ccc_hookspecs.config.PluginSettings`), and `unconfigure()`,
which it calls when the plugin was switched off; switched on again, it is configured again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, runtime_checkable

import pluggy

from ccc_hookspecs.values import Decision, Headless, Injection, TerminalLaunch, Tick

PROJECT = "ccc"
"""The marker project name of every hookspec and hookimpl."""

hookspec = pluggy.HookspecMarker(PROJECT)
"""Marks a function as a hook that a host calls."""

hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a plugin's function as its implementation of the hook of the same name."""


@runtime_checkable
class Host(Protocol):
    """What a host offers a plugin. Every method may be called from any thread."""

    @property
    def state_dir(self) -> Path:
        """A private directory (0700) where plugins keep what must survive a restart; shared by all processes of this host."""

    def headless_for(self, session_id: str) -> Headless | None:
        """The live headless registered for this session, or None. A fresh value at each call."""

    def headless_agents(self) -> Sequence[Headless]:
        """Every headless the host believes alive, of any engine, in no order. Fresh values at each call."""

    def session_lock(self, session_id: str, timeout: float) -> AbstractContextManager[None]:
        """The lock under which this session's FIFO is written and its headless is ended.

        Holds across processes of the host and is reentrant within a thread. `timeout` in seconds, 0 tries once.
        Raises `SessionLockTimeout` on entry when the lock stays taken.
        """

    def write(self, headless: Headless, line: bytes) -> None:
        """Write one line, which ends in a line break, into this headless's FIFO; called with the session's lock held.

        The input that it is (`SentInput.of_line`) stands in `Headless.sent` from then on, and is noted before the first byte is written.
        Raises `NotWritten` when not all of it went in; it may be written again.
        """

    def released(self, headless: Headless) -> None:
        """This process is gone: drop its FIFO, its row and every handle on it. Harmless when repeated."""

    def config_dir(self, headless: Headless) -> Path:
        """The directory where this headless's Claude Code keeps its files (`projects/`, `sessions/`), absolute."""


@hookspec(firstresult=True)
def pre_inject(ccc: Host, injection: Injection) -> Decision | None:
    """Called before any byte of a text is written to a headless's FIFO, on the thread that injects, with the session's lock held.

    `ccc`: the host. `injection`: the session, the text, its message id and the headless it would go to.

    Return None or `Deliver()` to let the text go to this headless; `Respawn(reason=...)` when the headless is gone and a
    fresh `--resume` must take the text; `Hold(reason=...)` to keep the text and be asked again on the next tick. The
    first answer that is not None wins; a plugin that raises is skipped, and counts as None.

    versionadded: 0.1
    """


@hookspec
def on_terminal_launch(ccc: Host, launch: TerminalLaunch) -> None:
    """Called just before a terminal's process is started on a session, on the thread that starts it, without the session's lock.

    `ccc`: the host. `launch`: the session, its headless if it has one, and the directory the terminal starts in.

    The terminal is started when every implementation has returned, whatever they did; one that raises is skipped.

    versionadded: 0.1
    """


@hookspec
def on_tick(ccc: Host, tick: Tick) -> None:
    """Called from the host's ticker thread every 5 to 10 seconds, never twice at once, without any lock held.

    `ccc`: the host. `tick`: its number, counted from 1, its start on the monotonic clock and the interval, both in seconds.

    A call that takes longer than the interval delays the next tick and is logged; one that raises is skipped.

    versionadded: 0.1
    """
