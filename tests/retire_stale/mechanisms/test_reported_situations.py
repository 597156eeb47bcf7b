"""Situations of public reports, staged whole: real processes, a host, and the mechanism that meets them."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ccc_hookspecs.signals import headless_retired
from ccc_hookspecs.testing.harness import wait_until
from ccc_hookspecs.values import Deliver, Hold, Injection, Respawn, Tick
from ccc_plugins.retire_stale.evidence import surroundings
from ccc_plugins.retire_stale.evidence.processes import ProcessTable, snapshot
from ccc_plugins.retire_stale.mechanisms import terminal_launch, use_time, watcher
from ccc_plugins.retire_stale.plugin import plugin
from tests.retire_stale.mechanisms.conftest import Stage


@pytest.mark.case("C02", "C85")
def test_of_several_processes_on_a_session_only_the_headless_is_signalled(stage: Stage) -> None:
    """Two terminals and a foreign stream-json process share the session with the headless; only the headless ends."""
    terminals = [stage.terminal("one"), stage.terminal("two")]
    foreign = stage.simulator.headless(stage.head.session_id)
    foreign.ask("from another headless")
    stage.tick(times=2)
    assert not stage.head.alive
    assert all(terminal.alive for terminal in terminals)
    assert foreign.alive


@pytest.mark.case("C03", "C06")
def test_an_open_terminal_that_never_wrote_is_no_reason_to_respawn(stage: Stage) -> None:
    """Beside a forgotten terminal the headless goes on being delivered to; only the watcher, where it is on, frees its memory."""
    terminal = stage.terminal()
    for number in range(5):
        assert stage.inject() is None
        stage.head.ask(f"turn {number}")
    assert stage.head.alive
    stage.tick(times=2)
    assert not stage.head.alive
    assert terminal.alive


@pytest.mark.case("C04")
def test_a_survivor_of_an_earlier_host_makes_the_newcomer_stale_and_is_not_ended_with_it(stage: Stage) -> None:
    """Another headless on the session, not in the host's list, takes a turn: the listed one is stale, the other is left alone."""
    survivor = stage.simulator.headless(stage.head.session_id)
    survivor.ask("a turn nobody sent")
    decision = stage.inject()
    assert isinstance(decision, Respawn)
    assert not stage.head.alive
    assert survivor.alive


@pytest.mark.case("C61")
@pytest.mark.parametrize("seconds", ["4"])
def test_a_headless_that_is_still_starting_is_not_ended(stage: Stage, seconds: str) -> None:
    """While a start-up hook runs, neither a launch nor the watcher ends the process; after its first turn they may."""
    starting = stage.simulator.headless(environ={"CCC_SIM_STARTUP": seconds})
    starting.send("first")
    stage.host.adopt(starting)
    stage.head = starting
    stage.launch()
    assert starting.alive
    starting.wait_idle()
    stage.tick(terminal_launch)
    assert not starting.alive


@pytest.mark.case("C63")
def test_a_turn_that_never_ends_holds_the_text_until_a_person_decides(stage: Stage) -> None:
    """A stale headless whose turn has no result is not ended as idle, gets no text, and yields to a person."""
    stage.keep_busy("RUN: sleep 300")
    stage.take_over("from terminal")
    for _ in range(3):
        assert isinstance(stage.inject(), Hold)
    stage.terminal()
    stage.tick(times=3)
    assert stage.head.alive
    assert isinstance(stage.inject(overrule=True), Respawn)


@pytest.mark.case("C64")
def test_an_idle_process_that_lives_for_hours_is_normal(stage: Stage) -> None:
    """A headless that waits after its result is neither ended nor respawned."""
    stage.tick(times=3)
    assert stage.inject() is None
    assert stage.head.alive


@pytest.mark.case("C65", "C66")
def test_a_task_that_never_ends_is_reported_and_not_aged_away(stage: Stage) -> None:
    """A lingering child keeps the headless alive however often it is asked, and the hold says so each time."""
    stage.use(heal="never")
    stage.keep_busy("BG: while true; do sleep 120; done")
    wait_until(lambda: stage.head.events("result"), "the end of the turn")
    stage.head.wait_idle()
    stage.take_over("from terminal")
    holds = [stage.inject() for _ in range(3)]
    assert all(isinstance(hold, Hold) and hold.lingering and hold.signs for hold in holds)
    assert stage.head.alive


@pytest.mark.case("C68")
def test_a_question_that_waits_for_a_person_is_not_lost(stage: Stage) -> None:
    """A headless that asked for a permission is busy until it has its answer, and the answer still reaches it."""
    asking = stage.simulator.headless(arguments=("--permission-prompt-tool", "stdio"))
    asking.send("ASK: echo done")
    question = asking.wait_event("control_request")
    stage.host.adopt(asking)
    stage.head = asking
    stage.launch()
    stage.terminal()
    stage.tick(times=3)
    assert asking.alive
    asking.reply(question, allow=True)
    asking.wait_idle()
    stage.tick(terminal_launch)
    assert not asking.alive


@pytest.mark.case("C76", "C87")
def test_what_the_host_does_not_own_is_not_acted_on(stage: Stage) -> None:
    """A process of a worker or of another tool is neither retired nor respawned, by any mechanism."""
    stage.take_over("from terminal")
    stage.terminal()
    stage.host.adopt(replace(stage.head.headless, owned=False))
    assert stage.inject() is None
    stage.launch()
    stage.tick(times=3)
    assert stage.head.alive
    assert stage.signals.of(headless_retired) == []


@pytest.mark.case("C88")
@pytest.mark.parametrize("noted", [True, False], ids=["size noted at the spawn", "nothing noted"])
def test_a_takeover_while_no_host_ran_is_found_from_disk(stage: Stage, noted: bool) -> None:
    """A new host that finds the process again knows nothing of before, and still sees the terminal's turn."""
    resumed = stage.simulator.headless(stage.head.session_id)
    resumed.ask("second")
    stage.simulator.terminal(stage.head.session_id).ask("from terminal")
    value = replace(resumed.headless, transcript_size=resumed.transcript_size if noted else None, resumed=True if noted else None)
    plugin.use(replace(plugin.settings, lock_seconds=1.5))
    stage.host.adopt(value)
    injection = Injection(session_id=value.session_id, text="next", message_id=str(uuid.uuid4()), headless=value)
    assert isinstance(use_time.pre_inject(stage.host, injection), Respawn)
    assert not resumed.alive


@pytest.mark.case("C90")
def test_one_process_snapshot_serves_a_whole_tick(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve agents and both ticking mechanisms cost one look at the processes a tick, and none starts a program."""
    looks = []

    def counted(previous: ProcessTable | None = None) -> ProcessTable:
        looks.append(previous)
        return snapshot(previous)

    monkeypatch.setattr(surroundings, "snapshot", counted)
    for _ in range(11):
        stage.host.adopt(replace(stage.head.headless, session_id=str(uuid.uuid4())))
    tick = Tick(number=1, monotonic=1.0, interval=5.0)
    watcher.on_tick(stage.host, tick)
    terminal_launch.on_tick(stage.host, tick)
    assert len(looks) == 1


@pytest.mark.case("C45")
def test_a_session_without_a_transcript_yet_is_delivered_to(stage: Stage) -> None:
    """A process that was started and not asked yet has nothing to lack."""
    fresh = stage.simulator.headless()
    stage.host.adopt(fresh)
    stage.head = fresh
    assert stage.inject() is None
    fresh.ask("the first prompt")
    assert stage.inject() is None


@pytest.mark.case("C77")
def test_half_a_surrogate_pair_in_a_turn_stops_nothing(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the verdict nor the log, and what is given has U+FFFD in its place, since the Messages API refuses it."""
    stage.work("SLOW 1")
    path = stage.head.home.transcript(stage.head.session_id)
    before = next(record for record in stage.head.records() if record.get("type") == "assistant")
    ids = [str(uuid.uuid4()) for _ in range(2)]
    common = {"isSidechain": False, "sessionId": stage.head.session_id, "version": before["version"], "entrypoint": "cli"}
    asked = {"role": "user", "content": "half an emoji: \ud83d"}
    answered = {"role": "assistant", "id": "msg_x", "content": [{"type": "text", "text": "\udc00 the other half"}]}
    with path.open("a", encoding="ascii") as file:
        for record in (
            {"type": "user", "uuid": ids[0], "parentUuid": before["uuid"], "message": asked, **common},
            {"type": "assistant", "uuid": ids[1], "parentUuid": ids[0], "message": answered, **common},
        ):
            file.write(json.dumps({**record, "timestamp": datetime.now(UTC).isoformat()}) + "\n")
    stage.head.wait_idle()
    with caplog.at_level("DEBUG"):
        decision = stage.inject()
    assert decision == Deliver()
    stage.head.ask("next")
    assert "half an emoji: \ufffd" in stage.head.memory()
    assert "emoji" not in caplog.text


@pytest.mark.case("C31", "C32")
def test_what_no_writer_should_write_neither_fails_a_hook_nor_makes_stale(stage: Stage) -> None:
    """Runs of NUL, nesting without end, numbers without end and lines that are no records leave the headless fresh."""
    path = stage.head.home.transcript(stage.head.session_id)
    with path.open("ab") as file:
        file.write(b"\0" * 9000 + b"\n" + b"[" * 100_000 + b"\n" + b'{"a":' * 50_000 + b"\n")
        file.write(b'{"type":"user","uuid":7,"message":' + b"9" * 5000 + b"}\n" + b'"text"\n[]\nnull\n\xff\xfe{"type":\n')
    assert stage.inject() is None
    stage.launch()
    assert not stage.head.alive
