"""Every way by which CCC brings a text to a headless: nothing is lost, nothing doubled, nothing overtaken."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from ccc_hookspecs.specs import Host
from ccc_hookspecs.values import Decision, Deliver, Injection, Respawn
from tests.ccc_hookspecs.integrations.conftest import Ccc, end

Send = Callable[[Ccc, str, str], dict[str, Any]]


def inject(ccc: Ccc, session_id: str, text: str) -> dict[str, Any]:
    answer: dict[str, Any] = ccc.server._inject_text_into_session(session_id, text)
    return answer


def steer(ccc: Ccc, session_id: str, text: str) -> dict[str, Any]:
    answer: dict[str, Any] = ccc.server._inject_text_into_session(session_id, text, mode="steer")
    return answer


def by_pid(ccc: Ccc, session_id: str, text: str) -> dict[str, Any]:
    answer: dict[str, Any] = ccc.server.inject_into_spawned(ccc.row(session_id)["pid"], text)
    return answer


def resume(ccc: Ccc, session_id: str, text: str) -> dict[str, Any]:
    answer: dict[str, Any] = ccc.server.resume_session_headless(session_id, text, cwd=None)
    return answer


def ask(ccc: Ccc, session_id: str, text: str) -> dict[str, Any]:
    answer: dict[str, Any] = ccc.server.ask_session_and_wait(session_id, text, timeout_ms=600)
    return answer


ROUTES = pytest.mark.parametrize("send", [inject, steer, by_pid, resume, ask], ids=lambda send: send.__name__)


def turns(ccc: Ccc, session_id: str) -> list[str]:
    """The texts that arrived, without interrupts."""
    return [one[-1] for one in ccc.texts(session_id) if one != ["interrupt"]]


@ROUTES
@pytest.mark.case("C01", "C75")
def test_a_refused_text_reaches_a_fresh_process_once(ccc: Ccc, send: Send) -> None:
    """Whatever the route: the stale process gets nothing, and the fresh one gets the text once, after what it lacks."""
    session_id, row = ccc.spawn()
    ccc.plugin.retire(catch_up="lacked")
    send(ccc, session_id, "second")
    assert ccc.delivered(session_id, "second") == ["lacked", "second"]
    assert turns(ccc, session_id) == ["first", "second"]
    assert ccc.row(session_id)["pid"] != row["pid"]


@ROUTES
@pytest.mark.case("C75", "C84")
def test_a_held_text_waits_in_ccc_s_queue(ccc: Ccc, send: Send) -> None:
    """Whatever the route: the busy process is left alone, and the text is delivered once when the hold ends."""
    session_id, row = ccc.spawn()
    ccc.plugin.hold("a background task")
    answer = send(ccc, session_id, "second")
    assert answer["queued"]
    assert answer["queued_reason"] == "stale and busy; waits for: a background task"
    assert ccc.server._pending_terminal_input_queue == {session_id: ["second"]}
    ccc.server.drain()
    assert (row["proc"].poll(), turns(ccc, session_id)) == (None, ["first"])
    ccc.plugin.answer = lambda host, injection: None
    ccc.tick()
    ccc.delivered(session_id, "second")
    assert turns(ccc, session_id) == ["first", "second"]
    assert ccc.row(session_id) is row


@ROUTES
@pytest.mark.case("C75")
def test_a_text_that_every_fresh_process_is_refused_waits_in_ccc_s_queue(ccc: Ccc, send: Send) -> None:
    """Whatever the route: it is neither lost nor tried for ever, and is delivered when a process may take it."""
    session_id, _ = ccc.spawn()

    def refuse(host: Host, injection: Injection) -> Decision:
        end(injection.headless.pid)
        host.released(injection.headless)
        return Respawn(reason="stale")

    ccc.plugin.answer = refuse
    assert send(ccc, session_id, "second")["queued"]
    assert ccc.server._pending_terminal_input_queue == {session_id: ["second"]}
    ccc.plugin.answer = lambda host, injection: None
    ccc.delivered(session_id, "second")
    assert turns(ccc, session_id) == ["first", "second"]


@ROUTES
@pytest.mark.case("C75")
def test_no_text_overtakes_a_held_one(ccc: Ccc, send: Send) -> None:
    """Also in the moment after the hold has ended, a later text waits behind the earlier one."""
    session_id, _ = ccc.spawn()
    ccc.plugin.hold("a turn")
    inject(ccc, session_id, "second")
    ccc.plugin.answer = lambda host, injection: None
    ccc.tick()
    send(ccc, session_id, "third")
    ccc.delivered(session_id, "third")
    assert turns(ccc, session_id) == ["first", "second", "third"]


@ROUTES
@pytest.mark.case("C75")
def test_no_text_overtakes_one_that_waits_for_a_fresh_process(ccc: Ccc, send: Send) -> None:
    """When the tick has ended the stale process, the next text does not start a process of its own."""
    session_id, row = ccc.spawn()
    ccc.plugin.hold("a turn")
    inject(ccc, session_id, "second")
    ccc.plugin.retire(catch_up="lacked")
    ccc.tick()
    assert row["proc"].poll() is not None
    ccc.plugin.answer = lambda host, injection: None if injection.headless.sent else Deliver(catch_up="lacked")
    if send is not by_pid:
        send(ccc, session_id, "third")
        ccc.delivered(session_id, "third")
    ccc.delivered(session_id, "second")
    assert turns(ccc, session_id) == ["first", "second", "third"][: 2 if send is by_pid else 3]
    assert ccc.texts(session_id)[1] == ["lacked", "second"]


def test_an_ask_waits_for_the_hold_to_end(ccc: Ccc) -> None:
    """A synchronous question gets its answer when the hold ends within its time, and is not queued."""
    session_id, _ = ccc.spawn()
    ccc.plugin.hold("a turn")

    def release() -> None:
        while len(ccc.plugin.asked) < 2:
            time.sleep(0.01)
        ccc.plugin.answer = lambda host, injection: None

    thread = threading.Thread(target=release)
    thread.start()
    answer = ccc.server.ask_session_and_wait(session_id, "second", timeout_ms=15000)
    thread.join()
    assert (answer["ok"], answer["text"]) == (True, '["second"]')
    ccc.server.drain()
    assert turns(ccc, session_id) == ["first", "second"]


def test_a_compaction_of_a_busy_session_is_queued(ccc: Ccc) -> None:
    """`/compact` to a held process waits in the queue as CCC's own busy path has it."""
    session_id, row = ccc.spawn()
    ccc.plugin.hold("a turn")
    assert ccc.server.compact_session_context(session_id)["queued"]
    assert ccc.server._pending_terminal_input_queue == {session_id: ["/compact"]}
    assert row["proc"].poll() is None


def test_a_compaction_of_a_stale_session_runs_in_a_fresh_process(ccc: Ccc) -> None:
    """`/compact` is not given to a process whose memory it would write over the history with."""
    session_id, row = ccc.spawn()
    ccc.plugin.retire(catch_up="lacked")
    assert ccc.server.compact_session_context(session_id)["ok"]
    assert ccc.heard(session_id, "/compact") == ["/compact"]
    assert ccc.row(session_id)["pid"] != row["pid"]


def test_who_takes_over_is_not_left_to_another_tool(ccc: Ccc) -> None:
    """Once a process was retired CCC resumes itself: of the process that WatchTower would start no plugin is asked."""
    session_id, _ = ccc.spawn()
    ccc.plugin.hold("a turn")
    inject(ccc, session_id, "second")
    assert ccc.server._try_wt_send_for_headless_delivery(session_id, "second") is not None
    ccc.plugin.retire()
    ccc.tick()
    assert ccc.server._try_wt_send_for_headless_delivery(session_id, "second") is None
    assert ccc.server._try_wt_ask_for_headless_delivery(session_id, "second", 1000) is None
