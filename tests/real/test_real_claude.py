"""The stories on the real Claude Code: two real processes on one session, the host by its command line, and a terminal in tmux.

They are played in a network namespace that has the loopback interface alone, against a stand-in for the Messages API, which judges
by what it was sent. Where that cannot be, they are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real.conftest import OUTCOMES
from tests.real.isolation import unavailable
from tests.real.releases import RELEASES
from tests.real.runs import LONGEST_SECONDS, Runs, planned, selected
from tests.real.stories.days import FIXED

CASES = [(release, key) for release in RELEASES for key in (*planned(release), *(f"day:{seed}" for seed in FIXED[release]))]

pytestmark = [pytest.mark.real, pytest.mark.timeout(2 * LONGEST_SECONDS)]


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """What is selected is played from now on, whatever order it is asked for in."""
    # A short name, for sockets will be in it.
    playing = Runs(selected(request.session, request.module, "key"), tmp_path_factory.mktemp("r"))
    yield playing
    playing.close()


@pytest.mark.case("C01", "C60", "C65", "C72", "C75", "C86", "C88")
@pytest.mark.parametrize(("release", "key"), CASES, ids=[f"{release}-{key}" for release, key in CASES])
def test_story(request: pytest.FixtureRequest, release: str, key: str, runs: Runs) -> None:
    """No answer lacks a turn that was on disk, no stale process adds a branch, none is ended at work, and each message is there once.

    Played without the plugin, the same judge sees a turn forgotten.
    """
    if (reason := unavailable(release)) is not None:
        pytest.skip(reason)
    outcome = runs.outcome(release, key)
    request.config.stash.setdefault(OUTCOMES, {}).setdefault(release, {})[key] = outcome
    assert outcome["passed"], "\n".join(outcome["complaints"]) or "no turn was forgotten"
