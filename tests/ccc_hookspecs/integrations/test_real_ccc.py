"""The real CCC with the real Claude Code: what it does without the plugin, and with it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ccc_hookspecs.integrations.real.place import HERE
from tests.ccc_hookspecs.integrations.real.stories import ROLLED_BACK, STORIES
from tests.real.isolation import Isolated
from tests.real.releases import program

RELEASE = "2.1.332"
STORY_SECONDS = 240.0
NOT_PLAYED = ("restarted_by_itself", "")
"""Without its worker, CCC does not restart while it has sessions."""

KEYS = [
    *(f"{name}{control}{away}" for name in ROLLED_BACK for control in ("", "+control") for away in ("-", "")),
    *(f"{name}{control}" for name in STORIES if name not in ROLLED_BACK for control in ("", "+control") if (name, control) != NOT_PLAYED),
]

pytestmark = [pytest.mark.ccc, pytest.mark.real, pytest.mark.timeout(STORY_SECONDS + 60)]


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory whose path leaves room for the name of a socket."""
    with tempfile.TemporaryDirectory(prefix="ccc-") as directory:
        yield Path(directory)


@pytest.mark.case("C01", "C87", "C88")
@pytest.mark.parametrize("key", KEYS)
def test_story(key: str, short_path: Path) -> None:
    """Played through CCC's HTTP API, no answer lacks a turn that was on disk, nothing is lost or doubled, and no working process is ended.

    With the plugin away (`-`) the story shows the rollback.
    """
    if (reason := HERE.missing(RELEASE)) is not None:
        pytest.skip(reason)
    arguments = [str(program(RELEASE)), *HERE.arguments(), key]
    isolated = Isolated(short_path, "tests.ccc_hookspecs.integrations.real.play", arguments)
    try:
        isolated.wait(STORY_SECONDS)
    finally:
        isolated.close()
    outcome = next(isolated.values(), None)
    assert outcome is not None, isolated.complaint()
    assert outcome["passed"], outcome
