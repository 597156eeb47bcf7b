"""A hold ends: by itself when what it waits for is over, and by a person's word when that may never be."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from ccc_hookspecs.testing.harness import ClaudeHome, Simulator, simulated, wait_until
from ccc_hookspecs.testing.simulator import MEASURED
from ccc_hookspecs.values import Deliver, Hold, Injection, Respawn
from ccc_plugins.retire_stale.holds import Holds
from ccc_plugins.retire_stale.mechanisms import terminal_launch, use_time
from ccc_plugins.retire_stale.plugin import plugin
from tests.retire_stale.mechanisms.conftest import Stage


@pytest.fixture
def release(request: pytest.FixtureRequest) -> str:
    return str(getattr(request, "param", MEASURED[-1]))


@pytest.fixture
def simulator(claude_home: ClaudeHome, release: str) -> Iterator[Simulator]:
    with simulated(claude_home, release=release) as running:
        yield running


def held(stage: Stage) -> Hold:
    decision = stage.inject()
    assert isinstance(decision, Hold)
    return decision


@pytest.mark.case("C18")
@pytest.mark.parametrize("release", ["2.1.216", "2.1.332"], indirect=True)
def test_a_headless_that_went_on_to_another_session_makes_way(stage: Stage) -> None:
    """After a `/clear` and a turn the headless serves another session; a text for this one gets a fresh process."""
    stage.head.send("/clear")
    stage.head.wait_idle()
    stage.head.ask("in the other session")
    assert isinstance(stage.inject(), Respawn)
    assert not stage.head.alive


@pytest.mark.case("C18")
@pytest.mark.parametrize("release", ["2.1.216", "2.1.332"], indirect=True)
def test_a_headless_that_is_busy_in_another_session_is_waited_for(stage: Stage) -> None:
    """While it works on the other session the text for this one is held, and it is not ended."""
    stage.head.send("/clear")
    stage.head.wait_idle()
    stage.work("SLOW 1")
    held(stage)
    assert stage.head.alive
    stage.head.wait_idle()
    assert isinstance(stage.inject(), Respawn)


def test_an_answer_that_never_reaches_the_disk_is_held_for_until_a_person_decides(stage: Stage) -> None:
    """Ending the process would lose its last answer: only a person may."""
    stage.use(settle_seconds=0.1)
    stage.head.send("LATE 600")
    stage.head.wait_event("result", count=2)
    stage.take_over("from terminal")
    wait_until(lambda: stage.head.status.read_text().count("false"), "an idle headless")
    hold = held(stage)
    assert hold.signs == ("the transcript does not hold yet what the log shows",)
    assert hold.cost is not None
    assert hold.signs[0] in hold.cost
    assert held(stage).reason == hold.reason
    assert stage.head.alive
    assert isinstance(stage.inject(overrule=True), Respawn)
    assert not stage.head.alive


def test_a_transcript_that_is_gone_is_held_for_until_a_person_decides(stage: Stage) -> None:
    """A headless that went on to another session, and whose own transcript is gone, yields to a person."""
    stage.use(settle_seconds=0.1)
    stage.head.send("/clear")
    stage.head.wait_idle()
    stage.head.home.transcript(stage.head.session_id).unlink()
    assert "its last turn is not on disk" in held(stage).signs
    assert isinstance(stage.inject(overrule=True), Respawn)


@pytest.mark.parametrize("release", ["2.1.61"], indirect=True)
def test_without_a_look_at_the_cpu_an_idle_headless_is_idle(stage: Stage) -> None:
    """`cpu_look_seconds = 0` leaves that sign out, also on a release that has no better one."""
    stage.use(cpu_look_seconds=0.0)
    stage.take_over("from terminal")
    assert isinstance(stage.inject(), Respawn)


def test_an_armed_wake_up_is_held_for_until_a_person_decides(stage: Stage) -> None:
    """A wake-up is work that lingers: the headless lives for it, unless a person wants it ended."""
    stage.use(heal="never")
    stage.head.ask("WAKE: 600")
    stage.take_over("from terminal")
    hold = held(stage)
    assert hold.lingering
    assert any("wake-up" in sign for sign in hold.signs)
    assert stage.head.alive
    assert isinstance(stage.inject(overrule=True), Respawn)


def test_a_subagent_in_the_background_is_waited_for(stage: Stage) -> None:
    """The turn that began a subagent may be over long before the subagent is."""
    stage.use(heal="never")
    stage.head.send("TASK: SLOW 2")
    stage.head.wait_event("result", count=2)
    stage.take_over("from terminal")
    assert any("background task" in sign for sign in held(stage).signs)
    assert stage.head.alive
    wait_until(lambda: isinstance(stage.inject(), Respawn), "the end of the subagent")
    assert not stage.head.alive


def test_an_armed_wake_up_outlives_a_healing(stage: Stage) -> None:
    """By default nobody waits for a wake-up and nobody ends it: the process learns the terminal's turn and stays armed."""
    stage.head.ask("WAKE: 600")
    stage.take_over("from terminal")
    assert stage.inject() == Deliver()
    stage.head.ask("next")
    assert stage.head.memory() == ["first from headless", "WAKE: 600", "from terminal", "next"]
    (sign,) = plugin.flow(stage.host).evidence.judge(stage.host, stage.head.headless).idleness.signs
    assert sign.startswith("wake-up armed")
    assert stage.signals.of("headless_retired") == []


@pytest.mark.case("C66", "C84")
def test_a_background_shell_is_waited_for_and_its_end_noticed(stage: Stage) -> None:
    """A shell that runs on after its turn defers the launch's retirement, and says so; once it ends the headless goes."""
    stage.use(heal="never")
    stage.keep_busy("BG: sleep 2")
    stage.head.wait_event("result", count=2)
    stage.launch()
    (deferral,) = stage.signals.of("retirement_deferred")
    assert any("background task" in sign or "running tool" in sign for sign in deferral.facts.signs)
    stage.take_over("from terminal")
    assert held(stage).lingering

    def ended() -> bool:
        stage.tick(terminal_launch)
        return not stage.head.alive

    wait_until(ended, "the end of the shell")
    (retirement,) = stage.signals.of("headless_retired")
    assert retirement.mechanism == terminal_launch.NAME


@pytest.mark.case("C80")
def test_a_headless_that_ignores_sigterm_is_gone_before_a_fresh_one_is_asked_for(stage: Stage) -> None:
    """Past the grace an idle process that ignores SIGTERM is killed, and `Respawn` comes only then."""
    stage.use(terminate_seconds=0.2)
    stage.head.ask("DEAF")
    stage.take_over("from terminal")
    assert isinstance(stage.inject(), Respawn)
    assert not stage.head.alive
    (retirement,) = stage.signals.of("headless_retired")
    assert retirement.rung == "kill"


def test_what_is_remembered_of_holds_is_bounded(stage: Stage) -> None:
    """However many texts are held, the memory of them stays small, and the ones held last are still known."""
    holds = Holds(remembered=3)
    hold = Hold(reason="busy", signs=("turn open",))
    injections = [
        Injection(session_id=stage.head.session_id, text="x", message_id=str(uuid.uuid4()), headless=stage.head.headless) for _ in range(10)
    ]
    for injection in injections:
        holds.keep(injection, hold, mechanism=use_time.NAME)
    assert len(stage.signals.of("injection_held")) == 10
    for injection in injections[-3:]:
        holds.keep(injection, hold, mechanism=use_time.NAME)
    assert len(stage.signals.of("injection_held")) == 10
