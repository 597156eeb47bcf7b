"""The journal's part in a retirement: nothing is signalled without it, and it tells our exits from others'."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ccc_hookspecs.outcomes import Deferral, Facts, Kept, Retirement
from ccc_plugins.retire_stale.journal import Journal
from tests.retire_stale.conftest import FACTS

if TYPE_CHECKING:
    from tests.retire_stale.conftest import Lab

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("damage", ["corrupt", "locked", "newer", "directory"])
def test_without_a_journal_nothing_is_signalled(lab: Lab, damage: str) -> None:
    """When the intent cannot be recorded the process is kept, with the reason, and not stopped for a moment."""
    fake = lab.fake()
    lab.journal = Journal(lab.host.state_dir, busy_seconds=0.05)
    with _damaged(lab.journal, damage):
        outcome = lab.retire(fake.headless, lambda: "idle")
    assert isinstance(outcome, Kept)
    assert outcome.reason.startswith(f"the journal cannot be used: {lab.journal.store.path}: ")
    assert fake.goes_on
    assert lab.looks == 1


@contextmanager
def _damaged(journal: Journal, damage: str) -> Iterator[None]:
    path = journal.store.path
    if damage == "corrupt":
        path.write_bytes(b"not a database" * 100)
    elif damage == "directory":
        path.mkdir()
    elif damage == "newer":
        with journal.store.writing() as db:
            db.execute("PRAGMA user_version = 99")
    if damage != "locked":
        yield
        return
    with Journal(path.parent).store.writing():
        yield


@pytest.mark.case("C83")
@pytest.mark.parametrize("found", [replace(FACTS["idle"], attribution="fresh"), FACTS["idle"]], ids=["SIGTERM", "SIGKILL"])
def test_our_own_sigterm_reads_as_ours_from_the_first_moment(lab: Lab, found: Facts) -> None:
    """Exit code 143, or -9 after SIGKILL, of a headless that we ended is known as ours before the host can see it, and stays so."""
    fake = lab.fake()
    assert fake.headless.start_time is not None
    identity = (fake.headless.pid, fake.headless.start_time)
    seen: list[bool] = []
    lab.host.on_release = lambda: seen.append(lab.journal.retired_by_us(*identity))

    def look() -> Facts:
        seen.append(lab.journal.retired_by_us(*identity))
        return found

    assert isinstance(lab.retire(fake.headless, look), Retirement)
    assert seen == [False, True, True]
    assert Journal(lab.host.state_dir).retired_by_us(*identity)


@pytest.mark.case("C83")
def test_another_tools_sigterm_reads_as_external(lab: Lab) -> None:
    """The same exit code after somebody else's SIGTERM is not ours, also when we had looked at the process before."""
    fake = lab.fake()
    assert isinstance(lab.retire(fake.headless, "idle", "busy"), Deferral)
    fake.process.terminate()
    assert fake.process.wait(5) == 143
    assert isinstance(lab.retire(fake.headless), Kept)
    assert not lab.journal.retired_by_us(fake.headless.pid, fake.headless.start_time or 0)
