"""What one call into CCC is about: seen by the wrappers further down the same thread, and reported back up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ccc_hookspecs.values import Hold, Respawn

Entry: TypeAlias = dict[str, Any]
"""One row of CCC's `_spawned_sessions`."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """A text that was not written: whose, and what is to become of it."""

    entry: Entry
    session_id: str
    text: str = field(repr=False)
    decision: Hold | Respawn


@dataclass(slots=True)
class Attempt:
    """One call of a route.

    `from_queue`: CCC's queue delivers it. `transcript_size`: bytes of the session's transcript when the call began.
    `unchecked`: rows whose staleness CCC has yet to look at. `stale_by_ccc`: the row that it then found stale.
    `blocked`: the texts that were not written. `queued`: the answer for one that was queued instead, None when none was.
    """

    from_queue: bool = False
    transcript_size: int | None = None
    unchecked: list[Entry] = field(default_factory=list)
    stale_by_ccc: Entry | None = None
    blocked: list[Blocked] = field(default_factory=list)
    queued: dict[str, Any] | None = field(default=None, repr=False)


class Attempts(threading.local):
    """The calls under way on this thread, the innermost last.

    `queue_looks`: CCC asks whether its queue must wait, and not whether it may end the process.
    """

    def __init__(self) -> None:
        self._stack: list[Attempt] = []
        self.queue_looks = False

    @property
    def current(self) -> Attempt | None:
        """The innermost call under way on this thread."""
        return self._stack[-1] if self._stack else None

    @contextmanager
    def begin(self, *, from_queue: bool | None = None, transcript_size: int | None = None) -> Iterator[Attempt]:
        """A call of a route. `from_queue` None: as the call around it has it."""
        outer = self.current
        inherited = outer is not None and outer.from_queue
        attempt = Attempt(from_queue=inherited if from_queue is None else from_queue, transcript_size=transcript_size)
        self._stack.append(attempt)
        try:
            yield attempt
        finally:
            self._stack.pop()

    @contextmanager
    def queue_look(self) -> Iterator[None]:
        """CCC's look at whether its queue must wait for a process."""
        self.queue_looks = True
        try:
            yield
        finally:
            self.queue_looks = False
