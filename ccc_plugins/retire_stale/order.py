"""What a mechanism hands to `retirement`: which headless to end, and how to look at it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from ccc_hookspecs.outcomes import Facts
from ccc_hookspecs.values import Headless

log = logging.getLogger(__name__)

T = TypeVar("T")

Process: TypeAlias = tuple[int, float | None]
"""A pid and a start time, see `ccc_hookspecs.processes.start_time`."""

UNREADABLE = Facts(
    attribution="unknown", attribution_reason="evidence could not be read", idleness="unknown", signs=("evidence could not be read",)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Which headless to retire, for whom and why, and how to look at it.

    `judge`: look at it afresh; called twice or three times, the later ones while the process is stopped. `settled`: whether the
    transcript holds every message that the log shows. `wanted`: None when the facts still ask for the retirement, else the reason to
    keep. `must_settle`: whether what has not settled in time is put off; else it is ended after the wait. `below`: where the host started
    a wrapper, the processes below it that do the work and must end with it; asked once, before the first look. `descendants`: every
    process below those that do the work, which are given and stand still; None when that cannot be told. `left_behind`: of a wrapper that
    is gone, the pid of what it ran and that lives on. None of them may signal a process; one that raises leaves the process alone, but for
    `descendants`, which are then left to themselves.
    """

    headless: Headless
    mechanism: str
    reason: str
    judge: Callable[[], Facts]
    settled: Callable[[], bool]
    wanted: Callable[[Facts], str | None]
    must_settle: Callable[[], bool] = lambda: True
    below: Callable[[], tuple[Process, ...]] = tuple
    descendants: Callable[[tuple[Process, ...]], tuple[Process, ...] | None] = lambda workers: ()
    left_behind: Callable[[], int | None] = lambda: None

    def facts(self) -> Facts:
        """What `judge` says, or that everything is unknown."""
        return self._ask(self.judge, UNREADABLE)

    def is_settled(self) -> bool:
        """What `settled` says, or False."""
        return self._ask(self.settled, False)

    def objection(self, facts: Facts) -> str | None:
        """What `wanted` says, or that it is unknown."""
        unknown: str | None = "unknown whether the retirement is still wanted"
        return self._ask(lambda: self.wanted(facts), unknown)

    def may_wait(self) -> bool:
        """What `must_settle` says, or True."""
        return self._ask(self.must_settle, True)

    def processes_below(self) -> tuple[Process, ...] | None:
        """What `below` says, or None."""
        unknown: tuple[Process, ...] | None = None
        return self._ask(self.below, unknown)

    def descendants_of(self, workers: tuple[Process, ...]) -> tuple[Process, ...] | None:
        """What `descendants` says, or None."""
        return self._ask(lambda: self.descendants(workers), None)

    def objection_to_exit(self) -> str | None:
        """Why a session is not free although its process is gone, by what `left_behind` says; None when it is."""
        unknown: str | int | None = "it is gone; unknown whether anything that it ran lives on"
        left = self._ask(self.left_behind, unknown)
        return f"it is gone, but process {left} that it ran lives on" if isinstance(left, int) else left

    def _ask(self, question: Callable[[], T], unknown: T) -> T:
        try:
            return question()
        except Exception:  # evidence may fail in any way, and then it is unknown
            log.warning("%s: session %s could not be looked at", self.mechanism, self.headless.session_id, exc_info=True)
            return unknown
