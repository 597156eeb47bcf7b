"""The looks around a headless: its FIFO, its children, its record in the registry, and who else is on the session."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from ccc_hookspecs.claude.paths import subagent_files
from ccc_hookspecs.claude.registry import Registry, read_registry
from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.evidence.children import claude_below, left_behind, running_tools
from ccc_plugins.retire_stale.evidence.fifo import unread_bytes
from ccc_plugins.retire_stale.evidence.observer import Surroundings
from ccc_plugins.retire_stale.evidence.process_rows import ProcessRow
from ccc_plugins.retire_stale.evidence.processes import (
    Identity,
    InteractiveWriter,
    ProcessTable,
    interactive_writers,
    snapshot,
    unnamed_directories,
)

COMPUTING = 0.4
"""Share of one core above which a process counts as computing; an idle one was measured at under 0.02."""
_JUST_NOW = 3.0
"""Seconds within which a write to a subagent's transcript says that the subagent is at work."""
_REMEMBERED = 64
_SLEPT = 30.0
"""Seconds by which the clocks must differ."""


class View:
    """The processes of one moment, and the registries beside them, each read at most once. Not for use by several threads at once."""

    def __init__(self, table: ProcessTable, read: Callable[[Path], Registry]) -> None:
        self.table = table
        self._read = read
        self._registries: dict[Path, Registry] = {}
        self._unnamed: dict[Path, frozenset[str]] = {}

    def registry(self, config_dir: Path) -> Registry:
        """The live-session registry below this directory."""
        if config_dir not in self._registries:
            self._registries[config_dir] = self._read(config_dir)
        return self._registries[config_dir]

    def typists(self, headless: Headless, config_dir: Path) -> tuple[InteractiveWriter, ...]:
        """The live processes through which a person may be writing to the session, besides the headless; the sure ones first."""
        cwd = headless.cwd if headless.cwd is not None and self._has_unnamed(config_dir, headless.cwd) else None
        registry = self.registry(config_dir)
        if cwd is None and not self._names_another(headless, registry):
            return ()
        return interactive_writers(self.table, registry, headless.session_id, Identity(headless.pid, headless.start_time), cwd)

    def claude_below(self, headless: Headless) -> tuple[Identity, ...]:
        """The Claude Code that does the work where the host started a wrapper."""
        return claude_below(self.table, headless.pid)

    def left_behind(self, headless: Headless) -> int | None:
        """The pid of a Claude Code that lives on in the session of processes that this one led, now that it is gone; None for none."""
        return left_behind(self.table, headless.pid)

    def _names_another(self, headless: Headless, registry: Registry) -> bool:
        """Whether anything but the headless names its session: for most of a thousand sessions nothing does."""
        session = headless.session_id.lower()
        records, rows = registry.by_session.get(session, ()), self.table.by_session.get(session, ())
        return any(record.pid != headless.pid for record in records) or any(row.pid != headless.pid for row in rows)

    def _has_unnamed(self, config_dir: Path, cwd: Path) -> bool:
        """Whether a terminal that names no session works in this directory; they are few, so they are looked for once."""
        if config_dir not in self._unnamed:
            self._unnamed[config_dir] = unnamed_directories(self.table, self.registry(config_dir))
        return bool(self._unnamed[config_dir]) and os.path.realpath(cwd) in self._unnamed[config_dir]


class Sleep:
    """Notices that the machine slept, by the wall clock running ahead of one that stands still meanwhile. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: tuple[float, float] | None = None
        self._woke_at: float | None = None

    def woke_at(self, now: float) -> float | None:
        """When it last woke, in seconds since the epoch, at most one look too late; None when that was not since the first look. A clock
        that was set forward looks the same.
        """
        with self._lock:
            last, self._last = self._last, (now, time.monotonic())
            if last is not None and (now - last[0]) - (self._last[1] - last[1]) > _SLEPT:
                self._woke_at = now
            return self._woke_at


class Probe:
    """Looks at what is outside the session's files, and remembers only what makes the next look cheaper. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._registries: OrderedDict[Path, Registry] = OrderedDict()
        self._table: ProcessTable | None = None
        self._sleep = Sleep()

    def around(self, headless: Headless, config_dir: Path, transcript: Path | None, view: View | None = None) -> Surroundings:
        """What is known of a headless besides its files, now; of the processes as `view` has them."""
        view = view or self.view()
        registry = view.registry(config_dir)
        record = registry.of(headless.pid, headless.start_time)
        children = running_tools(view.table, headless.pid)
        now = time.time()
        return Surroundings(
            now=now,
            woke_at=self._sleep.woke_at(now),
            unread=None if headless.fifo is None else unread_bytes(headless.fifo),
            tools=None if children is None else children.tools,
            children=None if children is None else children.live,
            registry_status=None if record is None else record.status,
            registered=None if registry.state == "unreadable" else record is not None,
            others=_others(headless, config_dir, view),
            writers=_writers(headless, config_dir, view),
            release=None if record is None else record.version,
            subagents=transcript is not None and _writes_now(transcript),
        )

    def view(self) -> View:
        """The processes as they are now."""
        self._table = snapshot(self._table)
        return View(self._table, self.registry)

    def registry(self, config_dir: Path) -> Registry:
        """The live-session registry as it is now."""
        with self._lock:
            read = read_registry(config_dir, self._registries.pop(config_dir, None))
            self._registries[config_dir] = read
            if len(self._registries) > _REMEMBERED:
                self._registries.popitem(last=False)
            return read

    def computes(self, headless: Headless, seconds: float) -> bool | None:
        """Whether a process uses CPU over this time, which is waited for unless it stands still.

        None when that cannot be seen, as in no time.
        """
        if not seconds:
            return None
        try:
            import psutil  # here, so that the rest works where it cannot be imported
        except ImportError:
            return None
        try:
            process = psutil.Process(headless.pid)
            if process.status() == psutil.STATUS_STOPPED:
                return False
            before = sum(process.cpu_times()[:2])
            time.sleep(seconds)
            return bool(sum(process.cpu_times()[:2]) - before >= COMPUTING * seconds)
        except psutil.Error:
            return None


def _others(headless: Headless, config_dir: Path, view: View) -> bool | None:
    """Whether another process is alive on the session, of whatever kind; None when the processes cannot be seen."""
    if not view.table.readable:
        return None
    return bool(_rows_of_others(headless, config_dir, view)) or bool(view.typists(headless, config_dir))


def _writers(headless: Headless, config_dir: Path, view: View) -> bool | None:
    """Whether another live process may be at work on the session: one that does not say that it is idle, as a one-shot never does."""
    if not view.table.readable:
        return None
    registry = view.registry(config_dir)
    records = [registry.of(row.pid, row.start_time) for row in _rows_of_others(headless, config_dir, view)]
    if any(record is None or record.status != "idle" for record in records):
        return True
    return any(not writer.sure for writer in view.typists(headless, config_dir))


def _rows_of_others(headless: Headless, config_dir: Path, view: View) -> list[ProcessRow]:
    """The live processes that name the session, besides the headless and the Claude Code below it."""
    table, registry, session = view.table, view.registry(config_dir), headless.session_id.lower()
    rows = (table.rows.get(record.pid) for record in registry.by_session.get(session, ()))
    listed = [row for row in rows if row is not None and registry.of(row.pid, row.start_time) is not None]
    own = {headless.pid, *(identity.pid for identity in view.claude_below(headless))}
    return [row for row in (*listed, *table.by_session.get(session, ())) if row.alive and row.pid not in own]


def _writes_now(transcript: Path) -> bool:
    """Whether a subagent writes. Those of releases that keep the files beside the transcript run inside an open turn, which says enough."""
    now = time.time()
    for file in subagent_files(transcript, beside=False):
        try:
            if abs(now - os.stat(file).st_mtime) < _JUST_NOW:
                return True
        except OSError:
            continue
    return False
