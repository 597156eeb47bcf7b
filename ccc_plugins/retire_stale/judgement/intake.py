"""What a transcript shows of the inputs that a headless took, for releases whose log does not name them.

Up to 2.1.168 the log is silent between an input's arrival and the beginning of its turn: 10 to 60 ms on an idle machine, but as
long as the work takes for a command such as `/context`. Until then an input shows in the transcript alone: a queue operation when
it is taken, the record that it becomes, and behind both what came of it (measured on 2.0.42 to 2.1.168).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ccc_plugins.retire_stale.judgement.entries import Entry, seconds

_REMEMBERED = 64
_NOTICE = re.compile(r"<task-id>([^<]{1,128})</task-id>\s*(?:<(?!status)[a-z-]+>[^<]*</[a-z-]+>\s*)*<status>")
"""With a status: without one, a monitor tells of something that it saw, and goes on."""
_INPUTS = frozenset({"prompt", "queued"})
_SAME_MOMENT = 0.02
"""Seconds by which the time of a file may lag behind what was written to it."""
_FLOORED = 0.001

Mark: TypeAlias = tuple[int, float | None]
"""Where a record stands, and when it was written, in epoch seconds."""


@dataclass(slots=True)
class Intake:
    """A reducer: records in, in the order in which they stand.

    `waiting`: inputs enqueued and not taken. `taken`: how many were taken. `takes`: when the last of them were, in epoch seconds.
    `noticed`: background tasks of which a notice says that they ended. `take`: the last input that was taken and did not become an own
    record; nothing tells whose it is. `input`: the last own input's record. `echo`: the last outcome of a command that Claude Code handles
    itself, unless a person typed it.
    """

    waiting: int = 0
    taken: int = 0
    takes: list[float] = field(default_factory=list)
    noticed: set[str] = field(default_factory=set)
    take: Mark | None = None
    input: Mark | None = None
    echo: Mark | None = None

    def operation(self, record: Mapping[str, Any], offset: int) -> None:
        """Take a queue operation that stands at `offset`."""
        content = record.get("content")
        self.noticed.update(_NOTICE.findall(content) if isinstance(content, str) else ())
        match record.get("operation"):
            case "enqueue":
                self.waiting += 1
            case str() as what:
                many = max(1, self.waiting) if what == "popAll" else 1
                self.waiting = max(0, self.waiting - many)
                self.taken += many
                self.take = offset, seconds(record.get("timestamp"))
                self._note(self.take[1], many)

    def see(self, entry: Entry, own: bool) -> None:
        """Take a record. `own`: it is the headless's. Its answers are looked for elsewhere: what counts is that it printed them."""
        if entry.kind in _INPUTS and own:
            self.input, self.take = (entry.offset, entry.timestamp), None
        elif entry.kind == "echo" and entry.writer != "typed":
            self.echo = entry.offset, entry.timestamp

    def see_history(self) -> None:
        """Take a record of history that the headless was given: it was taken last, and asks for no answer."""
        self.take = None

    def unanswered(self, answered_at: int, closed_at: float | None, *, owes: bool) -> bool:
        """Whether an own input was taken behind which stands no outcome.

        `answered_at`: the position of the last record that the headless printed. `closed_at`: when its log last told of a turn's end, in
        epoch seconds; None when that is not known, and then any outcome will do. `owes`: the last take may be the headless's own.
        """
        marks = (self.input, self.take if owes else None)
        return any(mark is not None and not self._is_over(mark, answered_at, closed_at) for mark in marks)

    def _is_over(self, mark: Mark, answered_at: int, closed_at: float | None) -> bool:
        """Printed, or its turn's end was, or it was a command: then its outcome stands there, and the end of it in the log is not older."""
        offset, at = mark
        if answered_at > offset or (at is not None and closed_at is not None and closed_at > at + _FLOORED):
            return True
        if self.echo is None or self.echo[0] < offset:
            return False
        return closed_at is None or self.echo[1] is None or closed_at + _SAME_MOMENT >= self.echo[1]

    def takes_since(self, moment: float) -> int:
        """How many inputs were taken at or after this moment, in epoch seconds; of the last 64."""
        return sum(1 for at in self.takes if at >= moment)

    def takes_between(self, moment: float, until: float) -> int:
        """How many of the last 64 were taken in this time, in epoch seconds."""
        return sum(1 for at in self.takes if moment - _FLOORED <= at <= until)

    def _note(self, at: float | None, many: int) -> None:
        if at is not None:
            self.takes = [*self.takes, *[at] * many][-_REMEMBERED:]
