"""`ccc-host serve`: it ticks, delivers what is kept, and stops cleanly."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from typing import Any

import pytest

from ccc_hookspecs.host.errors import StateError
from ccc_hookspecs.host.host import EmbeddedHost
from ccc_hookspecs.host.serving import serve
from ccc_hookspecs.host.stopping import Stop
from ccc_hookspecs.outcomes import HeldInjection, Kept
from ccc_hookspecs.signals import emit, headless_kept, injection_held
from ccc_hookspecs.testing.harness import wait_until
from ccc_hookspecs.values import Hold, Tick
from tests.ccc_hookspecs.host.world import Answering, World, end_process


def ready(command: subprocess.Popen[str]) -> dict[str, Any]:
    assert command.stdout is not None
    line: dict[str, Any] = json.loads(command.stdout.readline())
    return line


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_delivers_what_is_kept_and_stops_when_told(world: World, number: signal.Signals) -> None:
    """The headless it started lives on, and the next command uses it."""
    host = world.host()
    session = world.session(host, "first")
    end_process(world.headless(host, session).pid)
    command = world.popen("serve", "--json")
    assert ready(command)["what"] == "serving"
    message = host.store.outbox.add(session.session_id, "second")
    wait_until(lambda: world.now(host, message).state == "delivered", "delivered")
    command.send_signal(number)
    assert command.wait(60) == 0
    assert world.json("send", session.session_id, "third")["answer"] == 'SEEN ["first", "second", "third"]'
    assert len(host.store.journal.entries(what="spawned")) == 2


def test_it_recovers_at_once_what_another_left(world: World) -> None:
    """What was written to a process that is gone, and what is held, is taken on with the first tick."""
    host = world.host(Answering(None, Hold(reason="busy")))
    session = world.session(host, "first")
    held = host.send(session.session_id, "second")
    assert held.state == "held"
    command = world.popen("serve", "--json")
    ready(command)
    wait_until(lambda: world.now(host, held).state == "delivered", "delivered")
    command.terminate()
    assert command.wait(60) == 0


def test_it_says_what_happens(world: World) -> None:
    """Each signal becomes one plain value; the receivers go with it."""
    host = world.host(Answering())
    session = world.session(host, "first")
    headless = world.headless(host, session)
    seen: list[dict[str, Any]] = []
    stop = Stop()
    thread = threading.Thread(target=serve, args=(host, 5.0, stop, seen.append))
    before = set(headless_kept.receivers)
    thread.start()
    wait_until(lambda: bool(set(headless_kept.receivers) - before), "it listens")
    emit(headless_kept, "test", Kept(headless=headless, mechanism="test", reason="still needed"))
    hold = HeldInjection(
        session_id=session.session_id, message_id=session.session_id, hold=Hold(reason="busy", signs=("a", "b")), since=0.0
    )
    emit(injection_held, "test", hold)
    stop.set()
    thread.join(60)
    assert not thread.is_alive()
    assert [(event["what"], event["by"], event["session_id"], event["reason"], event["signs"]) for event in seen] == [
        ("kept", "test", session.session_id, "still needed", []),
        ("held", "test", session.session_id, "busy", ["a", "b"]),
    ]
    assert seen[0]["pid"] == headless.pid


def test_held_texts_are_asked_about_at_ticks_alone(world: World) -> None:
    """Between two ticks a hold costs nothing."""
    hold = Hold(reason="busy")
    plugin = Answering(None, *[hold] * 50)
    host = world.host(plugin)
    session = world.session(host, "first")
    host.send(session.session_id, "second")
    assert host.active() == set()
    before = len(plugin.asked)
    stop = Stop()
    thread = threading.Thread(target=serve, args=(host, 5.0, stop, lambda event: None))
    thread.start()
    wait_until(lambda: plugin.ticks, "a tick")
    stop.wait(1.0)
    stop.set()
    thread.join(60)
    assert len(plugin.asked) - before == len(plugin.ticks)


def test_a_deleted_log_stops_neither_its_session_nor_another(world: World) -> None:
    """The text is delivered all the same, as the transcript shows."""
    host = world.host()
    sessions = [world.session(host, "first") for _ in range(2)]
    head = host.agents.known(sessions[0].session_id)
    assert head is not None
    head.log.unlink()
    command = world.popen("serve", "--json")
    ready(command)
    messages = [host.store.outbox.add(session.session_id, "second") for session in sessions]
    wait_until(lambda: {world.now(host, message).state for message in messages} == {"delivered"}, "both delivered")
    command.terminate()
    assert command.wait(60) == 0
    assert world.headless(host, sessions[0]).pid == head.pid


class Broken(EmbeddedHost):
    """A host to which something happens in one session, and to its outbox and its heads now and then."""

    session_id = ""
    broken: tuple[str, ...] = ()

    def drive(self, session_id: str, *, lock_seconds: float = 0.0) -> bool:
        if session_id == self.session_id:
            raise OSError("too many open files")
        return super().drive(session_id, lock_seconds=lock_seconds)

    def _once(self, name: str) -> None:
        if name in self.broken:
            self.broken = tuple(other for other in self.broken if other != name)
            raise StateError(self.state_dir, "disk I/O error")

    def active(self) -> set[str]:
        self._once("active")
        return super().active()

    def recover(self) -> None:
        self._once("recover")
        super().recover()


def test_an_error_in_one_session_does_not_reach_the_others(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """A tick goes to the plugins and on to the next session; the log names the session that failed, with where it did."""
    plugin = Answering()
    host = world.host(plugin, kind=Broken)
    bad, good = host.begin(world.home.project), world.session(host, "first")
    host.store.outbox.add(bad.session_id, "first")
    message = host.store.outbox.add(good.session_id, "second")
    assert isinstance(host, Broken)
    host.session_id, host.broken = bad.session_id, ("recover",)
    for number in (1, 2):
        host.tick(Tick(number=number, monotonic=1.0, interval=5.0))
    assert [tick.number for tick in plugin.ticks] == [1, 2]
    assert world.now(host, message).state in ("written", "delivered")
    failed = [record for record in caplog.records if getattr(record, "ccc_session", None) == bad.session_id]
    assert failed
    assert all(record.exc_info for record in failed)


def test_serving_goes_on_after_an_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The outbox could not be looked into once, and one session never: that is told once, and another session's text is delivered."""
    monkeypatch.setattr("ccc_hookspecs.host.serving.SLOWEST_SECONDS", 0.1)
    host = world.host(kind=Broken)
    bad, good = host.begin(world.home.project), world.session(host, "first")
    assert isinstance(host, Broken)
    host.session_id, host.broken = bad.session_id, ("active",)
    stop = Stop()
    told: list[dict[str, Any]] = []
    thread = threading.Thread(target=serve, args=(host, 60.0, stop, told.append))
    thread.start()
    host.store.outbox.add(bad.session_id, "first")
    message = host.store.outbox.add(good.session_id, "second")
    wait_until(lambda: world.now(host, message).state == "delivered" and not host.broken, "delivered")
    stop.set()
    thread.join(60)
    assert not thread.is_alive()
    failed = [(event["what"], event["session_id"], event["reason"]) for event in told]
    assert failed.count(("delivery failed", bad.session_id, "OSError: too many open files")) == 1
    assert [what for what, session_id, _ in failed if session_id is None] == ["looking into the outbox failed"]
