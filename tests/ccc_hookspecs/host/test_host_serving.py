"""`ccc-host serve`: it ticks, delivers what is kept, and stops cleanly."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from typing import Any

import pytest

from ccc_hookspecs.host.serving import serve
from ccc_hookspecs.outcomes import HeldInjection, Kept
from ccc_hookspecs.signals import emit, headless_kept, injection_held
from ccc_hookspecs.testing.harness import wait_until
from ccc_hookspecs.values import Hold
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
    stop = threading.Event()
    thread = threading.Thread(target=serve, args=(host, 5.0, stop, seen.append))
    receivers = len(headless_kept.receivers)
    thread.start()
    wait_until(lambda: len(headless_kept.receivers) > receivers, "it listens")
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
    stop = threading.Event()
    thread = threading.Thread(target=serve, args=(host, 5.0, stop, lambda event: None))
    thread.start()
    wait_until(lambda: plugin.ticks, "a tick")
    stop.wait(1.0)
    stop.set()
    thread.join(60)
    assert len(plugin.asked) - before == len(plugin.ticks)
