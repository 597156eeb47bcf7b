"""How many ticks in a row each headless was seen beside a terminal: one sample may be a process at its start."""

from __future__ import annotations

from collections.abc import Sequence

from ccc_hookspecs.values import Headless


class Sightings:
    """Those of one host, whose ticks never overlap."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, float | None], int] = {}

    def confirmed(self, beside: Sequence[Headless], ticks: int) -> list[Headless]:
        """Note this tick's; those seen in `ticks` ticks in a row, this one among them."""
        self._seen = {(h.pid, h.start_time): self._seen.get((h.pid, h.start_time), 0) + 1 for h in beside}
        return [h for h in beside if self._seen[h.pid, h.start_time] >= ticks]
