"""A world of its own for each test of the embedded host."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ccc_hookspecs.testing.harness import Simulator
from tests.ccc_hookspecs.host.world import World


@pytest.fixture
def world(simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A state directory and a home of this test's own; every process started in it is gone when the test is over."""
    for variable in [name for name in os.environ if name.startswith(("CCC_HOST", "TMUX"))]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(simulator.home.home))
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    made = World(simulator, tmp_path / "state")
    yield made
    made.close()
