"""What is known of every headless of one host: an observer for each process, and the looks around it."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ccc_hookspecs.claude.paths import TranscriptFinder, process_config_dir
from ccc_hookspecs.specs import Host
from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.evidence.checkpoints import Checkpoints
from ccc_plugins.retire_stale.evidence.frames import Frame
from ccc_plugins.retire_stale.evidence.observer import Judgement, Observer, Surroundings
from ccc_plugins.retire_stale.judgement.attribution import Attribution
from ccc_plugins.retire_stale.judgement.history import Lack

if TYPE_CHECKING:  # what looks at processes is not needed before the first such look
    from ccc_plugins.retire_stale.evidence.surroundings import Probe, View

log = logging.getLogger(__name__)

ProcessKey: TypeAlias = tuple[int, float | None, str, Path | None]

_OBSERVED = 4096
_CLOCKS_DIFFER = 60.0
"""Seconds by which a host's note of a spawn may be later than the process's start."""


@dataclass(slots=True)
class _Observed:
    """What is remembered of one process. `lock`: held by whoever looks at it."""

    observer: Observer
    config_dir: Path | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class Evidence:
    """The observers of one host's headless agents. Safe to use from several threads; one headless is looked at by one at a time.

    A session id counts in either case: Claude Code names files with the lower one, a host may not.
    """

    def __init__(self, cpu_look_seconds: float = 0.0, checkpoints: Checkpoints | None = None) -> None:
        self._cpu_look_seconds = cpu_look_seconds
        self._checkpoints = checkpoints
        self._finder = TranscriptFinder()
        self._lock = threading.Lock()
        self._observed: OrderedDict[ProcessKey, _Observed] = OrderedDict()
        self._probe: Probe | None = None

    def attribution(self, ccc: Host, headless: Headless) -> Attribution:
        """Whether the headless has seen everything on disk: two `stat` calls when nothing changed."""
        observed = self._of(headless)
        with observed.lock:
            self._read(ccc, observed, headless)
            return observed.observer.attribution()

    def is_fresh(self, ccc: Host, headless: Headless) -> bool:
        """Whether it is known to have seen everything on disk."""
        return self.attribution(ccc, headless).verdict == "fresh"

    def judge(self, ccc: Host, headless: Headless, view: View | None = None) -> Judgement:
        """Both verdicts, from the files as they are now and the processes as they are now, or as `view` has them.

        Where the processes cannot be looked at, all that concerns them is unknown.
        """
        observed = self._of(headless)
        with observed.lock:
            self._read(ccc, observed, headless)
            observer, around = observed.observer, self._around(ccc, observed, headless, view)
            judgement = observer.judge(around)
            if judgement.idleness.verdict != "idle" or observer.reports_states or around.registry_status is not None:
                return judgement
            return observer.judge(replace(around, computing=self.probe.computes(headless, self._cpu_look_seconds)))

    def _around(self, ccc: Host, observed: _Observed, headless: Headless, view: View | None) -> Surroundings:
        try:
            return self.probe.around(headless, self._config_dir(ccc, observed, headless), observed.observer.transcript_path, view)
        except Exception:  # whatever fails there, an installation without psutil among it, must not hide what the files say
            log.warning("session %s: its processes could not be looked at", headless.session_id, exc_info=True)
            return Surroundings(now=time.time())

    def lack(self, ccc: Host, headless: Headless, *, settle: bool = False) -> tuple[Lack, tuple[Frame, ...]]:
        """What the headless lacks of what everybody said, and the lines that give it that. Reads the end of the transcript anew.

        `settle`: where no line is left to give, what is left over is not for the headless to know, and it is fresh.
        """
        observed = self._of(headless)
        with observed.lock:
            self._read(ccc, observed, headless)
            found = observed.observer.lack()
            frames = observed.observer.frames(found)
            if settle and found.obstacle is None and not frames:
                observed.observer.dismiss_left_over()
            return found, frames

    def settled(self, ccc: Host, headless: Headless) -> bool:
        """Whether the transcript holds by now the last answer that the log shows."""
        observed = self._of(headless)
        with observed.lock:
            self._read(ccc, observed, headless)
            return observed.observer.settled()

    def transcript_of(self, ccc: Host, headless: Headless) -> Path | None:
        """Where the headless's transcript is, or None."""
        return self._transcript_of(ccc, self._of(headless), headless)

    def taken_over(self, ccc: Host, headless: Headless, view: View) -> bool:
        """Whether a live process that a person drives is on the session, besides the headless.

        One of which that is not sure (up to 2.1.61 a terminal names no session) counts when the transcript shows another writer.
        """
        writers = view.typists(headless, self._config_dir(ccc, self._of(headless), headless))
        if any(writer.sure for writer in writers):
            return True
        return bool(writers) and not self.is_fresh(ccc, headless)

    def forget(self, headless: Headless) -> None:
        """The process is gone."""
        with self._lock:
            self._observed.pop(_key(headless), None)
        if self._checkpoints is not None:
            self._checkpoints.drop(headless)

    @property
    def probe(self) -> Probe:
        """The looks at processes, FIFOs and the registry."""
        if self._probe is None:
            from ccc_plugins.retire_stale.evidence.surroundings import Probe

            self._probe = Probe()
        return self._probe

    def _of(self, headless: Headless) -> _Observed:
        key = _key(headless)
        with self._lock:
            found = self._observed.pop(key, None)
            if found is None:
                found = _Observed(Observer(_named_as_files(headless), _spawned_at(headless), self._checkpoints))
            self._observed[key] = found
            if len(self._observed) > _OBSERVED:
                self._observed.popitem(last=False)
            return found

    def _read(self, ccc: Host, observed: _Observed, headless: Headless) -> None:
        observed.observer.read(_named_as_files(headless), self._transcript_of(ccc, observed, headless))

    def _transcript_of(self, ccc: Host, observed: _Observed, headless: Headless) -> Path | None:
        config_dir, session_id = self._config_dir(ccc, observed, headless), headless.session_id
        for name in dict.fromkeys((session_id, session_id.lower())):
            if (found := self._finder.find(config_dir, name, headless.cwd)) is not None:
                return found
        return None

    def _config_dir(self, ccc: Host, observed: _Observed, headless: Headless) -> Path:
        """By the environment the process was started with; else what the host says."""
        if observed.config_dir is None:
            observed.config_dir = headless.config_dir or _started_with(headless.pid) or ccc.config_dir(headless)
        return observed.config_dir


def _started_with(pid: int) -> Path | None:
    try:
        return process_config_dir(pid)
    except ImportError:  # where only psutil can tell, and cannot be imported
        return None


def _named_as_files(headless: Headless) -> Headless:
    lower = headless.session_id.lower()
    return headless if lower == headless.session_id else replace(headless, session_id=lower)


def _key(headless: Headless) -> ProcessKey:
    """One process on one session. Where a host knows no start time, another log tells that the pid is another's."""
    return headless.pid, headless.start_time, headless.session_id.lower(), headless.stdout_log


def _spawned_at(headless: Headless) -> float | None:
    """When the process was spawned, in seconds since the epoch: as the host noted it, or by the process's age.

    A time of the host's that is far too late, by a clock that was set or by a local time that was read wrong, would take what another
    writer said since for what the process had loaded.
    """
    from ccc_plugins.retire_stale.evidence.processes import age

    noted, seconds = headless.spawned_at, age(headless.pid, headless.start_time)
    if seconds is None:
        return noted
    by_age = time.time() - seconds
    return by_age if noted is None or noted > by_age + _CLOCKS_DIFFER else noted
