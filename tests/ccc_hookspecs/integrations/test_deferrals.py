"""What CCC may do with a process that a mechanism waits for: not end it, and feed it as the plugins say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ccc_hookspecs.outcomes import Deferral, Facts, Kept, Retirement, RetirementFailure
from ccc_hookspecs.signals import emit, headless_kept, headless_retired, retirement_deferred, retirement_failed
from ccc_hookspecs.values import Headless
from tests.ccc_hookspecs.integrations.conftest import Ccc, wait_for

Over = Callable[[Headless, str], None]

FACTS = Facts(attribution="stale", attribution_reason="a terminal wrote", idleness="busy", signs=("a background task",))


def idle(ccc: Ccc) -> tuple[str, Headless]:
    """A session whose process CCC takes for idle."""
    session_id, row = ccc.spawn()
    wait_for(lambda: not ccc.server._headless_turn_in_progress(row))
    headless = ccc.attachment.host.headless_for(session_id)
    assert headless is not None
    return session_id, headless


def defer(headless: Headless, mechanism: str) -> None:
    emit(retirement_deferred, mechanism, Deferral(headless=headless, mechanism=mechanism, reason="busy", facts=FACTS, since=1.0))


def keep(headless: Headless, mechanism: str) -> None:
    emit(headless_kept, mechanism, Kept(headless=headless, mechanism=mechanism, reason="the terminal has closed"))


def fail(headless: Headless, mechanism: str) -> None:
    emit(retirement_failed, mechanism, RetirementFailure(headless=headless, mechanism=mechanism, reason="did not exit", rung="kill"))


def retire(headless: Headless, mechanism: str) -> None:
    event = Retirement(headless=headless, mechanism=mechanism, reason="x", facts=FACTS, rung="released", seconds=0.1)
    emit(headless_retired, mechanism, event)


@pytest.mark.case("C84")
@pytest.mark.parametrize("over", [keep, fail, retire])
def test_while_a_retirement_is_deferred_ccc_takes_the_process_for_busy(ccc: Ccc, over: Over) -> None:
    """CCC ends no process that a mechanism waits for, until that mechanism says that it does no more."""
    session_id, headless = idle(ccc)
    defer(headless, "some.mechanism")
    assert ccc.server._headless_turn_in_progress(ccc.row(session_id))
    assert "a background task" in ccc.activity("DEFER")[0]
    over(headless, "some.mechanism")
    assert not ccc.server._headless_turn_in_progress(ccc.row(session_id))


@pytest.mark.case("C84")
@pytest.mark.parametrize("over", [keep, fail])
def test_one_mechanism_does_not_speak_for_another(ccc: Ccc, over: Over) -> None:
    """While another waits for the process still, CCC does not end it."""
    session_id, headless = idle(ccc)
    defer(headless, "some.mechanism")
    defer(headless, "another")
    over(headless, "some.mechanism")
    assert ccc.server._headless_turn_in_progress(ccc.row(session_id))
    over(headless, "another")
    assert not ccc.server._headless_turn_in_progress(ccc.row(session_id))


@pytest.mark.case("C75", "C84")
def test_a_deferral_that_never_ends_stops_no_text(ccc: Ccc) -> None:
    """CCC's queue asks about each text and delivers it to that very process, which CCC still does not end."""
    session_id, headless = idle(ccc)
    defer(headless, "some.mechanism")
    ccc.server._queue_terminal_input(session_id, "second")
    ccc.delivered(session_id, "second")
    assert [one.text for one in ccc.plugin.asked] == ["second"]
    assert ccc.row(session_id)["pid"] == headless.pid
    assert ccc.server._headless_turn_in_progress(ccc.row(session_id))
    assert ccc.activity("RETIRE") == []


@pytest.mark.case("C75", "C84")
def test_a_deferred_process_gets_no_text_that_is_held(ccc: Ccc) -> None:
    """What the plugins answer decides, and not the deferral."""
    session_id, headless = idle(ccc)
    defer(headless, "some.mechanism")
    ccc.server._queue_terminal_input(session_id, "second")
    ccc.plugin.hold("a background task")
    ccc.server.drain()
    ccc.server.drain()
    assert ccc.server._pending_terminal_input_queue == {session_id: ["second"]}
    assert len(ccc.plugin.asked) == 1
    ccc.plugin.answer = lambda host, injection: None
    ccc.tick()
    ccc.delivered(session_id, "second")
    assert ccc.row(session_id)["pid"] == headless.pid


@pytest.mark.case("C59")
def test_a_process_that_was_waited_for_is_told_from_another_with_its_pid(ccc: Ccc) -> None:
    """What was busy may end by itself; a later process with the same pid is not taken for it."""
    session_id, headless = idle(ccc)
    defer(replace(headless, start_time=1.0), "some.mechanism")
    assert not ccc.server._headless_turn_in_progress(ccc.row(session_id))
