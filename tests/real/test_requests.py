"""A healed process sends what a fresh one would send, on the real Claude Code, block for block.

A headless answers, another writer takes a turn, and the headless is given a text by the host with `heal = "always"`. The request that this
leads to is compared with that of a fresh `claude -p --resume` on a copy of the session, which is given the same text. The kinds of turns
and what must become of the headless are in `tests/real/requests/kinds.py`. It takes minutes, so it is played where `CCC_REAL_REQUESTS` is
set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.real.isolation import unavailable
from tests.real.requests.kinds import KINDS, RELEASES
from tests.real.runs import LONGEST_SECONDS, Runs, selected

CASES = [
    pytest.param(
        release,
        kind.name,
        id=f"{release}-{kind.name}",
        marks=[pytest.mark.xfail(reason=kind.faults[release], raises=AssertionError, strict=True)] if release in kind.faults else [],
    )
    for release in RELEASES
    for kind in KINDS.values()
    if release in kind.releases
]

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(2 * LONGEST_SECONDS),
    pytest.mark.skipif(not os.environ.get("CCC_REAL_REQUESTS"), reason="CCC_REAL_REQUESTS is not set"),
]


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """What is selected is played from now on, two releases at a time."""
    # A short name, for sockets will be in it.
    playing = Runs(selected(request.session, request.module, "kind"), tmp_path_factory.mktemp("q"), "tests.real.requests.play")
    yield playing
    playing.close()


@pytest.mark.parametrize(("release", "kind"), CASES)
def test_request(release: str, kind: str, runs: Runs) -> None:
    """The requests are the same; without the plugin the same comparison sees what the headless does not know."""
    if (reason := unavailable(release)) is not None:
        pytest.skip(reason)
    outcome = runs.outcome(release, kind)
    if not outcome.get("compared"):
        # A known difference is one between two requests, and not that something else went wrong.
        pytest.fail("\n".join(outcome["complaints"]))
    assert outcome["passed"], "\n".join(outcome["complaints"]) or "no difference was seen"
