"""pytest fixtures for plugin authors: `pytest_plugins = ["ccc_hookspecs.testing.fixtures"]` in the test directory's conftest.

They need the extra `test`. `docs/testing-plugins.md` says how to install it, and shows a plugin tested with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ccc_hookspecs.testing.harness import ClaudeHome, Simulator, simulated
from ccc_hookspecs.testing.recording import CapturedSignals, RecordingHost


@pytest.fixture
def claude_home(tmp_path: Path) -> ClaudeHome:
    """A home, a configuration directory and a project of this test's own."""
    return ClaudeHome(tmp_path / "claude").make()


@pytest.fixture
def simulator(claude_home: ClaudeHome) -> Iterator[Simulator]:
    """Starts simulated `claude` processes in `claude_home`; every one is gone when the test is over."""
    with simulated(claude_home) as running:
        yield running


@pytest.fixture
def recording_host(claude_home: ClaudeHome) -> RecordingHost:
    """A host in memory that knows the headless agents which the test lets it adopt."""
    return RecordingHost(claude_home)


@pytest.fixture
def captured_signals() -> Iterator[CapturedSignals]:
    """Every signal sent while the test runs."""
    captured = CapturedSignals()
    captured.connect()
    yield captured
    captured.disconnect()
