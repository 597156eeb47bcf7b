"""What is done on each tick, and that one session in trouble keeps no other from its turn."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ccc_hookspecs.integrations.command_center.upkeep import TICKS
from ccc_hookspecs.outcomes import Deferral, Facts, Proposal
from ccc_hookspecs.signals import emit, retirement_deferred, retirement_proposed
from tests.ccc_hookspecs.integrations.conftest import Ccc, end, wait_for


def unlockable(ccc: Ccc, session_id: str) -> Path:
    """Make it impossible to open the session's lock file, as a full table of files or another owner does."""
    path = ccc.attachment.host.state_dir / "locks" / f"{session_id}.lock"
    path.unlink(missing_ok=True)
    path.mkdir()
    return path


@pytest.mark.case("C94")
def test_one_session_in_trouble_stops_no_other(ccc: Ccc, caplog: pytest.LogCaptureFixture) -> None:
    """A lock that cannot be opened is logged with its session; the other's hold ends, and every plugin gets its tick."""
    (troubled, _), (other, row) = ccc.spawn(), ccc.spawn()
    ccc.plugin.hold("a turn")
    for session_id in (troubled, other):
        ccc.server._inject_text_into_session(session_id, "second")
    ccc.plugin.answer = lambda host, injection: None
    path = unlockable(ccc, troubled)
    ccc.tick()
    assert len(ccc.plugin.ticks) == 1
    assert [held.headless.session_id for held in ccc.attachment.holds.all()] == [troubled]
    assert f"session {troubled}" in caplog.text
    assert "Traceback" in caplog.text
    ccc.delivered(other, "second")
    assert ccc.row(other) is row
    path.rmdir()
    ccc.tick()
    ccc.delivered(troubled, "second")


def test_the_plugins_get_their_tick_whatever_befalls_the_holds(ccc: Ccc, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours in what comes before costs no plugin its tick."""

    def fail(*_: object) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr("ccc_hookspecs.integrations.command_center.judge.Judge.ask_again", fail)
    ccc.tick()
    assert len(ccc.plugin.ticks) == 1


@pytest.mark.case("C75", "C89")
def test_a_text_whose_session_cannot_be_locked_waits_in_the_queue(ccc: Ccc) -> None:
    """It is not written unasked and not lost, its process is not ended, and people are told why; it is delivered once the lock is there."""
    session_id, row = ccc.spawn()
    wait_for(lambda: not ccc.server._headless_turn_in_progress(row))
    path = unlockable(ccc, session_id)
    assert "cannot be locked" in ccc.server._inject_text_into_session(session_id, "second")["queued_reason"]
    assert (row["proc"].poll(), ccc.plugin.asked) == (None, [])
    path.rmdir()
    ccc.tick()
    ccc.delivered(session_id, "second")
    assert ccc.row(session_id) is row


def test_what_ended_by_itself_is_forgotten(ccc: Ccc) -> None:
    """A CCC that runs for weeks keeps nothing of processes that are gone: no record, no deferral, no reason."""
    facts = Facts(attribution="stale", attribution_reason="a terminal wrote", idleness="busy")
    host, (living, _) = ccc.attachment.host, ccc.spawn()
    for _ in range(3):
        session_id, row = ccc.spawn()
        headless = host.headless_for(session_id)
        assert headless is not None
        emit(retirement_deferred, "m", Deferral(headless=headless, mechanism="m", reason="busy", facts=facts, since=1.0))
        emit(retirement_proposed, "m", Proposal(headless=headless, mechanism="m", reason="a terminal wrote", facts=facts))
        end(row["pid"])
        row["proc"].wait()
    ccc.tick(TICKS)
    assert len(list((host.state_dir / "spawns").iterdir())) == 1
    assert (len(host.records._known), ccc.attachment.holds._deferred, host.reasons) == (1, {}, {})
    assert host.headless_for(living) is not None
    assert len(ccc.plugin.ticks) == 1


@contextmanager
def no_descriptor_free() -> Iterator[None]:
    """Nothing can be opened in this process, as when it has too many files open."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.case("C84", "C88")
def test_what_cannot_be_looked_at_is_not_forgotten(ccc: Ccc) -> None:
    """With no file descriptor free no process can be told from one that ended: each keeps its record, its deferral and its reason."""
    facts = Facts(attribution="stale", attribution_reason="a terminal wrote", idleness="busy")
    host, holds, (session_id, row) = ccc.attachment.host, ccc.attachment.holds, ccc.spawn()
    before = host.headless_for(session_id)
    assert before is not None
    emit(retirement_deferred, "m", Deferral(headless=before, mechanism="m", reason="busy", facts=facts, since=1.0))
    emit(retirement_proposed, "m", Proposal(headless=before, mechanism="m", reason="a terminal wrote", facts=facts))
    with no_descriptor_free():
        ccc.tick(TICKS)
        assert holds.busy(row)
    assert len(list((host.state_dir / "spawns").iterdir())) == 1
    assert (host.headless_for(session_id), holds.busy(row), set(host.reasons)) == (before, True, {row["pid"]})


def test_what_cannot_be_seen_to_stops_nothing(ccc: Ccc, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """What fails is logged, the rest is done, and the plugins get their tick."""
    _, row = ccc.spawn()
    end(row["pid"])
    row["proc"].wait()

    def fail(*_: object) -> None:
        raise OSError("broken")

    monkeypatch.setattr("ccc_hookspecs.integrations.command_center.records.SpawnRecords.write_late", fail)
    ccc.tick(TICKS)
    assert "OSError: broken" in caplog.text
    assert list((ccc.attachment.host.state_dir / "spawns").iterdir()) == []
    assert len(ccc.plugin.ticks) == 1
