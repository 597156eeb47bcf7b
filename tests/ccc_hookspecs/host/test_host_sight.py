"""A pid means something in one pid namespace and until the next boot: whoever cannot see a headless never takes it for gone."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from ccc_hookspecs.host.host import EmbeddedHost
from ccc_hookspecs.host.records import Head, Session
from ccc_hookspecs.host.sight import boot_id, pid_namespace, presence_of
from ccc_hookspecs.host.terminals import Terminal
from ccc_hookspecs.processes import start_time
from tests.ccc_hookspecs.host.world import CCC_HOST, Answering, World, end_process

CONTAINER = ["unshare", "--pid", "--fork", "--mount-proc"]


def containers() -> bool:
    try:
        return subprocess.run([*CONTAINER, "true"], capture_output=True).returncode == 0
    except OSError:
        return False


def head_of(host: EmbeddedHost, session: Session) -> Head:
    head = host.store.heads.live(session.session_id)
    assert head is not None
    return head


def elsewhere(host: EmbeddedHost, session: Session, *, pid: int | None = None, boot: str | None = None) -> Head:
    """The session's head, as if it had been started in another pid namespace, or with another pid, before the machine was booted."""
    with host.store.database.writing() as db:
        if boot is not None:
            db.execute("UPDATE headless SET boot = ?, pid = ?, start_time = ?", (boot, pid, start_time(pid or 0)))
        else:
            db.execute("UPDATE headless SET namespace = 1, pid = coalesce(?, pid)", (pid,))
    return head_of(host, session)


def test_a_head_notes_where_its_pid_counts(world: World) -> None:
    host = world.host()
    head = head_of(host, world.session(host, "first"))
    assert (head.boot, head.namespace) == (boot_id(), pid_namespace())
    assert presence_of(head) == "alive"


@pytest.mark.skipif(pid_namespace() is None, reason="this system has no pid namespaces")
def test_what_is_out_of_sight_is_neither_gone_nor_offered_to_plugins(world: World) -> None:
    """Its pid is nobody's here: its row and FIFO stay, the text is held and says so, and no second process is started."""
    plugin = Answering()
    host = world.host(plugin)
    session = world.session(host, "first")
    pid = head_of(host, session).pid
    asked = len(plugin.asked)
    head = elsewhere(host, session, pid=2**22 - 1)
    host.recover()
    held = host.send(session.session_id, "second")
    assert (presence_of(head), head.fifo.exists(), host.store.heads.all_live()) == ("unknown", True, (head,))
    assert (host.headless_for(session.session_id), host.headless_agents(), len(plugin.asked)) == (None, (), asked)
    assert held.hold is not None
    assert (held.state, "pid namespace" in held.hold.reason, bool(held.hold.cost)) == ("held", True, True)
    host.overrule(held)
    world.answered(host, held)
    assert world.memory(host, session) == ["first", "second"]
    end_process(pid or 0)


@pytest.mark.skipif(pid_namespace() is None, reason="this system has no pid namespaces")
def test_what_is_out_of_sight_is_gone_when_nobody_reads_its_fifo(world: World) -> None:
    """The system knows that across pid namespaces: the session goes on with a fresh process, as after a container has ended."""
    host = world.host()
    session = world.session(host, "first")
    head = elsewhere(host, session)
    end_process(head.pid or 0)
    world.answered(host, host.send(session.session_id, "second"))
    assert (head.fifo.exists(), world.memory(host, session)) == (False, ["first", "second"])


@pytest.mark.skipif(pid_namespace() is None, reason="this system has no pid namespaces")
def test_giving_up_on_what_is_out_of_sight_signals_nobody(world: World) -> None:
    """Its pid is this test's own here, which survives: the row goes, and that is all."""
    host = world.host()
    session = world.session(host, "first")
    pid = head_of(host, session).pid
    head = elsewhere(host, session, pid=os.getpid())
    assert host.agents.end(head, "test") is True
    assert host.store.heads.all_live() == ()
    end_process(pid or 0)


@pytest.mark.skipif(boot_id() is None, reason="this system names no boots")
def test_after_a_reboot_every_process_is_gone(world: World) -> None:
    """Also one whose pid and start another process has by now."""
    host = world.host()
    session = world.session(host, "first")
    before = head_of(host, session)
    end_process(before.pid or 0)
    head = elsewhere(host, session, pid=os.getpid(), boot="another")
    assert presence_of(head) == "gone"
    host.recover()
    assert (host.store.heads.all_live(), head.fifo.exists()) == ((), False)
    host.store.heads.started(head, before.pid or 0, before.start_time)


@pytest.mark.skipif(pid_namespace() is None, reason="this system has no pid namespaces")
def test_a_terminal_out_of_sight_may_still_take_what_was_typed_into_it(world: World) -> None:
    """Its key tells where its pid counts; one that was kept without it counts here."""
    session = world.resumable()
    terminal = Terminal(pid=2**22 - 1, start_time=1.0, namespace=1)
    assert Terminal.of_key(terminal.key) == terminal
    assert terminal.may_be_on(session)
    assert not Terminal.of_key(f"{terminal.pid}/1.0").may_be_on(session)


@pytest.mark.skipif(pid_namespace() is None, reason="this system has no pid namespaces")
def test_a_text_typed_into_a_terminal_out_of_sight_says_how_it_is_given_again(world: World) -> None:
    """The terminal may be gone with its container, which is never known here: the list and each text behind it name `--now`."""
    session = world.resumable()
    host = world.host()
    typed = host.store.outbox.add(session.session_id, "second")
    offset = world.home.transcript(session.session_id).stat().st_size
    typed = host.store.outbox.intend_typed(typed, Terminal(pid=2**22 - 1, start_time=1.0, namespace=1).key, transcript_offset=offset)
    with host.store.database.writing() as db:
        db.execute("UPDATE outbox SET written_at = written_at - 60 WHERE seq = ?", (typed.seq,))
    told = world.run("send", session.session_id, "third", "--no-wait").stderr
    assert all(words in told for words in (typed.message_id, "pid namespace", "`ccc-host send --now`"))
    assert "--now" in world.run("list").stdout
    done = world.run("send", session.session_id, "--now")
    assert (done.returncode, "will be there twice" in done.stderr) == (0, True)
    assert world.memory(host, session) == ["first", "second", "third"]


@pytest.mark.skipif(not containers(), reason="no pid namespace can be made here")
def test_a_send_from_a_container_starts_no_second_process(world: World) -> None:
    """One state directory, two pid namespaces: the headless outside is alive, and the text is held for it."""
    host = world.host()
    session = world.session(host, "first")
    head = head_of(host, session)
    command = [*CONTAINER, *CCC_HOST, "send", session.session_id, "second", "--no-wait", "--json"]
    done = subprocess.run(command, env=world.environ(), cwd=world.home.project, capture_output=True, text=True, timeout=60)
    told = json.loads(done.stdout)
    assert (told["state"], told["hold"]["signs"]) == ("held", [f"process {head.pid}"])
    assert world._heads() == [head.pid]
    (message,) = host.store.outbox.open()
    world.answered(host, message)
    assert world.headless(host, session).pid == head.pid
