"""Retirements put off until their headless is idle."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale import deferrals as deferrals_module
from ccc_plugins.retire_stale.deferrals import Deferrals
from ccc_plugins.retire_stale.journal import Journal
from ccc_plugins.retire_stale.store import Store

HEADLESS = Headless(session_id="72350742-dff3-4ee0-a645-6602d6d2b86e", pid=4_000_001, start_time=17.25)
LAUNCH = "retire_stale.terminal_launch"


@pytest.fixture
def deferrals(state_dir: Path) -> Deferrals:
    return Deferrals(Store(state_dir))


@pytest.mark.case("C86")
def test_deferral_outlives_the_host(deferrals: Deferrals, state_dir: Path) -> None:
    """What one host put off is found whole by another process that starts later."""
    deferrals.add(HEADLESS, mechanism=LAUNCH, reason="a terminal was opened", signs=("open turn", "unread input"), since=5.5)
    code = (
        "import sys; from pathlib import Path; from ccc_plugins.retire_stale.deferrals import Deferrals;"
        "from ccc_plugins.retire_stale.store import Store; print(*Deferrals(Store(Path(sys.argv[1]))).all())"
    )
    found = subprocess.run([sys.executable, "-c", code, str(state_dir)], capture_output=True, text=True, check=True).stdout
    (deferred,) = deferrals.all()
    assert found.strip() == repr(deferred)
    assert (deferred.pid, deferred.start_time, deferred.session_id) == (HEADLESS.pid, HEADLESS.start_time, HEADLESS.session_id)
    assert (deferred.mechanism, deferred.reason) == (LAUNCH, "a terminal was opened")
    assert (deferred.signs, deferred.since) == (("open turn", "unread input"), 5.5)


def test_repeated_deferral_keeps_its_first_time(deferrals: Deferrals) -> None:
    """Put off again, a retirement shows the newest signs and still says since when it waits."""
    deferrals.add(HEADLESS, mechanism=LAUNCH, reason="a terminal was opened", signs=("open turn",), since=5.5)
    again = deferrals.add(HEADLESS, mechanism=LAUNCH, reason="a terminal was opened", signs=("background task",), since=9.0)
    assert again is not None
    assert (again.since, again.signs) == (5.5, ("background task",))
    assert deferrals.all() == (again,)
    assert deferrals.since(HEADLESS) == 5.5


def test_deferral_without_a_time_begins_now(deferrals: Deferrals) -> None:
    """When no time is given the deferral begins at the call."""
    before = time.time()
    deferred = deferrals.add(HEADLESS, mechanism=LAUNCH, reason="a terminal was opened")
    assert deferred is not None
    assert before <= deferred.since <= time.time()
    assert deferred.signs == ()


def test_each_mechanism_has_its_own(deferrals: Deferrals) -> None:
    """Mechanisms that are switched apart keep their deferrals apart."""
    for mechanism, since in ((LAUNCH, 2.0), ("retire_stale.watcher", 1.0)):
        deferrals.add(HEADLESS, mechanism=mechanism, reason="a terminal was opened", since=since)
    assert [one.mechanism for one in deferrals.all()] == ["retire_stale.watcher", LAUNCH]
    assert [one.mechanism for one in deferrals.all(LAUNCH)] == [LAUNCH]
    assert deferrals.since(HEADLESS) == 1.0
    assert deferrals.drop(HEADLESS, LAUNCH)
    (left,) = deferrals.all()
    assert left.mechanism == "retire_stale.watcher"
    deferrals.add(HEADLESS, mechanism=LAUNCH, reason="a terminal was opened")
    assert deferrals.drop(left)
    assert [one.mechanism for one in deferrals.all()] == [LAUNCH]


def test_drop_of_a_process_drops_every_mechanisms(deferrals: Deferrals) -> None:
    """A process that is gone takes all its deferrals along, and no other's."""
    other = replace(HEADLESS, start_time=18.0)
    for headless in (HEADLESS, other):
        for mechanism in (LAUNCH, "retire_stale.watcher"):
            deferrals.add(headless, mechanism=mechanism, reason="a terminal was opened")
    assert deferrals.drop(HEADLESS)
    assert {one.start_time for one in deferrals.all()} == {18.0}


@pytest.mark.case("C86")
def test_one_of_two_hosts_drops_it(deferrals: Deferrals, state_dir: Path) -> None:
    """Two hosts that both come to a deferral find that only one of them removed it."""
    deferred = deferrals.add(HEADLESS, mechanism=LAUNCH, reason="a terminal was opened")
    assert deferred is not None
    other = Deferrals(Store(state_dir))
    assert [deferrals.drop(deferred), other.drop(deferred)] == [True, False]


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"start_time": 17.25 + 1e-6}, True),
        ({"start_time": 17.26}, False),
        ({"start_time": None}, False),
        ({"pid": 4_000_002}, False),
        ({"session_id": "00000000-0000-4000-8000-000000000000"}, False),
    ],
)
def test_deferral_is_of_one_process_in_one_session(deferrals: Deferrals, change: dict[str, Any], same: bool) -> None:
    """Another process with the same pid, or the same process in another session, is not the one that was put off."""
    deferred = deferrals.add(HEADLESS, mechanism=LAUNCH, reason="a terminal was opened")
    assert deferred is not None
    assert deferred.is_of(replace(HEADLESS, **change)) is same


@pytest.mark.case("C51")
def test_process_of_unknown_identity_is_not_put_off(deferrals: Deferrals) -> None:
    """What can never be signalled is not remembered for later, and nothing is removed in its name."""
    unknown = replace(HEADLESS, start_time=None)
    deferrals.add(HEADLESS, mechanism=LAUNCH, reason="a terminal was opened")
    assert deferrals.add(unknown, mechanism=LAUNCH, reason="a terminal was opened") is None
    assert not deferrals.drop(unknown)
    assert len(deferrals.all()) == 1


def test_nothing_put_off_makes_no_file(deferrals: Deferrals, state_dir: Path) -> None:
    """Asking for deferrals where there are none leaves no file behind."""
    assert deferrals.all() == ()
    assert not deferrals.drop(HEADLESS)
    assert deferrals.since(HEADLESS) is None
    assert not state_dir.exists()


def test_unusable_store_raises_into_nobody(deferrals: Deferrals, state_dir: Path) -> None:
    """With a corrupt file nothing is remembered and nothing is raised."""
    state_dir.mkdir(mode=0o700)
    Store(state_dir).path.write_bytes(b"not a database" * 100)
    assert deferrals.add(HEADLESS, mechanism=LAUNCH, reason="a terminal was opened") is None
    assert deferrals.all() == ()
    assert not deferrals.drop(HEADLESS)
    assert deferrals.since(HEADLESS) is None


def test_locked_store_raises_into_nobody(state_dir: Path) -> None:
    """With the file locked for too long the deferral is not stored, and what is stored can still be read."""
    journal, hasty = Journal(state_dir), Deferrals(Store(state_dir, busy_seconds=0.05))
    hasty.add(HEADLESS, mechanism=LAUNCH, reason="a terminal was opened")
    with journal.store.writing():
        assert hasty.add(replace(HEADLESS, pid=4_000_002), mechanism=LAUNCH, reason="a terminal was opened") is None
        assert not hasty.drop(HEADLESS)
        assert len(hasty.all()) == 1


def test_oldest_are_forgotten_past_the_bound(deferrals: Deferrals, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of deferrals is bounded, and the newest stay."""
    monkeypatch.setattr(deferrals_module, "DEFERRALS_KEPT", 3)
    for number in range(6):
        deferrals.add(replace(HEADLESS, pid=number + 1), mechanism=LAUNCH, reason="a terminal was opened", since=float(number))
    assert [one.pid for one in deferrals.all()] == [4, 5, 6]
