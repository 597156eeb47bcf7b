"""Plays the stories of several releases, two releases at a time, and hands out the outcome of each as soon as it is there."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.real.isolation import Isolated, unavailable
from tests.real.releases import FULL, program
from tests.real.stories import by_key, keys_for, without_plugin

AT_ONCE = 2
"""Releases played at the same time: a story mostly waits, and two of them keep two cores busy."""

LONGEST_SECONDS = 900.0
"""How long the stories of one release may take."""


def planned(release: str) -> list[str]:
    """The keys of what is played with a release."""
    return keys_for(release, full=release in FULL)


class Runs:
    """`plan`: the keys to play with each release. `directory`: where the files of each release go, for a look afterwards.

    `module`: what plays them, as `tests.real.play` does.
    """

    def __init__(self, plan: Mapping[str, Sequence[str]], directory: Path, module: str = "tests.real.play") -> None:
        self._module = module
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._isolated: dict[str, Isolated] = {}
        self._stop = threading.Event()
        self._done: dict[str, Future[None]] = {}
        for release, keys in plan.items():
            self._done[release] = self._pool.submit(self._play, release, list(keys), directory / release)

    def _play(self, release: str, keys: list[str], directory: Path) -> None:
        if self._stop.is_set():
            return
        directory.mkdir()
        self._isolated[release] = isolated = Isolated(directory, self._module, [str(program(release)), *keys])
        try:
            end = time.monotonic() + LONGEST_SECONDS
            while not isolated.wait(0.5) and not self._stop.is_set() and time.monotonic() < end:
                pass
        finally:
            isolated.close()

    def outcome(self, release: str, key: str) -> dict[str, Any]:
        """The outcome of a story; waits for it. One that has none has failed."""
        while True:
            done = self._done[release].done()
            isolated = self._isolated.get(release)
            found = None if isolated is None else next((one for one in isolated.values() if one["story"] == key), None)
            if found is not None:
                return found
            if done:
                said = "" if isolated is None else isolated.complaint()
                return {"story": key, "passed": False, "seconds": 0.0, "complaints": [f"no outcome: {said}"], "facts": {}}
            time.sleep(0.1)

    def close(self) -> None:
        """End whatever is still played."""
        self._stop.set()
        self._pool.shutdown(wait=True)


def selected(session: pytest.Session, module: ModuleType, name: str) -> dict[str, list[str]]:
    """What to play for the tests of a module that are run: by release, the values of their parameter `name`."""
    plan: dict[str, list[str]] = {}
    for item in session.items:
        if isinstance(item, pytest.Function) and item.module is module:
            release, key = str(item.callspec.params["release"]), str(item.callspec.params[name])
            if unavailable(release) is None:
                plan.setdefault(release, []).append(key)
    return plan


def rows(outcomes: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[list[str]]:
    """The table of stories and releases, its head first; outcomes by release and key. Empty cells: not played."""
    releases = sorted(outcomes, key=lambda release: [int(number) for number in release.split(".")])
    keys = sorted({key for played in outcomes.values() for key in played})
    return [["", "story", *releases], *([key, _title(key), *(_cell(key, r, outcomes[r].get(key)) for r in releases)] for key in keys)]


def _title(key: str) -> str:
    story = by_key(key)
    return f"{story.title}; without the plugin" if without_plugin(key) else story.title


def _cell(key: str, release: str, outcome: Mapping[str, Any] | None) -> str:
    if outcome is None:
        return "not fit" if release in by_key(key).unfit else ""
    held = "turn forgotten" if without_plugin(key) else "holds"
    return f"{held if outcome['passed'] else 'FAILS'}, {outcome['seconds']:.0f} s"
