"""What plugins decide about a text, and what becomes of it then."""

from __future__ import annotations

import pytest

from ccc_hookspecs import Decision, Deliver, Hold, Injection, Respawn
from ccc_hookspecs.specs import Host
from ccc_hookspecs.testing.recording import CapturedSignals
from tests.ccc_hookspecs.host.world import Answering, World, end_process


def retire(ccc: Host, injection: Injection) -> Decision:
    """End the headless as a retiring plugin does, and ask for a fresh one."""
    end_process(injection.headless.pid)
    ccc.released(injection.headless)
    return Respawn(reason="stale")


LACKING = Deliver(catch_up="what was said elsewhere")


def test_a_held_text_waits_and_what_comes_after_it_waits_behind(world: World, captured_signals: CapturedSignals) -> None:
    """A hold keeps the order, is asked about again, is announced once, and says since when."""
    hold = Hold(reason="busy", signs=("turn open",), cost="the turn")
    plugin = Answering(None, hold, hold, hold)
    host = world.host(plugin)
    session = world.session(host, "first")
    held = host.send(session.session_id, "second")
    behind = host.send(session.session_id, "third")
    assert (held.state, behind.state) == ("held", "queued")
    assert held.hold == hold
    since = world.now(host, held).held_since
    assert since is not None
    world.answered(host, world.until(host, behind))
    assert world.prompts(session)[1:] == [held.message_id, behind.message_id]
    announced = captured_signals.of("injection_held")
    assert [(event.message_id, event.hold, event.since) for event in announced] == [(held.message_id, hold, since)]


def test_the_fresh_process_is_asked_about_and_its_text_comes_with_the_lacking_turns(
    world: World, captured_signals: CapturedSignals
) -> None:
    """It resumes the session and gets the catch-up as a first block of the same message."""
    plugin = Answering(None, retire, LACKING)
    host = world.host(plugin)
    session = world.session(host, "first")
    before = world.headless(host, session)
    message = world.answered(host, host.send(session.session_id, "second"))
    after = world.headless(host, session)
    assert after.pid != before.pid
    assert after.resumed is True
    assert [one.headless.pid for one in plugin.asked] == [before.pid, before.pid, after.pid]
    assert world.memory(host, session) == ["first", "what was said elsewhere", "second"]
    record = next(r for r in world.home.records(session.session_id) if r.get("uuid") == message.message_id)
    assert [block["text"] for block in record["message"]["content"]] == ["what was said elsewhere", "second"]
    (event,) = captured_signals.of("headless_respawned")
    assert (event.retired.pid, event.headless.pid, event.message_id) == (before.pid, after.pid, message.message_id)


@pytest.mark.parametrize(("release", "blocks"), [("2.0.42", 1), ("2.1.6", 1), ("2.1.61", 2)])
def test_a_release_that_takes_blocks_apart_gets_one(world: World, release: str, blocks: int) -> None:
    """2.0.42 and 2.1.6 copy what follows a message of two blocks, under new ids, at the next resume; so theirs is one block."""
    world.simulator.release = release
    host = world.host(Answering(None, retire, LACKING))
    session = host.begin(world.home.project)
    world.until(host, host.send(session.session_id, "first"))
    message = world.until(host, host.send(session.session_id, "second"))
    record = next(r for r in world.home.records(session.session_id) if r.get("uuid") == message.message_id)
    texts = [block["text"] for block in record["message"]["content"]]
    assert len(texts) == blocks
    assert "\n\n".join(texts) == "what was said elsewhere\n\nsecond"


def test_a_fresh_process_is_asked_about_before_its_first_byte_and_may_get_the_lacking_turns(world: World) -> None:
    """When the headless was ended for another reason, the plugin is asked about the fresh one and may deliver with a catch-up."""
    plugin = Answering(None, LACKING)
    host = world.host(plugin)
    session = world.session(host, "first")
    end_process(world.headless(host, session).pid)
    world.answered(host, host.send(session.session_id, "second"))
    fresh = plugin.asked[-1].headless
    assert (fresh.pid, fresh.sent, fresh.resumed) == (world.headless(host, session).pid, (), True)
    assert world.memory(host, session) == ["first", "what was said elsewhere", "second"]


def test_two_writers_are_never_started(world: World) -> None:
    """A plugin that asks for a fresh process while the old one lives is not obeyed: the text waits."""
    host = world.host(Answering(None, Respawn(reason="wrong")))
    session = world.session(host, "first")
    pid = world.headless(host, session).pid
    held = host.send(session.session_id, "second")
    assert held.state == "held"
    world.answered(host, held)
    assert world.headless(host, session).pid == pid


@pytest.mark.case("C94")
def test_a_plugin_that_raises_stops_no_message(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """The text is delivered once all the same."""

    def fail(ccc: Host, injection: Injection) -> Decision:
        raise OSError("disk")

    host = world.host(Answering(None, fail))
    session = world.session(host, "first", "second")
    assert world.memory(host, session) == ["first", "second"]
    assert len(world.prompts(session)) == 2
