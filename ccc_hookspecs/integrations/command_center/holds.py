"""Which of CCC's headless processes are busy in a way that CCC's own checks do not see."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace

from ccc_hookspecs.integrations.command_center.attempts import Entry
from ccc_hookspecs.integrations.command_center.spawns import pid_of
from ccc_hookspecs.processes import has_ended, is_in_use
from ccc_hookspecs.values import Headless, Hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A text that waits for a headless. `since` is seconds since the epoch of its first hold. `turn`: it only waits behind queued texts."""

    entry: Entry = field(repr=False)
    headless: Headless
    text: str = field(repr=False)
    message_id: str
    hold: Hold
    since: float
    turn: bool = False


def why(hold: Hold) -> str:
    """A hold in words, for people."""
    return f"{hold.reason}; waits for: {', '.join(hold.signs)}" if hold.signs else hold.reason


class Holds:
    """The holds and deferrals of this process, by pid. Kept in memory: after a restart the next look finds them again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[int, Held] = {}
        self._deferred: dict[int, dict[str, float | None]] = {}

    def hold(self, entry: Entry, headless: Headless, text: str, message_id: str, hold: Hold, *, turn: bool = False) -> Held | None:
        """Note a hold. Returns it when it is new or waits for something else than before, None when nothing changed."""
        with self._lock:
            known = self._held.get(headless.pid)
            if known is not None and known.entry is entry and (known.hold.reason, known.hold.signs) == (hold.reason, hold.signs):
                return None
            held = Held(entry=entry, headless=headless, text=text, message_id=message_id, hold=hold, since=time.time(), turn=turn)
            # One that only waited behind the others is not what is waited for first, and one for an earlier process of that pid is over.
            anew = known is None or known.turn or known.entry is not entry
            self._held[headless.pid] = held if known is None or anew else replace(known, hold=hold)
            return self._held[headless.pid]

    def end(self, pid: int) -> Held | None:
        """The hold on this process ends; returns what was held, None when nothing was."""
        with self._lock:
            return self._held.pop(pid, None)

    def defer(self, headless: Headless, mechanism: str) -> None:
        """This mechanism waits for this process to become idle."""
        with self._lock:
            self._deferred.setdefault(headless.pid, {})[mechanism] = headless.start_time

    def undefer(self, pid: int, mechanism: str | None = None) -> None:
        """This mechanism waits for this process no more; None: no mechanism does."""
        with self._lock:
            deferred = self._deferred.get(pid, {})
            deferred.pop(mechanism, None) if mechanism is not None else deferred.clear()
            if not deferred:
                self._deferred.pop(pid, None)

    def forget(self, pid: int) -> None:
        """This process is gone."""
        self.end(pid)
        self.undefer(pid)

    def forget_ended(self) -> None:
        """Forget the deferrals of processes that ended by themselves."""
        with self._lock:
            deferred = {pid: set(starts.values()) for pid, starts in self._deferred.items()}
        for pid, starts in deferred.items():
            if _ended(pid, starts):
                self.undefer(pid)

    def holds(self, entry: Entry) -> bool:
        """True when a text is held for this row's process."""
        return self._of(entry) is not None

    def busy(self, entry: Entry) -> bool:
        """True when this row's process must not be ended: a text is held for it, or a mechanism waits for it."""
        return self.holds(entry) or self._is_deferred(entry)

    def stops_queue(self, entry: Entry) -> bool:
        """True when CCC's queue must wait for this row's process, because a text is held for it.

        Not when a mechanism waits for it, which might never say anything again: each text is asked about when it comes. Nor
        when the held text itself waits for the queue.
        """
        held = self._of(entry)
        return held is not None and not held.turn

    def of_session(self, session_id: str) -> Held | None:
        """The hold of this session, if any."""
        return next((held for held in self.all() if held.headless.session_id == session_id), None)

    def all(self) -> tuple[Held, ...]:
        """Every hold of this process."""
        with self._lock:
            return tuple(self._held.values())

    def _of(self, entry: Entry) -> Held | None:
        with self._lock:
            held = self._held.get(pid_of(entry) or 0)
        return held if held is not None and held.entry is entry else None

    def _is_deferred(self, entry: Entry) -> bool:
        pid = pid_of(entry)
        with self._lock:
            starts = set(self._deferred.get(pid or 0, {}).values())
        # The process that a mechanism waited for may have ended by itself, and the pid be another's by now.
        return pid is not None and bool(starts - {None}) and not _ended(pid, starts)


def _ended(pid: int, starts: set[float | None]) -> bool:
    """Whether none of the processes that had this pid, and started then, may still live."""
    return all(has_ended(pid, start) if start is not None else not is_in_use(pid) for start in starts)
