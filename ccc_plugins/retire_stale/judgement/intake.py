"""What a transcript shows of the inputs that a headless took, for releases whose log does not name them.

Up to 2.1.168 the log is silent between an input's arrival and the beginning of its turn: 10 to 60 ms on an idle machine, but as
long as the work takes for a command such as `/context`. Until then an input shows in the transcript alone: a queue operation when
it is taken, the record that it becomes, and behind both what came of it (measured on 2.0.42 to 2.1.168).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ccc_plugins.retire_stale.judgement.entries import Entry, seconds

_REMEMBERED = 64
_NOTICE = re.compile(r"<task-id>([^<]{1,128})</task-id>\s*(?:<(?!status)[a-z-]+>[^<]*</[a-z-]+>\s*)*<status>")
"""With a status: without one, a monitor tells of something that it saw, and goes on."""
_INPUTS = frozenset({"prompt", "queued"})


@dataclass(slots=True)
class Intake:
    """A reducer: records in, in the order in which they stand.

    `waiting`: inputs enqueued and not taken. `taken`: how many were taken. `takes`: when the last of them were, in epoch seconds.
    `taken_at`: the position of the last input that was taken and behind which stands neither the outcome of a command that Claude
    Code handles itself nor another writer's input; else None. `noticed`: background tasks of which a notice says that they ended.
    """

    waiting: int = 0
    taken: int = 0
    takes: list[float] = field(default_factory=list)
    taken_at: int | None = None
    noticed: set[str] = field(default_factory=set)

    def operation(self, record: Mapping[str, Any], offset: int) -> None:
        """Take a queue operation that stands at `offset`."""
        content = record.get("content")
        self.noticed.update(_NOTICE.findall(content) if isinstance(content, str) else ())
        match record.get("operation"):
            case "enqueue":
                self.waiting += 1
            case str():
                self.waiting = max(0, self.waiting - 1)
                self.taken += 1
                self.taken_at = offset
                self._note(seconds(record.get("timestamp")))

    def see(self, entry: Entry, own: bool) -> None:
        """Take a record. `own`: it is the headless's. Its answers are looked for elsewhere: what counts is that it printed them."""
        if entry.kind in _INPUTS:
            self.taken_at = entry.offset if own else None
        elif entry.kind == "echo":
            self.taken_at = None

    def takes_since(self, moment: float) -> int:
        """How many inputs were taken at or after this moment, in epoch seconds; of the last 64."""
        return sum(1 for at in self.takes if at >= moment)

    def _note(self, at: float | None) -> None:
        if at is not None:
            self.takes = [*self.takes[1 - _REMEMBERED :], at]
