"""CCC's dashboard and its worker: only the process that owns a spawn acts on it."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from ccc_hookspecs.outcomes import Deferral, Facts
from ccc_hookspecs.signals import emit, retirement_deferred
from tests.ccc_hookspecs.integrations.conftest import Ccc, Home, wait_for


class Pair:
    """A dashboard and a worker on one state directory, and the way between them."""

    def __init__(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.worker = home.start(attached=False)
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "worker_engines", self.worker.server)
            self.worker.attach()
        self.dashboard = home.start()
        self.dashboard.server.worker = self._call
        self.engine_host = self.worker.server.EngineHost()

    def as_worker(self) -> None:
        """What runs now is the worker's process. The two differ by an environment variable."""
        self._monkeypatch.setenv("CCC_WORKER_PROCESS", "1")

    def as_dashboard(self) -> None:
        self._monkeypatch.delenv("CCC_WORKER_PROCESS", raising=False)

    def _call(self, engine: str, operation: str, args: dict[str, Any]) -> dict[str, Any]:
        self.as_worker()
        try:
            answer: dict[str, Any] = self._answer(engine, operation, args)
            return answer
        finally:
            self.as_dashboard()

    def _answer(self, engine: str, operation: str, args: dict[str, Any]) -> Any:
        server = self.worker.server
        if operation == "inject":
            return server._inject_text_into_session(args["session_id"], args["text"], _from_terminal_queue=args["from_terminal_queue"])
        if operation == "resume":
            return server.resume_session_headless(args["session_id"], args["text"])
        return self.engine_host.query({"engine": engine, "operation": operation, "args": args})

    def waiting(self) -> list[str]:
        """The texts in the worker's hand-off directory, oldest first."""
        paths = sorted(self.worker.server.PENDING_INPUT_HANDOFF_DIR.glob("*.json"))
        return [json.loads(path.read_text())["text"] for path in paths]


@pytest.fixture
def pair(home: Home, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """CCC with its control plane on."""
    return Pair(home, monkeypatch)


@pytest.mark.case("C87")
def test_the_dashboard_owns_nothing_of_the_worker_s(pair: Pair) -> None:
    """What the worker spawned is seen by the dashboard's plugins, not owned there, and never released there."""
    session_id, row = pair.worker.spawn()
    seen = pair.dashboard.attachment.host.headless_for(session_id)
    owned = pair.worker.attachment.host.headless_for(session_id)
    assert seen is not None
    assert owned is not None
    assert (seen.pid, seen.start_time, seen.owned) == (owned.pid, owned.start_time, False)
    assert owned.owned
    pair.dashboard.attachment.host.released(seen)
    assert row["fifo"] is not None
    assert pair.worker.attachment.host.headless_for(session_id) == owned


@pytest.mark.case("C87")
def test_the_worker_s_plugins_judge_what_the_dashboard_sends(pair: Pair) -> None:
    """A text that comes by way of the dashboard is asked about in the worker alone, for the stale process and for the fresh one."""
    session_id, row = pair.worker.spawn()
    pair.worker.plugin.retire(catch_up="lacked")
    answer = pair.dashboard.server._inject_text_into_session(session_id, "second")
    assert answer["ok"]
    assert answer["pid"] != row["pid"]
    assert pair.worker.heard(session_id, "second") == ["lacked", "second"]
    assert [(one.text, one.headless.pid) for one in pair.worker.plugin.asked] == [("second", row["pid"]), ("second", answer["pid"])]
    assert pair.dashboard.plugin.asked == []


@pytest.mark.case("C75", "C87")
def test_a_text_held_in_the_worker_is_handed_over_durably(pair: Pair) -> None:
    """It goes through CCC's hand-off directory, not into the worker's memory, from which CCC would write it out again and again."""
    session_id, _ = pair.worker.spawn()
    pair.worker.plugin.hold("a turn")
    answer = pair.dashboard.server._inject_text_into_session(session_id, "second")
    assert (answer["ok"], answer["queued"], answer["queued_reason"]) == (True, True, "stale and busy; waits for: a turn")
    assert pair.waiting() == ["second"]
    assert pair.worker.server._pending_terminal_input_queue == {}


@pytest.mark.case("C75", "C87")
def test_nothing_overtakes_what_was_handed_over(pair: Pair) -> None:
    """Also when the hold has ended, until the dashboard has delivered it, later texts are handed over behind it."""
    session_id, _ = pair.worker.spawn()
    pair.worker.plugin.hold("a turn")
    pair.dashboard.server._inject_text_into_session(session_id, "second")
    pair.worker.plugin.answer = lambda host, injection: None
    pair.as_worker()
    pair.worker.tick()
    pair.as_dashboard()
    pair.dashboard.server._inject_text_into_session(session_id, "third")
    pair.dashboard.server.resume_session_headless(session_id, "fourth")
    assert pair.waiting() == ["second", "third", "fourth"]
    assert pair.worker.texts(session_id) == [["first"]]


@pytest.mark.case("C75")
def test_the_dashboard_keeps_the_queue_of_a_session_that_the_worker_retired(pair: Pair) -> None:
    """The dashboard would drop texts for a session without a process; what is owed is on disk, where both see it."""
    session_id, _ = pair.worker.spawn()
    pair.worker.plugin.hold("a turn")
    pair.dashboard.server._inject_text_into_session(session_id, "second")
    pair.worker.plugin.retire()
    pair.as_worker()
    pair.worker.tick()
    pair.as_dashboard()
    assert pair.dashboard.server._archive_session_is_live(session_id)
    assert not pair.dashboard.server._archive_session_is_live("0b66f575-6a40-4785-b5a5-0581958b7040")


@pytest.mark.case("C87")
def test_a_terminal_is_announced_where_the_headless_is_owned(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dashboard opens the terminal; the worker's plugins are told before, and the dashboard's are not."""
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    session_id, row = pair.worker.spawn()
    assert pair.dashboard.server.launch_terminal_for_session(session_id, "/tmp")["ok"]
    (launch,) = pair.worker.plugin.launches
    assert launch.headless is not None
    assert (launch.session_id, launch.headless.pid, str(launch.cwd)) == (session_id, row["pid"], "/tmp")
    assert pair.dashboard.plugin.launches == []
    assert pair.dashboard.server.terminals == [session_id]


@pytest.mark.case("C75", "C87")
def test_the_dashboard_s_queue_does_not_wait_for_a_deferral_in_the_worker(pair: Pair) -> None:
    """It asks the worker, which waits with a text for its turn and for what is held, and not for what only must not be ended."""
    session_id, row = pair.worker.spawn()
    wait_for(lambda: not pair.dashboard.server._terminal_queue_waits_for_headless_turn(session_id, {}))
    headless = pair.worker.attachment.host.headless_for(session_id)
    assert headless is not None
    facts = Facts(attribution="stale", attribution_reason="a terminal wrote", idleness="busy")
    emit(retirement_deferred, "m", Deferral(headless=headless, mechanism="m", reason="busy", facts=facts, since=1.0))
    assert pair.worker.server._headless_turn_in_progress(row)
    assert not pair.dashboard.server._terminal_queue_waits_for_headless_turn(session_id, {})
    pair.worker.plugin.hold("a turn")
    pair.dashboard.server._inject_text_into_session(session_id, "second")
    assert pair.dashboard.server._terminal_queue_waits_for_headless_turn(session_id, {})


def test_a_worker_without_the_plugins_is_named(pair: Pair, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A worker that was started before the plugins does not know the question; the terminal opens, and the log says what to do."""
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    pair.dashboard.server.worker = lambda engine, operation, args: {"ok": False, "error": "unsupported worker engine operation"}
    session_id, _ = pair.worker.spawn()
    assert pair.dashboard.server.launch_terminal_for_session(session_id)["ok"]
    assert "restart it" in caplog.text


def test_the_worker_s_other_questions_are_its_own(pair: Pair) -> None:
    """Only our question is answered by us."""
    with pytest.raises(ValueError, match="unsupported worker engine operation"):
        pair.engine_host.query({"engine": "claude", "operation": "other", "args": {}})


@pytest.mark.parametrize("system", ["Darwin", "Linux"])
def test_a_terminal_is_announced_only_where_ccc_opens_one(ccc: Ccc, monkeypatch: pytest.MonkeyPatch, system: str) -> None:
    """CCC opens terminals on macOS alone; elsewhere nothing is retired for one that does not come."""
    monkeypatch.setattr("platform.system", lambda: system)
    session_id, row = ccc.spawn()
    ccc.server.launch_terminal_for_session(session_id)
    assert [one.headless.pid for one in ccc.plugin.launches if one.headless] == ([row["pid"]] if system == "Darwin" else [])
    assert ccc.server.terminals == [session_id]


def test_a_terminal_on_a_session_without_a_headless_is_announced(ccc: Ccc, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugins learn of it also when CCC has no process on the session."""
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    ccc.server.launch_terminal_for_session("0b66f575-6a40-4785-b5a5-0581958b7040")
    ccc.server.launch_terminal_for_session("session_of_another_engine")
    assert [(one.session_id, one.headless) for one in ccc.plugin.launches] == [("0b66f575-6a40-4785-b5a5-0581958b7040", None)]
