"""`/clear`: the process goes on to a session of its own, and what was written for the old one stays with it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ccc_hookspecs.integrations.conftest import Ccc


def turns(ccc: Ccc, session_id: str) -> list[str]:
    return [one[-1] for one in ccc.texts(session_id)]


def test_a_clear_needs_no_fresh_process(ccc: Ccc) -> None:
    """It drops the memory that may be stale, so nobody is asked about it."""
    session_id, row = ccc.spawn()
    ccc.plugin.retire()
    answer = ccc.server.clear_session_context(session_id)
    ccc.heard(answer["new_session_id"], "/clear")
    assert (row["proc"].poll(), ccc.plugin.asked) == (None, [])


@pytest.mark.case("C75")
def test_a_clear_takes_no_text_of_the_old_session_along(ccc: Ccc) -> None:
    """A text that is held while its process is cleared reaches the session that it was written for, and only that one, once."""
    session_id, row = ccc.spawn()
    ccc.plugin.hold("a background task")
    ccc.server._inject_text_into_session(session_id, "second")
    answer = ccc.server.clear_session_context(session_id)
    assert ccc.server._pending_terminal_input_queue == {session_id: ["second"]}
    ccc.plugin.answer = lambda host, injection: None
    ccc.tick()
    ccc.delivered(session_id, "second")
    assert turns(ccc, session_id) == ["first", "second"]
    assert turns(ccc, answer["new_session_id"]) == ["/clear"]
    assert ccc.row(answer["new_session_id"]) is row


def test_a_clear_behind_a_held_text_keeps_its_place(ccc: Ccc) -> None:
    """Sent as a text, it waits in CCC's queue like any other."""
    session_id, _ = ccc.spawn()
    ccc.plugin.hold("a turn")
    ccc.server._inject_text_into_session(session_id, "second")
    ccc.server._inject_text_into_session(session_id, "/clear")
    assert ccc.server._pending_terminal_input_queue == {session_id: ["second", "/clear"]}


@pytest.mark.parametrize("held", [True, False], ids=["held", "refused"])
def test_the_first_text_after_a_clear_is_not_lost(ccc: Ccc, held: bool) -> None:
    """CCC does not look whether that text was written; it is delivered all the same."""
    session_id, _ = ccc.spawn()
    if held:
        ccc.plugin.hold("a turn")
    else:
        ccc.plugin.retire()
    answer = ccc.server.clear_session_context(session_id, initial_message="fresh start")
    assert answer["ok"]
    ccc.plugin.answer = lambda host, injection: None
    ccc.tick()
    ccc.delivered(answer["new_session_id"], "fresh start")
    assert (turns(ccc, session_id), turns(ccc, answer["new_session_id"])) == (["first"], ["/clear", "fresh start"])


@pytest.mark.parametrize("raises", [False, True], ids=["fails", "raises"])
def test_the_first_text_after_a_clear_waits_when_no_process_can_be_started(ccc: Ccc, monkeypatch: pytest.MonkeyPatch, raises: bool) -> None:
    """CCC has said by then that all is well, so the text waits in its queue until the session can be resumed."""
    session_id, _ = ccc.spawn()
    ccc.plugin.retire()

    def unavailable(*_: Any) -> dict[str, Any]:
        if raises:
            raise FileNotFoundError("claude")
        return {"ok": False, "code": "claude_unavailable"}

    with monkeypatch.context() as patch:
        patch.setattr(ccc.server, "_first", unavailable)
        answer = ccc.server.clear_session_context(session_id, initial_message="fresh start")
    assert answer["ok"]
    assert ccc.server._pending_terminal_input_queue == {answer["new_session_id"]: ["fresh start"]}
    ccc.delivered(answer["new_session_id"], "fresh start")
    assert turns(ccc, answer["new_session_id"]) == ["/clear", "fresh start"]


def test_a_clear_that_is_not_written_is_reported_and_not_queued(ccc: Ccc, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent that CCC said it could not send: neither the command nor the text that was to follow it."""
    monkeypatch.setattr("ccc_hookspecs.integrations.command_center.writer.LOCK_SECONDS", 0.1)
    session_id, _ = ccc.spawn()
    with ccc.locked(session_id):
        answer = ccc.server.clear_session_context(session_id, initial_message="fresh start")
    assert not answer["ok"]
    assert ccc.server._pending_terminal_input_queue == {}
    ccc.tick()
    assert ccc.attachment.holds.all() == ()
