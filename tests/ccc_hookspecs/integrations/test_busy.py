"""CCC's own checks, and what they hear of ours."""

from __future__ import annotations

import threading

import pytest

from ccc_hookspecs.integrations.command_center.debts import Debt
from ccc_hookspecs.outcomes import Deferral, Facts, Kept, PluginFailure, Proposal, Retirement, RetirementFailure
from ccc_hookspecs.processes import start_time
from ccc_hookspecs.signals import (
    emit,
    headless_kept,
    headless_retired,
    plugin_failed,
    retirement_deferred,
    retirement_failed,
    retirement_proposed,
)
from ccc_hookspecs.specs import Host
from ccc_hookspecs.values import Decision, Deliver, Headless, Hold, Injection, Respawn
from tests.ccc_hookspecs.integrations.conftest import Ccc, end, wait_for

FACTS = Facts(attribution="stale", attribution_reason="a terminal wrote", idleness="busy", signs=("a background task",))


def headless_of(ccc: Ccc, session_id: str) -> Headless:
    headless = ccc.attachment.host.headless_for(session_id)
    assert headless is not None
    return headless


@pytest.mark.case("C65", "C84")
def test_while_a_text_is_held_ccc_takes_the_process_for_busy(ccc: Ccc) -> None:
    """CCC sees no open turn, but its check hears ours, so that it ends nothing; when the hold ends it hears that too."""
    session_id, row = ccc.spawn()
    wait_for(lambda: not ccc.server._headless_turn_in_progress(row))
    ccc.plugin.hold("a background task")
    ccc.server._inject_text_into_session(session_id, "second")
    assert ccc.server._headless_turn_in_progress(row)
    ccc.plugin.answer = lambda host, injection: None
    ccc.tick()
    assert not ccc.server._headless_turn_in_progress(row)


@pytest.mark.case("C65", "C75", "C84")
def test_a_text_that_waits_behind_others_costs_no_process(ccc: Ccc) -> None:
    """CCC ends a process that it takes for idle when a write fails; one whose text only waits for its turn is not idle to it."""
    session_id, row = ccc.spawn()
    wait_for(lambda: not ccc.server._headless_turn_in_progress(row))
    ccc.attachment.host.debts.put(session_id, Debt(reason="held", mechanism="m"))
    handed = ccc.server._write_pending_input_handoff(session_id, "second")
    answer = ccc.server._inject_text_into_session(session_id, "third")
    assert answer["queued_reason"] == "earlier texts of this session wait to be delivered first"
    assert (ccc.activity("RETIRE"), row["proc"].poll()) == ([], None)
    handed.unlink()
    ccc.tick()
    ccc.delivered(session_id, "third")
    assert ccc.row(session_id) is row


@pytest.mark.case("C59")
def test_a_hold_on_an_earlier_process_with_that_pid_is_none_on_this(ccc: Ccc) -> None:
    """A text for the process that has the pid now keeps it from being ended, whatever was held before."""
    session_id, row = ccc.spawn()
    wait_for(lambda: not ccc.server._headless_turn_in_progress(row))
    headless = headless_of(ccc, session_id)
    for entry in ({**row}, row):
        ccc.attachment.holds.hold(entry, headless, "second", "0b66f575-6a40-4785-b5a5-0581958b7040", Hold(reason="stale and busy"))
    assert ccc.server._headless_turn_in_progress(row)


def test_a_text_that_waits_behind_a_held_one_hides_no_reason(ccc: Ccc) -> None:
    """What the process is held for stays what people are told, and is told once."""
    session_id, row = ccc.spawn()
    ccc.plugin.hold("a turn")
    ccc.server._inject_text_into_session(session_id, "second")
    ccc.server.inject_into_spawned(row["pid"], "third")
    (held,) = ccc.attachment.holds.all()
    assert (held.text, held.hold.signs) == ("second", ("a turn",))
    assert len(ccc.activity("HOLD")) == 1


@pytest.mark.case("C59")
def test_ccc_signals_no_pid_that_was_retired(ccc: Ccc) -> None:
    """CCC ends the process itself when a write fails; one that a mechanism has ended is not signalled again, whoever has its pid now."""
    session_id, row = ccc.spawn()
    ccc.plugin.retire()
    ccc.server._inject_text_into_session(session_id, "second")
    bystander = ccc.row(session_id)
    row["pid"] = bystander["pid"]
    ccc.server._retire_unresponsive_spawn_entry(row, terminate=True, reason="write_failed")
    ccc.heard(session_id, "second")
    assert bystander["proc"].poll() is None
    assert not ccc.server._headless_turn_in_progress(row)


def test_ccc_s_user_sees_why(ccc: Ccc) -> None:
    """The activity log has the plugins, each hold with what it waits for and its end, and each retirement with its reason."""
    session_id, row = ccc.spawn()
    assert "scripted" in ccc.activity("ATTACH")[0]
    ccc.plugin.hold("a turn")
    ccc.server._inject_text_into_session(session_id, "second")
    ccc.server._inject_text_into_session(session_id, "third")
    assert ccc.activity("HOLD") == [f"session={session_id} pid={row['pid']} reason=stale and busy; waits for: a turn"]
    ccc.plugin.hold("a background task")
    ccc.tick()
    assert len(ccc.activity("HOLD")) == 2

    def answer(host: Host, injection: Injection) -> Decision | None:
        proposal = Proposal(headless=injection.headless, mechanism="some.mechanism", reason="a terminal wrote", facts=FACTS)
        emit(retirement_proposed, "some.mechanism", proposal)
        end(injection.headless.pid)
        host.released(injection.headless)
        return Respawn(reason="stale")

    ccc.plugin.answer = answer
    ccc.tick()
    assert ccc.activity("HOLD_END") == [f"session={session_id} pid={row['pid']}"]
    (line,) = ccc.activity("RETIRE")
    assert f"sid={session_id}" in line
    assert "retire-stale: a terminal wrote" in line
    assert "some.mechanism" in line


def test_failures_are_told_too(ccc: Ccc) -> None:
    """A retirement that did not end its process, what shadow mode would do, and a plugin that fails are in the activity log."""
    session_id, row = ccc.spawn()
    headless = headless_of(ccc, session_id)
    emit(retirement_failed, "m", RetirementFailure(headless=headless, mechanism="m", reason="did not exit", rung="kill"))
    emit(headless_kept, "m", Kept(headless=headless, mechanism="m", reason="shadow mode", would_retire=True))
    emit(plugin_failed, "p", PluginFailure(plugin="p", where="on_tick", error="OSError: broken"))
    assert "did not exit; at: kill" in ccc.activity("FAILED")[0]
    assert "OSError: broken" in ccc.activity("FAILED")[1]
    assert f"pid={row['pid']}" in ccc.activity("WOULD")[0]


def test_what_another_host_s_mechanisms_say_is_not_told_here(ccc: Ccc) -> None:
    """Signals about processes that this CCC does not have are not its affair."""
    session_id, _ = ccc.spawn()
    other = Headless(session_id=session_id, pid=1, start_time=start_time(1))
    emit(retirement_deferred, "m", Deferral(headless=other, mechanism="m", reason="busy", facts=FACTS, since=1.0))
    emit(headless_retired, "m", Retirement(headless=other, mechanism="m", reason="x", facts=FACTS, rung="released", seconds=0.1))
    assert ccc.activity("DEFER") == []


@pytest.mark.case("C63", "C66")
def test_a_held_text_outlives_the_process_it_waits_for(ccc: Ccc) -> None:
    """When a person ends the busy process, CCC keeps the queue of the session without a process, and resumes it with the text."""
    session_id, row = ccc.spawn()
    ccc.plugin.hold("a server that never ends")
    ccc.server._inject_text_into_session(session_id, "second")
    end(row["pid"])
    ccc.tick()
    ccc.delivered(session_id, "second")
    assert [one[-1] for one in ccc.texts(session_id)] == ["first", "second"]


def test_the_queue_of_a_dead_session_is_ccc_s_own_affair_otherwise(ccc: Ccc) -> None:
    """CCC drops queued texts of a session without a process as before when we owe it nothing."""
    session_id, row = ccc.spawn()
    ccc.server._queue_terminal_input(session_id, "second")
    end(row["pid"])
    ccc.server.drain()
    assert ccc.server._pending_terminal_input_queue == {}


@pytest.mark.case("C89")
def test_a_session_is_written_by_one_at_a_time(ccc: Ccc) -> None:
    """While somebody else holds the session's lock, a text is not written, and not lost either."""
    session_id, row = ccc.spawn()
    with ccc.locked(session_id):
        ccc.tick()
        sender = threading.Thread(target=lambda: ccc.server._inject_text_into_session(session_id, "second"))
        sender.start()
        sender.join(0.3)
        assert sender.is_alive()
    sender.join()
    ccc.delivered(session_id, "second")
    assert ccc.row(session_id) is row


@pytest.mark.case("C89")
def test_a_text_whose_session_stays_locked_waits_in_the_queue(ccc: Ccc, monkeypatch: pytest.MonkeyPatch) -> None:
    """CCC does not take the process for idle, which it would end, and delivers the text once the lock is free."""
    monkeypatch.setattr("ccc_hookspecs.integrations.command_center.writer.LOCK_SECONDS", 0.1)
    session_id, row = ccc.spawn()
    wait_for(lambda: not ccc.server._headless_turn_in_progress(row))
    with ccc.locked(session_id):
        assert "another part of CCC" in ccc.server._inject_text_into_session(session_id, "second")["queued_reason"]
        assert (row["proc"].poll(), ccc.plugin.asked) == (None, [])
    ccc.tick()
    ccc.delivered(session_id, "second")
    assert ccc.row(session_id) is row


def test_a_tick_asks_about_the_held_text_itself(ccc: Ccc) -> None:
    """The plugins see the same text and message id at each tick; an answer that it may go ends the hold."""
    session_id, _ = ccc.spawn()
    ccc.plugin.hold("a turn")
    ccc.server._inject_text_into_session(session_id, "second")
    ccc.tick()
    first, again = ccc.plugin.asked
    assert (first.text, first.message_id) == (again.text, again.message_id)
    ccc.plugin.answer = lambda host, injection: Deliver()
    ccc.tick()
    assert ccc.attachment.holds.all() == ()
    assert len(ccc.plugin.ticks) == 2
