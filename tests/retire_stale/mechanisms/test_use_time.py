"""The use-time mechanism against simulated Claude Code processes."""

from __future__ import annotations

import os
import signal
import uuid
from dataclasses import replace

import pytest

from ccc_hookspecs.outcomes import Veto
from ccc_hookspecs.signals import headless_kept, headless_retired, injection_held, retirement_proposed
from ccc_hookspecs.testing.harness import SimulatedHeadless, wait_until
from ccc_hookspecs.values import Deliver, Hold, Injection, Respawn, SentInput
from ccc_plugins.retire_stale.mechanisms import use_time
from tests.retire_stale.mechanisms.conftest import Stage


def test_with_nobody_else_nothing_changes(stage: Stage) -> None:
    """Ten texts to a lone headless: no answer from the mechanism, no signal, the same process."""
    for number in range(10):
        assert stage.inject() is None
        stage.head.ask(f"text {number}")
    assert stage.signals.names() == []
    assert stage.host.releases == []
    assert stage.head.alive


@pytest.mark.case("C01")
def test_a_stale_idle_headless_is_retired_and_its_session_respawned(stage: Stage) -> None:
    """After a terminal's turn the idle headless is gone, and the fresh process remembers that turn."""
    stage.take_over("from terminal")
    decision = stage.inject()
    assert isinstance(decision, Respawn)
    assert not stage.head.alive
    assert [gone.pid for gone in stage.host.releases] == [stage.head.pid]
    (retirement,) = stage.signals.of(headless_retired)
    assert retirement.facts.attribution == "stale"
    assert retirement.facts.idleness == "idle"
    fresh = stage.resume()
    assert stage.inject() is None
    assert fresh.ask("again") == 'SEEN ["first from headless", "from terminal", "again"]'


def test_a_stale_busy_headless_is_left_alone_and_the_text_held(stage: Stage) -> None:
    """While a stale headless works its text is held; once it is idle it is retired, and the fresh one is given what it lacks."""
    stage.use(heal="never")
    stage.work("SLOW 3")
    stage.take_over("from terminal")
    decision = stage.inject()
    assert isinstance(decision, Hold)
    assert any("turn open" in sign for sign in decision.signs)
    assert decision.cost is not None
    assert not decision.lingering
    assert stage.head.alive
    (held,) = stage.signals.of(injection_held)
    assert held.session_id == stage.head.session_id
    stage.head.wait_idle()
    assert isinstance(stage.inject(), Respawn)
    stage.resume()
    given = stage.inject()
    assert isinstance(given, Deliver)
    # The terminal's branch is what is read now, so the turn that the old process took meanwhile is what it lacks.
    assert given.catch_up is not None
    assert "[user] SLOW 3" in given.catch_up
    assert "from terminal" not in given.catch_up


def forked(stage: Stage, **settings: object) -> SimulatedHeadless:
    """A fresh process whose branch lacks a turn that the retired one took while somebody wrote in a terminal; it cannot be healed."""
    stage.use(heal="never", **settings)
    stage.work("SLOW 2")
    stage.take_over("from terminal")
    stage.head.wait_idle()
    assert isinstance(stage.inject(), Respawn)
    return stage.resume()


@pytest.mark.case("C50")
def test_a_stale_headless_that_died_unreaped_is_replaced(stage: Stage) -> None:
    """A process that exited and that its host has not reaped yet is released, and a fresh one takes the text."""
    stage.take_over("from terminal")
    agent = stage.head.headless
    os.kill(agent.pid, signal.SIGKILL)
    os.waitid(os.P_PID, agent.pid, os.WEXITED | os.WNOWAIT)
    injection = Injection(session_id=agent.session_id, text="next", message_id=str(uuid.uuid4()), headless=agent)
    assert isinstance(use_time.pre_inject(stage.host, injection), Respawn)
    assert [gone.pid for gone in stage.host.releases] == [agent.pid]
    assert stage.signals.of(headless_retired) == []


def test_without_a_journal_a_stale_headless_gets_no_text_and_no_signal(stage: Stage) -> None:
    """Where the intent cannot be recorded nothing is ended, by any mechanism, and the text is held with the reason."""
    (stage.host.state_dir / "retire_stale.sqlite3").mkdir()
    stage.terminal("from terminal")
    decision = stage.inject()
    assert isinstance(decision, Hold)
    assert "the journal cannot be used" in decision.reason
    stage.launch()
    stage.tick(times=3)
    assert stage.head.alive


@pytest.mark.parametrize("unknown", ["sent", "start_time"])
def test_what_a_host_does_not_know_is_no_proof(stage: Stage, unknown: str) -> None:
    """A stale headless whose inputs or identity its host cannot tell gets no text and no signal; unknown inputs a person may overrule."""
    stage.take_over("from terminal")
    agent = replace(stage.head.headless, **{unknown: None})  # type: ignore[arg-type]
    decisions = []
    for overrule in (False, True):
        injection = Injection(session_id=agent.session_id, text="next", message_id=str(uuid.uuid4()), headless=agent, overrule=overrule)
        decisions.append(type(use_time.pre_inject(stage.host, injection)))
    assert decisions == [Hold, Respawn if unknown == "sent" else Hold]
    assert stage.head.alive == (unknown == "start_time")


def test_turns_given_back_once_are_not_given_back_again(stage: Stage) -> None:
    """The marker in the transcript tells of a later process what a catch-up repeated already."""
    first = forked(stage)
    given = stage.inject()
    assert isinstance(given, Deliver)
    assert given.catch_up is not None
    first.ask(f"{given.catch_up}\nand on")
    stage.take_over("from terminal again")
    assert isinstance(stage.inject(), Respawn)
    stage.resume()
    assert stage.inject() is None


def test_a_command_goes_in_as_itself_and_the_lacking_turns_with_the_text_after_it(stage: Stage) -> None:
    """A slash command must come first; what has not been given yet is given next, also by a plugin that started anew."""
    fresh = forked(stage)
    assert stage.inject("/cost") is None
    fresh.send("/cost")
    fresh.wait_idle()
    stage.use(heal="never")
    given = stage.inject()
    assert isinstance(given, Deliver)
    assert given.catch_up is not None
    assert "[user] SLOW 2" in given.catch_up


@pytest.mark.parametrize("beside", ["BG: sleep 300", "SLOW 5"])
def test_a_command_that_goes_on_working_keeps_no_turn_from_the_text_after_it(stage: Stage, beside: str) -> None:
    """Its turn is still open, or left a background task; nothing that was given to the process has yet to come there."""
    fresh = forked(stage)
    assert stage.inject("/deploy") is None
    if beside.startswith("BG"):
        stage.keep_busy(beside)
        wait_until(lambda: fresh.events("result"), "the end of the turn")
    else:
        stage.work(beside)
    (sent,) = fresh.headless.sent or ()
    wait_until(lambda: any(record.get("uuid") == sent.message_id for record in fresh.records()), "its record")
    given = stage.inject()
    assert isinstance(given, Deliver)
    assert given.catch_up is not None


def test_history_that_holds_an_earlier_catch_up_is_none_of_this_process(stage: Stage) -> None:
    """What another process was told is no proof that this one was."""
    first = forked(stage)
    given = stage.inject()
    assert isinstance(given, Deliver)
    first.ask(f"{given.catch_up}\nand on")
    told = next(record["uuid"] for record in first.records() if "and on" in str(record.get("message")))
    stage.work("SLOW 3")
    stage.take_over("again")
    stage.head.wait_idle()
    assert isinstance(stage.inject(), Respawn)
    stage.host.adopt(replace(stage.resume().headless, sent=(SentInput(message_id=told, history=True),)))
    again = stage.inject()
    assert isinstance(again, Deliver)
    assert again.catch_up is not None
    assert "[user] SLOW 3" in again.catch_up


def test_lacking_turns_are_not_given_twice(stage: Stage) -> None:
    """Not while the text that brings them is on its way, and not after it; one that did not go in is given again."""
    fresh = forked(stage)
    first, again = stage.inject(), stage.inject()
    assert isinstance(first, Deliver)
    assert first == again
    assert first.catch_up is not None
    fresh.send(f"{first.catch_up}\nSLOW 2")
    assert stage.inject() is None
    fresh.wait_idle()
    assert stage.inject() is None


def test_turns_that_did_not_fit_are_not_given_later(stage: Stage) -> None:
    """What a text leaves out it says; the next text to the same process is as the person wrote it."""
    fresh = forked(stage, catch_up_limit=0)
    given = stage.inject()
    assert isinstance(given, Deliver)
    assert given.catch_up is not None
    assert "[user]" not in given.catch_up
    fresh.ask(f"{given.catch_up}\nand on")
    assert stage.inject() is None


def test_a_stale_headless_with_lingering_work_yields_to_a_person_only(stage: Stage) -> None:
    """A background task holds the text back, until a person overrules the hold."""
    stage.use(heal="never")
    stage.keep_busy("BG: sleep 300")
    wait_until(lambda: stage.head.events("result"), "the end of the turn")
    stage.head.wait_idle()
    stage.take_over("from terminal")
    hold = stage.inject()
    assert isinstance(hold, Hold)
    assert hold.lingering
    assert stage.head.alive
    assert isinstance(stage.inject(overrule=True), Respawn)
    assert not stage.head.alive


def test_a_veto_keeps_the_process_and_it_still_never_gets_the_text(stage: Stage) -> None:
    """A vetoed stale headless lives on, and its text is held with the veto's reason."""

    def veto(sender: str, event: object) -> Veto:
        return Veto(reason="under a debugger")

    stage.take_over("from terminal")
    with retirement_proposed.connected_to(veto):
        decision = stage.inject()
    assert isinstance(decision, Hold)
    assert "under a debugger" in decision.reason
    assert stage.head.alive
    (kept,) = stage.signals.of(headless_kept)
    assert kept.reason == "vetoed: under a debugger"


def test_shadow_mode_says_what_it_would_do_and_does_nothing(stage: Stage) -> None:
    """In shadow mode a stale headless gets its text and lives; the report says that it would have been retired."""
    stage.use(mode="shadow")
    stage.take_over("from terminal")
    assert stage.inject() is None
    assert stage.head.alive
    (kept,) = stage.signals.of(headless_kept)
    assert kept.would_retire
    assert kept.facts.attribution == "stale"


@pytest.mark.case("C44", "C91")
def test_a_session_whose_transcript_is_gone_keeps_its_only_memory(stage: Stage) -> None:
    """With the transcript deleted the headless is delivered to, not retired: it holds the only copy."""
    stage.head.home.transcript(stage.head.session_id).unlink()
    assert isinstance(stage.inject(), Deliver)
    assert stage.head.alive
    (kept,) = stage.signals.of(headless_kept)
    assert "the transcript is gone" in kept.reason


def test_another_engines_session_is_none_of_its_business(stage: Stage) -> None:
    """A headless of another engine, or of another process of the host, is answered with None."""
    stage.take_over("from terminal")
    headless = stage.head.headless
    for other in (replace(headless, engine="codex"), replace(headless, owned=False)):
        stage.host.adopt(other)
        assert stage.inject() is None
    assert stage.head.alive


def test_the_catch_up_can_be_switched_off(stage: Stage) -> None:
    """With `catch_up = false` the fresh process is started without the turns that its branch lacks."""
    forked(stage, catch_up=False)
    assert stage.inject() is None


def test_a_fresh_process_gets_lacking_turns_also_when_another_mechanism_retired_the_old_one(stage: Stage) -> None:
    """Both wrote at once and the launch retired the headless: the fresh one's first text comes with the turns that its branch lacks."""
    stage.use(heal="never")
    stage.work("SLOW 2")
    stage.take_over("from terminal")
    stage.head.wait_idle()
    stage.launch()
    assert not stage.head.alive
    fresh = stage.resume()
    decision = stage.inject()
    assert isinstance(decision, Deliver)
    assert decision.catch_up is not None
    assert "[user] SLOW 2" in decision.catch_up
    fresh.ask(f"{decision.catch_up}\nand on")
    assert stage.inject() is None
