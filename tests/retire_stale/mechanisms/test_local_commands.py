"""Commands that Claude Code answers itself, sent to a headless: what they print is in the transcript under the same `uuid` alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ccc_hookspecs.testing.harness import ClaudeHome, Simulator, simulated
from ccc_hookspecs.testing.simulator import MEASURED
from ccc_hookspecs.values import Respawn
from tests.retire_stale.mechanisms.conftest import Stage


@pytest.fixture(params=MEASURED)
def simulator(claude_home: ClaudeHome, request: pytest.FixtureRequest) -> Iterator[Simulator]:
    with simulated(claude_home, release=request.param) as running:
        yield running


def test_after_a_local_command_the_headless_is_fresh_and_can_be_retired(stage: Stage) -> None:
    """`/cost` prints an answer that is written as no answer; the next text goes in, and after a terminal's turn the headless goes."""
    stage.use(settle_seconds=0.2)
    stage.head.send("/cost")
    stage.head.wait_idle()
    assert stage.inject() is None
    stage.take_over("from terminal")
    assert isinstance(stage.inject(), Respawn)
    assert not stage.head.alive


def test_after_a_local_command_a_launch_retires_the_headless(stage: Stage) -> None:
    """A terminal that opens after `/cost` finds the session free."""
    stage.use(settle_seconds=0.2)
    stage.head.send("/cost")
    stage.head.wait_idle()
    stage.launch()
    assert not stage.head.alive
