"""Which of CCC's headless processes are busy in a way that CCC's own checks do not see."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace

from ccc_hookspecs.integrations.command_center.attempts import Entry
from ccc_hookspecs.integrations.command_center.spawns import pid_of
from ccc_hookspecs.processes import start_time
from ccc_hookspecs.values import Headless, Hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A text that waits for a headless. `since` is seconds since the epoch of its first hold."""

    entry: Entry = field(repr=False)
    headless: Headless
    text: str = field(repr=False)
    message_id: str
    hold: Hold
    since: float


def why(hold: Hold) -> str:
    """A hold in words, for people."""
    return f"{hold.reason}; waits for: {', '.join(hold.signs)}" if hold.signs else hold.reason


class Holds:
    """The holds and deferrals of this process, by pid. Kept in memory: after a restart the next look finds them again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[int, Held] = {}
        self._deferred: dict[int, float | None] = {}

    def hold(self, entry: Entry, headless: Headless, text: str, message_id: str, hold: Hold) -> Held | None:
        """Note a hold. Returns it when it is new or waits for something else than before, None when nothing changed."""
        with self._lock:
            known = self._held.get(headless.pid)
            if known is not None and (known.hold.reason, known.hold.signs) == (hold.reason, hold.signs):
                return None
            held = Held(entry=entry, headless=headless, text=text, message_id=message_id, hold=hold, since=time.time())
            self._held[headless.pid] = held if known is None else replace(known, hold=hold)
            return self._held[headless.pid]

    def end(self, pid: int) -> Held | None:
        """The hold on this process ends; returns what was held, None when nothing was."""
        with self._lock:
            return self._held.pop(pid, None)

    def defer(self, headless: Headless) -> None:
        """A mechanism waits for this process to become idle."""
        with self._lock:
            self._deferred[headless.pid] = headless.start_time

    def undefer(self, pid: int) -> None:
        """No mechanism waits for this process any more."""
        with self._lock:
            self._deferred.pop(pid, None)

    def forget(self, pid: int) -> None:
        """This process is gone."""
        self.end(pid)
        self.undefer(pid)

    def busy(self, entry: Entry) -> bool:
        """True when a text is held for this row's process, or a mechanism waits for it."""
        pid = pid_of(entry)
        with self._lock:
            held, deferred = self._held.get(pid or 0), self._deferred.get(pid or 0)
        if held is not None and held.entry is entry:
            return True
        # The process that a mechanism waited for may have ended by itself, and the pid be another's by now.
        return deferred is not None and pid is not None and start_time(pid) == deferred

    def of_session(self, session_id: str) -> Held | None:
        """The hold of this session, if any."""
        return next((held for held in self.all() if held.headless.session_id == session_id), None)

    def all(self) -> tuple[Held, ...]:
        """Every hold of this process."""
        with self._lock:
            return tuple(self._held.values())
