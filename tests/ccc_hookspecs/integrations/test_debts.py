"""What a session is owed, on disk and between two processes of one CCC."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ccc_hookspecs.integrations.command_center.debts import Debt, Debts
from ccc_hookspecs.integrations.command_center.upkeep import TICKS
from tests.ccc_hookspecs.integrations.conftest import Ccc, disk_full

SESSION = "7713fc42-3b60-46cb-a3fb-0fcfcfc4e913"
OWED = Debt(reason="stale", mechanism="m")


@contextmanager
def full_disk() -> Iterator[None]:
    """Nothing can be written meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ccc_hookspecs.integrations.command_center.debts.os.fsync", disk_full)
        yield


def pair(tmp_path: Path) -> tuple[Debts, Debts]:
    """The dashboard's and the worker's."""
    return Debts(tmp_path / "owed"), Debts(tmp_path / "owed")


def test_what_cannot_be_written_is_owed_all_the_same(tmp_path: Path) -> None:
    """It is in memory, in place of what the disk says, and leaves no half of a file."""
    dashboard, worker = pair(tmp_path)
    dashboard.put(SESSION, Debt(reason="earlier", mechanism="m"))
    with full_disk():
        dashboard.put(SESSION, OWED)
    assert dashboard.get(SESSION) == OWED
    assert worker.get(SESSION) == Debt(reason="earlier", mechanism="m")
    assert [path.name for path in (tmp_path / "owed").iterdir()] == [f"{SESSION}.json"]
    dashboard.paid(SESSION)
    assert (dashboard.get(SESSION), worker.get(SESSION)) == (None, None)


@pytest.mark.case("C87")
@pytest.mark.parametrize("before", [None, Debt(reason="earlier", mechanism="m")], ids=["nothing", "something"])
def test_what_another_process_has_paid_is_not_owed(tmp_path: Path, before: Debt | None) -> None:
    """What one process could not write is void once another has written, or paid, something newer."""
    dashboard, worker = pair(tmp_path)
    if before is not None:
        worker.put(SESSION, before)
    with full_disk():
        dashboard.put(SESSION, OWED)
    worker.put(SESSION, OWED)
    worker.paid(SESSION)
    assert dashboard.get(SESSION) is None
    dashboard.write_late(SESSION)
    assert (dashboard.get(SESSION), dashboard.unwritten()) == (None, ())


def test_what_could_not_be_written_is_written_later(ccc: Ccc) -> None:
    """Once there is room again, every process of the host learns of it."""
    debts = ccc.attachment.host.debts
    with full_disk():
        debts.put(SESSION, OWED)
        ccc.tick(TICKS)
        assert debts.unwritten() == (SESSION,)
    ccc.tick(TICKS)
    assert debts.unwritten() == ()
    assert Debts(ccc.attachment.host.state_dir / "owed").get(SESSION) == OWED


def test_what_was_paid_is_forgotten_after_a_day(tmp_path: Path) -> None:
    """The empty file that tells so does not stay for ever."""
    debts, _ = pair(tmp_path)
    debts.put(SESSION, OWED)
    debts.paid(SESSION)
    debts.sweep()
    (path,) = (tmp_path / "owed").iterdir()
    os.utime(path, (1.0, 1.0))
    debts.sweep()
    assert list((tmp_path / "owed").iterdir()) == []
