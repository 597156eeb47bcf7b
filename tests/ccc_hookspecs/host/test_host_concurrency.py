"""Several hosts on one state directory at once."""

from __future__ import annotations

import gc
import json
import os
import signal
import threading

import pytest

from ccc_hookspecs import Decision, Injection, Respawn
from ccc_hookspecs.errors import SessionLockTimeout
from ccc_hookspecs.host.proof import Watch
from ccc_hookspecs.host.records import Message
from ccc_hookspecs.specs import Host
from ccc_hookspecs.testing.harness import wait_until
from ccc_hookspecs.values import Tick
from tests.ccc_hookspecs.host.world import Answering, World, end_process, in_threads


def test_texts_of_many_hosts_keep_their_order(world: World) -> None:
    """Each of three hosts sends five texts: all arrive once, in the order in which they were kept, to one process."""
    first = world.host()
    session = world.session(first, "first")
    hosts = [world.host() for _ in range(3)]
    sent: list[Message] = []
    in_threads(*(lambda host=host: sent.extend(host.send(session.session_id, f"text {n}") for n in range(5)) for host in hosts))
    for message in sent:
        world.until(first, message)
    assert world.prompts(session)[1:] == [message.message_id for message in sorted(sent, key=lambda message: message.seq)]
    assert len(first.store.journal.entries(what="spawned")) == 1


def test_commands_of_many_processes_keep_every_text(world: World) -> None:
    """Six `ccc-host send` at once on a session without a process: one process is started, every text is there once."""
    host = world.host()
    session = world.session(host, "first")
    end_process(world.headless(host, session).pid)
    commands = [world.popen("--json", "send", session.session_id, f"text {number}") for number in range(6)]
    printed = [json.loads(command.communicate(timeout=60)[0]) for command in commands]
    assert [one["ending"] for one in printed] == ["answered"] * 6
    assert sorted(world.prompts(session)[1:]) == sorted(one["message_id"] for one in printed)
    assert len(host.store.journal.entries(what="spawned")) == 2


@pytest.mark.case("C89")
def test_one_host_retires_while_another_delivers(world: World) -> None:
    """The session's lock lets one act at a time: whatever the order, each text is there once and one process is left."""

    def retire(ccc: Host, injection: Injection) -> Decision:
        end_process(injection.headless.pid)
        ccc.released(injection.headless)
        return Respawn(reason="stale")

    plain, retiring = world.host(), world.host(Answering(*[retire] * 4))
    session = world.session(plain, "first")
    sent: list[Message] = []
    in_threads(*(lambda host=host: sent.extend(host.send(session.session_id, f"text {n}") for n in range(4)) for host in (plain, retiring)))
    for message in sent:
        world.until(plain, message)
    assert world.prompts(session)[1:] == [message.message_id for message in sorted(sent, key=lambda message: message.seq)]
    assert len(plain.headless_agents()) == 1


def test_a_session_that_another_host_is_at_is_left_to_it(world: World) -> None:
    """A text is kept at once; nothing is written until the lock is free."""
    host, other = world.host(), world.host()
    session = world.session(host, "first")
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with other.session_lock(session.session_id, 5):
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    message = host.store.outbox.add(session.session_id, "second")
    assert host.drive(session.session_id, lock_seconds=0.05) is False
    assert world.now(host, message).state == "queued"
    with pytest.raises(SessionLockTimeout), host.session_lock(session.session_id, 0):
        pytest.fail("two hold it")
    done.set()
    thread.join()
    world.until(host, message)


def test_two_serving_hosts_deliver_once(world: World) -> None:
    """Both see the text; one writes it."""
    host = world.host()
    session = world.session(host, "first")
    serving = [world.popen("serve", "--json") for _ in range(2)]
    for command in serving:
        assert command.stdout is not None
        assert json.loads(command.stdout.readline())["what"] == "serving"
    message = host.store.outbox.add(session.session_id, "second")
    wait_until(lambda: world.now(host, message).state == "delivered", "delivered by one of them")
    for command in serving:
        command.terminate()
        assert command.wait(60) == 0
    assert world.prompts(session)[1:] == [message.message_id]


def test_what_another_process_settled_is_not_remembered(world: World) -> None:
    """A serving host looked after a message that another one saw delivered: with the next tick nothing of it is left in memory."""
    serving, other = world.host(), world.host()
    session = world.session(other, "first")
    os.kill(world.headless(other, session).pid, signal.SIGSTOP)
    message = other.send(session.session_id, "second")
    serving.drive(session.session_id)
    words = [referrer for referrer in gc.get_objects() if isinstance(referrer, Watch)]
    assert [watch.message.message_id for watch in words if watch.message.text == "second"] == [message.message_id] * 2
    del words
    os.kill(world.headless(other, session).pid, signal.SIGCONT)
    world.until(other, message)
    serving.tick(Tick(number=1, monotonic=1.0, interval=5.0))
    gc.collect()
    assert not [watch for watch in gc.get_objects() if isinstance(watch, Watch) and watch.message.message_id == message.message_id]
