"""The looks around a headless: its FIFO, its children, its record in the registry, and who else is on the session."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from pathlib import Path

import psutil

from ccc_hookspecs.claude.paths import subagent_files
from ccc_hookspecs.claude.registry import Registry, read_registry
from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.evidence.children import running_tools
from ccc_plugins.retire_stale.evidence.fifo import unread_bytes
from ccc_plugins.retire_stale.evidence.observer import Surroundings
from ccc_plugins.retire_stale.evidence.processes import Identity, InteractiveWriter, ProcessTable, interactive_writers, snapshot

COMPUTING = 0.4
"""Share of one core above which a process counts as computing; an idle one was measured at under 0.02."""
_JUST_NOW = 3.0
"""Seconds within which a write to a subagent's transcript says that the subagent is at work."""
_REMEMBERED = 64


class Probe:
    """Looks at what is outside the session's files, and remembers only what makes the next look cheaper. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._registries: OrderedDict[Path, Registry] = OrderedDict()
        self._table: ProcessTable | None = None

    def around(self, headless: Headless, config_dir: Path, transcript: Path | None, table: ProcessTable | None = None) -> Surroundings:
        """What is known of a headless besides its files, now, or as `table` shows the processes."""
        table = table or self.processes()
        registry = self.registry(config_dir)
        record = registry.of(headless.pid, headless.start_time)
        children = running_tools(table, headless.pid)
        return Surroundings(
            now=time.time(),
            unread=None if headless.fifo is None else unread_bytes(headless.fifo),
            tools=None if children is None else children.tools,
            children=None if children is None else children.live,
            registry_status=None if record is None else record.status,
            registered=None if registry.state == "unreadable" else record is not None,
            others=self._others(headless, registry, table),
            subagents=transcript is not None and _writes_now(subagent_files(transcript)),
        )

    def processes(self) -> ProcessTable:
        """The processes as they are now."""
        table = snapshot(self._table)
        self._table = table
        return table

    def registry(self, config_dir: Path) -> Registry:
        """The live-session registry as it is now."""
        with self._lock:
            read = read_registry(config_dir, self._registries.pop(config_dir, None))
            self._registries[config_dir] = read
            if len(self._registries) > _REMEMBERED:
                self._registries.popitem(last=False)
            return read

    def typists(self, headless: Headless, registry: Registry, table: ProcessTable) -> tuple[InteractiveWriter, ...]:
        """The live processes through which a person may be writing to the session, besides the headless; the sure ones first."""
        return interactive_writers(table, registry, headless.session_id, Identity(headless.pid, headless.start_time), headless.cwd)

    def computes(self, headless: Headless, seconds: float) -> bool | None:
        """Whether a process uses CPU over this time, which is waited for unless it stands still; None when that cannot be seen."""
        try:
            process = psutil.Process(headless.pid)
            if process.status() == psutil.STATUS_STOPPED:
                return False
            before = sum(process.cpu_times()[:2])
            time.sleep(seconds)
            return bool(sum(process.cpu_times()[:2]) - before >= COMPUTING * seconds)
        except psutil.Error:
            return None

    def _others(self, headless: Headless, registry: Registry, table: ProcessTable) -> bool | None:
        """Whether another process is alive on the session, of whatever kind; None when the processes cannot be seen."""
        if not table.readable:
            return None
        rows = (table.rows.get(record.pid) for record in registry.by_session.get(headless.session_id.lower(), ()))
        listed = [row for row in rows if row is not None and registry.of(row.pid, row.start_time) is not None]
        named = table.by_session.get(headless.session_id.lower(), ())
        if any(row.alive and row.pid != headless.pid for row in (*listed, *named)):
            return True
        return bool(self.typists(headless, registry, table))


def _writes_now(files: tuple[Path, ...]) -> bool:
    now = time.time()
    for file in files:
        try:
            if abs(now - os.stat(file).st_mtime) < _JUST_NOW:
                return True
        except OSError:
            continue
    return False
