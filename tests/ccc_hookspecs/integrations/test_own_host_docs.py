"""The guide to calling the hooks from one's own host: its code runs, loses no text, repeats none and keeps their order."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ccc_hookspecs import Decision, Deliver, Hold, Injection, Respawn
from ccc_hookspecs.errors import NotWritten, SessionLockTimeout
from ccc_hookspecs.outcomes import Deferral, Healed, Kept, Respawned, Retirement, RetirementFailure
from ccc_hookspecs.signals import (
    emit,
    headless_healed,
    headless_kept,
    headless_respawned,
    headless_retired,
    retirement_deferred,
    retirement_failed,
)
from ccc_hookspecs.specs import Host
from tests.ccc_hookspecs.integrations.own_host import FACTS, OTHER, SESSION, Guide, respawn

HISTORY = "3d3f6d6c-6f57-4c53-8a55-6d0b38f1c0a1"


@pytest.fixture
def guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guide]:
    """The guide's host, without the plugins that are installed here."""
    monkeypatch.setenv("CCC_PLUGINS_BLOCK", "retire_stale.use_time,retire_stale.watcher,retire_stale.terminal_launch")
    guide = Guide(tmp_path / "state")
    yield guide
    guide.close()


def test_the_host_of_the_guide_is_one(guide: Guide) -> None:
    """What the guide offers to plugins is the protocol that they are promised."""
    assert isinstance(guide.host, Host)
    headless = guide.names["resume"](SESSION)
    with guide.host.session_lock(SESSION, 0), guide.host.session_lock(SESSION, 0):
        assert guide.host.headless_agents() == (headless,)
    assert issubclass(SessionLockTimeout, TimeoutError)
    assert guide.host.config_dir(headless) == Path.home() / ".claude"


@pytest.mark.case("C75")
def test_the_guide_obeys_each_answer(guide: Guide) -> None:
    """A text goes to its process, waits and is asked about again under the same id, or goes to a fresh process after what that lacks."""
    guide.answer = Deliver(catch_up="lacked")
    guide.send("first")
    guide.answer = Hold(reason="busy")
    guide.send("second")
    assert guide.written == [(101, ["lacked", "first"])]
    guide.answer = lambda host, injection: respawn(host, injection, "lacked too")
    guide.tick()
    assert guide.written[1:] == [(102, ["lacked too", "second"])]
    assert [one.pid for one in guide.forgotten] == [101]
    assert guide.asked[1].message_id == guide.asked[2].message_id == guide.asked[3].message_id
    assert [one.headless.pid for one in guide.asked[2:]] == [101, 102]
    assert uuid.UUID(guide.asked[1].message_id)
    guide.answer = None
    guide.send("third")
    assert guide.written[2:] == [(102, ["third"])]


@pytest.mark.case("C75")
def test_the_guide_writes_a_held_text_once(guide: Guide) -> None:
    """What was written leaves the queue, however many ticks there are."""
    guide.answer = Hold(reason="busy")
    guide.send("first")
    guide.tick()
    guide.answer = None
    for _ in range(3):
        guide.tick()
    assert (guide.texts, guide.waiting()) == (["first"], [])


@pytest.mark.case("C75")
@pytest.mark.parametrize("step", ["resume", "put"])
def test_the_guide_loses_no_text_when_a_step_fails(guide: Guide, step: str, caplog: pytest.LogCaptureFixture) -> None:
    """It stays in the queue, the plugins get their ticks, and it is written when the step succeeds."""
    guide.send("first")
    guide.answer = lambda host, injection: respawn(host, injection, "lacked")
    guide.broken.add(step)
    guide.send("second")
    guide.tick()
    assert (guide.waiting(), guide.ticks) == (["second"], 1)
    assert SESSION in caplog.text
    guide.broken.clear()
    guide.tick()
    assert guide.written[1:] == [(guide.pid, ["lacked", "second"])]
    assert guide.waiting() == []


@contextmanager
def locked(guide: Guide, session_id: str) -> Iterator[None]:
    """The session's lock is in another thread's hands."""
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with guide.host.session_lock(session_id, 5):
            taken.set()
            done.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait(20)
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.case("C89")
def test_in_the_guide_one_locked_session_stops_no_other(guide: Guide) -> None:
    """The plugins get their tick and the other session its text, without a wait for the lock."""
    guide.answer = Hold(reason="busy")
    guide.send("first")
    guide.send("first of the other", OTHER)
    guide.answer = None
    with locked(guide, SESSION):
        guide.tick()
        assert (guide.ticks, guide.texts, guide.waiting()) == (1, ["first of the other"], ["first"])
    guide.tick()
    assert guide.texts == ["first of the other", "first"]


@pytest.mark.case("C75")
def test_in_the_guide_nothing_overtakes_a_held_text(guide: Guide) -> None:
    """A new text goes behind it, and both go in order when the hold ends."""
    guide.answer = lambda host, injection: Hold(reason="busy") if injection.text == "first" else None
    guide.send("first")
    guide.send("second")
    assert (guide.texts, guide.waiting()) == ([], ["first", "second"])
    guide.answer = None
    guide.tick()
    assert guide.texts == ["first", "second"]


def test_in_the_guide_a_plugin_tells_a_headless_what_was_said_elsewhere(guide: Guide) -> None:
    """Before the text that it was asked about; each line is one input of its kind, and a line that did not go in is none."""
    guide.send("first")
    refused: list[NotWritten] = []

    def feed(host: Host, injection: Injection) -> None:
        told = guide.names["line"](HISTORY, "from elsewhere").replace(b'"uuid"', b'"shouldQuery": false, "uuid"')
        for broken in (True, False, False):
            guide.broken = {"put"} if broken else set()
            try:
                host.write(injection.headless, told)
            except NotWritten as error:
                refused.append(error)
                assert host.headless_for(SESSION) == injection.headless

    guide.answer = feed
    guide.send("second")
    assert [(error.session_id, error.reason) for error in refused] == [(SESSION, "no reader")]
    assert guide.texts == ["first", "from elsewhere", "from elsewhere", "second"]
    assert [one.history for one in guide.host.rows[SESSION].sent] == [False, True, False]
    assert guide.host.rows[SESSION].sent[1].message_id == HISTORY
    gone = replace(guide.host.rows[SESSION], start_time=1.0)
    with pytest.raises(NotWritten, match="is gone"):
        guide.host.write(gone, b"{}\n")


@pytest.mark.case("C59")
def test_in_the_guide_a_process_is_released_whatever_was_noted_since(guide: Guide) -> None:
    """A value from before the last input names the same process; one of another process with its pid does not."""
    before = guide.names["resume"](SESSION)
    guide.send("first")
    assert guide.host.rows[SESSION] != before
    guide.host.released(replace(before, start_time=1.0))
    assert SESSION in guide.host.rows
    guide.host.released(before)
    assert guide.host.rows == {}
    guide.host.released(before)
    assert len(guide.forgotten) == 1


@pytest.mark.case("C75")
def test_in_the_guide_a_process_that_takes_nothing_may_be_ended(guide: Guide) -> None:
    """A text is queued for it, and no plugin holds that: the host ends it, and the next process gets the text."""
    guide.send("first")
    guide.broken.add("put")
    guide.send("second")
    headless = guide.host.rows[SESSION]
    assert (guide.waiting(), guide.names["may_end"](headless)) == (["second"], True)
    guide.host.released(headless)
    guide.broken.clear()
    guide.tick()
    assert guide.written[1:] == [(102, ["second"])]


@pytest.mark.case("C75")
def test_in_the_guide_a_process_that_ended_by_itself_has_a_successor(guide: Guide) -> None:
    """Its row and FIFO go, and the text that it did not take is written to a fresh process."""
    guide.send("first")
    guide.broken.add("put")
    guide.send("second")
    guide.gone.add(101)
    assert guide.host.headless_agents() == ()
    assert [one.pid for one in guide.forgotten] == [101]
    guide.broken.clear()
    guide.tick()
    assert guide.written[1:] == [(102, ["second"])]


def test_the_guide_says_who_took_over(guide: Guide) -> None:
    """In the name of the mechanism that retired the process, and in the host's own when none did."""
    heard: list[tuple[str, Respawned]] = []

    def receive(mechanism: str, event: Respawned) -> None:
        heard.append((mechanism, event))

    with headless_respawned.connected_to(receive):
        guide.send("first")
        guide.answer = respawn
        guide.send("second")

        def found_gone(host: Host, injection: Injection) -> Decision:
            host.released(injection.headless)
            return Respawn(reason="it had exited")

        guide.answer = found_gone
        guide.send("third")
    (first, event), (second, _) = heard
    assert (first, second) == ("m", "my-host")
    assert (event.retired.pid, event.headless.pid, event.reason) == (101, 102, "stale")
    assert event.message_id == guide.asked[1].message_id


def test_the_queue_of_the_guide_survives(guide: Guide, tmp_path: Path) -> None:
    """What waits is found again by a host that starts anew, also a text that cannot be stored as it is."""
    guide.answer = Hold(reason="busy")
    guide.send("half \ud83d of it")
    again = Guide(tmp_path / "state")
    again.tick()
    assert again.written == [(101, ["half \ufffd of it"])]


def test_the_guide_announces_a_terminal(guide: Guide, tmp_path: Path) -> None:
    """The plugins know of it before it starts."""
    guide.names["open_terminal"](SESSION, tmp_path)
    assert [one.session_id for one in guide.launches] == [SESSION]
    assert guide.written == [(0, [f"terminal {SESSION}"])]


@pytest.mark.case("C84")
@pytest.mark.parametrize("over", ["kept", "healed", "retired", "failed"])
def test_in_the_guide_a_deferred_process_is_not_ended(guide: Guide, over: str) -> None:
    """Until the very mechanism that waits for it says that it does no more; and not while a text is held for it."""
    guide.send("first")
    headless, may_end = guide.host.rows[SESSION], guide.names["may_end"]
    assert may_end(headless)
    for mechanism in ("m", "another"):
        emit(retirement_deferred, mechanism, Deferral(headless=headless, mechanism=mechanism, reason="busy", facts=FACTS, since=1.0))
    for mechanism in ("m", "another"):
        assert not may_end(headless)
        if over == "kept":
            emit(headless_kept, mechanism, Kept(headless=headless, mechanism=mechanism, reason="the terminal has closed"))
        elif over == "healed":
            healed = Healed(headless=headless, mechanism=mechanism, reason="x", facts=FACTS, turns=(), records=1, seconds=0.1)
            emit(headless_healed, mechanism, healed)
        elif over == "failed":
            failure = RetirementFailure(headless=headless, mechanism=mechanism, reason="did not exit", rung="kill")
            emit(retirement_failed, mechanism, failure)
        else:
            retired = Retirement(headless=headless, mechanism=mechanism, reason="x", facts=FACTS, rung="released", seconds=0.1)
            emit(headless_retired, mechanism, retired)
    assert may_end(headless)
    guide.answer = Hold(reason="busy")
    guide.send("second")
    assert not may_end(guide.host.rows[SESSION])
    assert may_end(replace(guide.host.rows[SESSION], start_time=1.0))
    guide.answer = None
    guide.tick()
    assert may_end(guide.host.rows[SESSION])
