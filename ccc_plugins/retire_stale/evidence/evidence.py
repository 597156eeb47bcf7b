"""What is known of every headless of one host: an observer for each process, and the looks around it."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ccc_hookspecs.claude.paths import TranscriptFinder, process_config_dir
from ccc_hookspecs.specs import Host
from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.evidence.checkpoints import Checkpoints
from ccc_plugins.retire_stale.evidence.observer import Judgement, Observer

if TYPE_CHECKING:  # psutil is not needed before the first look at a process
    from ccc_plugins.retire_stale.evidence.surroundings import Probe, View

ProcessKey: TypeAlias = tuple[int, float | None, str]

_OBSERVED = 4096


class Evidence:
    """The observers of one host's headless agents. Safe to use from several threads; one headless is looked at by one at a time."""

    def __init__(self, cpu_look_seconds: float = 0.0, checkpoints: Checkpoints | None = None) -> None:
        self._cpu_look_seconds = cpu_look_seconds
        self._checkpoints = checkpoints
        self._finder = TranscriptFinder()
        self._lock = threading.Lock()
        self._observers: OrderedDict[ProcessKey, tuple[Observer, threading.Lock]] = OrderedDict()
        self._config_dirs: dict[ProcessKey, Path] = {}
        self._probe: Probe | None = None

    def is_fresh(self, ccc: Host, headless: Headless) -> bool:
        """Whether the headless has seen everything on disk: two `stat` calls when nothing changed."""
        observer, lock = self._observer(headless)
        with lock:
            self._read(ccc, observer, headless)
            return observer.attribution().verdict == "fresh"

    def judge(self, ccc: Host, headless: Headless, view: View | None = None) -> Judgement:
        """Both verdicts, from the files as they are now and the processes as they are now, or as `view` has them."""
        observer, lock = self._observer(headless)
        with lock:
            self._read(ccc, observer, headless)
            around = self.probe.around(headless, self._config_dir(ccc, headless), observer.transcript_path, view)
            judgement = observer.judge(around)
            if judgement.idleness.verdict != "idle" or observer.reports_states or around.registry_status is not None:
                return judgement
            return observer.judge(replace(around, computing=self.probe.computes(headless, self._cpu_look_seconds)))

    def settled(self, ccc: Host, headless: Headless) -> bool:
        """Whether the transcript holds by now the last answer that the log shows."""
        observer, lock = self._observer(headless)
        with lock:
            self._read(ccc, observer, headless)
            return observer.settled()

    def lost(self, headless: Headless, *, alive: bool) -> tuple[str, ...]:
        """The prompts that a fresh `--resume` would lack, as of the last look."""
        observer, lock = self._observer(headless)
        with lock:
            return observer.lost(alive=alive)

    def transcript_of(self, ccc: Host, headless: Headless) -> Path | None:
        """Where the headless's transcript is, or None."""
        return self._finder.find(self._config_dir(ccc, headless), headless.session_id, headless.cwd)

    def taken_over(self, ccc: Host, headless: Headless, view: View) -> bool:
        """Whether a live process that a person drives is on the session, besides the headless.

        One of which that is not sure (up to 2.1.61 a terminal names no session) counts when the transcript shows another writer.
        """
        writers = view.typists(headless, self._config_dir(ccc, headless))
        if any(writer.sure for writer in writers):
            return True
        return bool(writers) and not self.is_fresh(ccc, headless)

    def forget(self, headless: Headless) -> None:
        """The process is gone."""
        with self._lock:
            self._observers.pop(_key(headless), None)
            self._config_dirs.pop(_key(headless), None)
        if self._checkpoints is not None:
            self._checkpoints.drop(headless)

    @property
    def probe(self) -> Probe:
        """The looks at processes, FIFOs and the registry."""
        if self._probe is None:
            from ccc_plugins.retire_stale.evidence.surroundings import Probe

            self._probe = Probe()
        return self._probe

    def _observer(self, headless: Headless) -> tuple[Observer, threading.Lock]:
        key = _key(headless)
        with self._lock:
            found = self._observers.get(key)
            if found is None:
                found = Observer(headless, _spawned_at(headless), self._checkpoints), threading.Lock()
                self._observers[key] = found
                if len(self._observers) > _OBSERVED:
                    self._observers.popitem(last=False)
            return found

    def _read(self, ccc: Host, observer: Observer, headless: Headless) -> None:
        observer.read(headless, self.transcript_of(ccc, headless))

    def _config_dir(self, ccc: Host, headless: Headless) -> Path:
        """By the environment the process was started with; else what the host says."""
        key = _key(headless)
        known = self._config_dirs.get(key)
        if known is None:
            known = headless.config_dir or process_config_dir(headless.pid) or ccc.config_dir(headless)
            self._config_dirs[key] = known
        return known


def _key(headless: Headless) -> ProcessKey:
    return headless.pid, headless.start_time, headless.session_id


def _spawned_at(headless: Headless) -> float | None:
    """When the process was spawned, in seconds since the epoch: as the host noted it, or by the process's age."""
    if headless.spawned_at is not None:
        return headless.spawned_at
    from ccc_plugins.retire_stale.evidence.processes import age

    seconds = age(headless.pid, headless.start_time)
    return None if seconds is None else time.time() - seconds
