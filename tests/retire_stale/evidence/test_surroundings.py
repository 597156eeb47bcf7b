"""What is known of a headless besides its files."""

from __future__ import annotations

import time

import pytest

from ccc_plugins.retire_stale.evidence.surroundings import Sleep


class Clock:
    """The two clocks of a machine."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.wall, self._awake, self._sleep = 1000.0, 5.0, Sleep()
        patch.setattr(time, "monotonic", lambda: self._awake)

    def runs(self, seconds: float) -> None:
        self.wall, self._awake = self.wall + seconds, self._awake + seconds

    def sleeps(self, seconds: float) -> None:
        self.wall += seconds

    def woke_at(self) -> float | None:
        return self._sleep.woke_at(self.wall)


def test_a_sleep_of_the_machine_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first look after it, and remembered; a clock that drifts is no sleep."""
    clock = Clock(monkeypatch)
    assert clock.woke_at() is None
    clock.runs(3600.0)
    clock.sleeps(5.0)
    assert clock.woke_at() is None
    clock.sleeps(3600.0)
    woke = clock.woke_at()
    assert woke == clock.wall
    clock.runs(500.0)
    assert clock.woke_at() == woke
