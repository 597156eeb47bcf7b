"""Idle only on proof: every sign of work, every gap, and that none of them is outweighed."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccc_plugins.retire_stale.judgement.alarms import Alarm
from ccc_plugins.retire_stale.judgement.background import Background
from ccc_plugins.retire_stale.judgement.idleness import IdlenessFacts, UnacknowledgedInput, judge_idleness, sign_kind
from ccc_plugins.retire_stale.judgement.stream import Stream

NOW = 1_000_000.0


def ended(**changes: Any) -> Stream:
    return replace(Stream(begun=True, ended=True), **changes)


IDLE = IdlenessFacts(
    now=NOW,
    log="readable",
    stream=ended(),
    unacknowledged=(),
    asked=True,
    unread=0,
    tools=(),
    children=0,
    registry_status="idle",
    registered=True,
    computing=False,
    quiet=60.0,
)
OWED = UnacknowledgedInput(message_id="1f3a0000-0000-0000-0000-000000000000", age=42.0)
WORK: dict[str, tuple[dict[str, Any], str]] = {
    "an input": ({"unacknowledged": (OWED,)}, "input 1f3a unacknowledged for 42 s"),
    "an input of unknown age": ({"unacknowledged": (replace(OWED, age=None),)}, "input 1f3a unacknowledged"),
    "a reported input": ({"stream": ended(commands={OWED.message_id: "started"})}, "input 1f3a started"),
    "the FIFO": ({"unread": 155}, "155 bytes unread in the FIFO"),
    "a turn": ({"stream": ended(turn="a turn began, no result since")}, "turn open: a turn began, no result since"),
    "a state": ({"stream": ended(state="running")}, "session state running"),
    "a start": ({"stream": Stream(begun=True)}, "start-up not finished"),
    "a hook that began": ({"stream": Stream(hooks={"h"})}, "start-up not finished"),
    "a child at the start": ({"stream": Stream(), "children": 1}, "start-up not finished: 1 child processes"),
    "a notice": ({"stream": ended(background=Background(ended={"b1"})), "quiet": 0.1}, "a background task ended, its notice is to come"),
    "a question": ({"stream": ended(requests={"r123": "can_use_tool"})}, "question r123 (can_use_tool) waiting for an answer"),
    "the registry": ({"registry_status": "busy"}, "registry says busy"),
    "a shell in the registry": ({"registry_status": "shell"}, "registry says shell"),
    "a subagent's file": ({"subagents": True}, "a subagent's transcript grows"),
    "CPU": ({"computing": True}, "CPU in use"),
}
LINGERING: dict[str, tuple[dict[str, Any], str]] = {
    "a task": ({"stream": ended(background=Background(open={"b2h8": "local_bash"}))}, "background task b2h8 (local_bash) open"),
    "a tool": ({"tools": ("sleep (77)",)}, "running tool: sleep (77)"),
    "the queue": ({"queued": 2}, "2 inputs enqueued in the transcript and not taken"),
    "a taken input": ({"unanswered": True}, "an input taken, nothing printed since"),
    "a job": ({"stream": ended(alarms={"1671a8c8": Alarm("1671a8c8", "scheduled job", None)})}, "scheduled job 1671a8c8 armed"),
    "a wake-up": ({"stream": ended(alarms={"w": Alarm("w", "wake-up", NOW + 90)})}, "wake-up armed for 90 s more"),
    "a wake-up just due": ({"stream": ended(alarms={"w": Alarm("w", "wake-up", NOW - 60)})}, "wake-up armed for 0 s more"),
}
GAPS: dict[str, dict[str, Any]] = {
    "no log known": {"log": "not known"},
    "the log is gone": {"log": "missing"},
    "the log cannot be read": {"log": "unreadable"},
    "the log was replaced": {"log": "replaced"},
    "the log stands still": {"silent": True},
    "the inputs are not known": {"unacknowledged": None},
    "the FIFO is not known": {"unread": None},
    "the tools are not known": {"tools": None},
    "the children are not known": {"children": None},
    "it never ended a turn": {"stream": Stream()},
}
SIGNS = {**WORK, **LINGERING}


@pytest.mark.case("C64")
def test_idle_is_proven() -> None:
    """A turn that ended, nothing pending, nothing running: idle, with what shows it, however long the process has lived."""
    judged = judge_idleness(IDLE)
    assert judged.verdict == "idle"
    assert judged.signs == ("last turn closed", "FIFO empty", "no tool running", "registry says idle")
    finished = judge_idleness(replace(IDLE, stream=ended(state="idle", finished={"i"})))
    assert finished.signs[0] == "session state idle"
    assert finished.signs[-1] == "every input finished"


@pytest.mark.parametrize(("changes", "sign"), SIGNS.values(), ids=SIGNS)
def test_each_sign_of_work_is_enough(changes: dict[str, Any], sign: str) -> None:
    """It makes the verdict by itself, and is told."""
    judged = judge_idleness(replace(IDLE, **changes))
    assert (judged.verdict, judged.signs) == ("busy", (sign,))


@pytest.mark.case("C65", "C66")
def test_only_what_may_never_end_lingers() -> None:
    """So that a person may overrule it; beside other work it does not count as that."""
    assert all(judge_idleness(replace(IDLE, **changes)).lingering for changes, _ in LINGERING.values())
    assert not any(judge_idleness(replace(IDLE, **changes)).lingering for changes, _ in WORK.values())
    assert not judge_idleness(replace(IDLE, unread=1, tools=("sleep",))).lingering
    assert not judge_idleness(IDLE).lingering


@pytest.mark.parametrize("changes", GAPS.values(), ids=GAPS)
def test_each_gap_in_the_proof_is_enough(changes: dict[str, Any]) -> None:
    """What cannot be known is neither work nor rest."""
    judged = judge_idleness(replace(IDLE, **changes))
    assert judged.verdict == "unknown"
    assert judged.signs


@pytest.mark.parametrize("gap", GAPS.values(), ids=GAPS)
@pytest.mark.parametrize(("work", "sign"), SIGNS.values(), ids=SIGNS)
def test_work_wins_over_what_is_not_known(work: dict[str, Any], sign: str, gap: dict[str, Any]) -> None:
    """Wherever both are told of different things."""
    if work.keys() & gap.keys():
        assert judge_idleness(replace(IDLE, **gap, **{k: v for k, v in work.items() if k not in gap})).verdict != "idle"
        return
    judged = judge_idleness(replace(IDLE, **gap, **work))
    assert judged.verdict == "busy"
    assert sign in judged.signs


@given(st.lists(st.sampled_from(sorted(SIGNS)), unique=True), st.lists(st.sampled_from(sorted(GAPS)), unique=True))
def test_more_signs_of_work_never_make_it_idle(signs: list[str], gaps: list[str]) -> None:
    """However many come together, and whatever is not known beside them."""
    facts = IDLE
    for gap in gaps:
        facts = replace(facts, **GAPS[gap])
        assert judge_idleness(facts).verdict != "idle"
    for name in signs:
        changes, _ = SIGNS[name]
        if "stream" in changes and facts.stream is not IDLE.stream:
            continue
        facts = replace(facts, **changes)
        assert judge_idleness(facts).verdict == "busy"


@given(st.sets(st.sampled_from(["unacknowledged", "unread", "tools", "children"]), min_size=1))
def test_a_fact_that_is_not_known_never_licenses_anything(unknown: set[str]) -> None:
    """With any needed fact missing it is not idle, also when it was never asked anything."""
    missing: dict[str, Any] = dict.fromkeys(unknown)
    assert judge_idleness(replace(IDLE, **missing)).verdict == "unknown"
    started = replace(IDLE, stream=Stream(), asked=False)
    assert judge_idleness(started).verdict == "idle"
    assert judge_idleness(replace(started, **missing)).verdict == "unknown"


@pytest.mark.parametrize(
    "changes",
    [
        {"asked": True},
        {"children": 1},
        {"registered": False},
        {"registered": None},
        {"unread": 3},
        {"stream": Stream(begun=True)},
        {"log": "missing"},
    ],
    ids=["asked", "a child", "not registered", "no registry", "unread", "begun", "no log"],
)
@pytest.mark.case("C61")
def test_a_process_that_was_never_asked_is_idle_only_when_it_is_up(changes: dict[str, Any]) -> None:
    """Past its registration, without a child, and nothing said: ending it then loses nothing. No clock ends a start."""
    started = replace(IDLE, stream=Stream(), asked=False)
    assert judge_idleness(started).verdict == "idle"
    assert judge_idleness(replace(started, **changes)).verdict != "idle"


def test_an_alarm_whose_time_is_long_past_is_no_work() -> None:
    """It began no turn, and will not."""
    assert judge_idleness(replace(IDLE, stream=ended(alarms={"w": Alarm("w", "wake-up", NOW - 121)}))).verdict == "idle"


def test_an_alarm_that_the_machine_slept_over_may_yet_go_off() -> None:
    """In the first minutes after it woke."""
    slept = replace(IDLE, stream=ended(alarms={"w": Alarm("w", "wake-up", NOW - 7200)}))
    assert judge_idleness(replace(slept, woke_at=NOW - 60)).verdict == "busy"
    assert judge_idleness(replace(slept, woke_at=NOW - 121)).verdict == "idle"


def test_a_task_whose_end_the_transcript_tells_is_over() -> None:
    """Of a release whose log does not."""
    facts = replace(IDLE, stream=ended(background=Background(open={"a36a0b8": "agent"})))
    assert judge_idleness(facts).verdict == "busy"
    assert judge_idleness(replace(facts, noticed=frozenset({"a36a0b8"}))).verdict == "idle"
    reported = ended(background=Background(open={"a36a0b8": "local_bash"}, reported=True))
    assert judge_idleness(replace(facts, stream=reported, noticed=frozenset({"a36a0b8"}))).verdict == "busy"


@pytest.mark.case("C29")
def test_a_notice_that_begins_no_turn_is_not_waited_for_for_ever() -> None:
    """Once the log has been still for a while; by a clock that was set, or when it is not known, it is or is not long ago."""
    facts = replace(IDLE, stream=ended(background=Background(ended={"b1"})))
    verdicts = [judge_idleness(replace(facts, quiet=quiet)).verdict for quiet in (0.0, 9.0, 11.0, -5.0, -60.0, None)]
    assert verdicts == ["busy", "busy", "idle", "busy", "idle", "busy"]


def test_an_input_that_is_reported_is_told_once() -> None:
    """As reported, not also as unacknowledged."""
    judged = judge_idleness(replace(IDLE, unacknowledged=(OWED,), stream=ended(commands={OWED.message_id: "queued"})))
    assert judged.signs == ("input 1f3a queued",)


@pytest.mark.parametrize(
    ("sign", "kind"),
    [
        ("input 1f3a unacknowledged for 42 s", "input 1f3a unacknowledged"),
        ("wake-up armed for 90 s more", "wake-up armed"),
        ("155 bytes unread in the FIFO", "bytes unread in the FIFO"),
        ("CPU in use", "CPU in use"),
    ],
)
def test_what_counts_up_or_down_is_not_the_sign(sign: str, kind: str) -> None:
    """Two looks at the same thing compare equal."""
    assert sign_kind(sign) == kind


def test_every_fact_is_looked_at() -> None:
    """Each member of the facts changes some verdict: none is carried along for nothing."""
    touched = {name for changes in (*(c for c, _ in SIGNS.values()), *GAPS.values()) for name in changes}
    assert touched | {"now", "woke_at", "asked", "registered", "noticed"} == {f.name for f in fields(IdlenessFacts)}


def test_a_state_that_stays_behind_a_turn_is_no_turn() -> None:
    """Up to 2.1.168 the state is `running` as long as a background task goes on: that lingers, and keeps no history out."""
    beside = ended(state="running", background=Background(open={"b2h8": "local_bash"}))
    verdict = judge_idleness(replace(IDLE, stream=beside))
    assert (verdict.verdict, verdict.lingering, verdict.between_turns) == ("busy", True, True)
    assert verdict.signs == ("background task b2h8 (local_bash) open",)
    asking = judge_idleness(replace(IDLE, stream=replace(beside, state="requires_action")))
    assert not asking.between_turns


@pytest.mark.parametrize("name", SIGNS)
def test_only_work_beside_the_turns_leaves_room_for_history(name: str) -> None:
    """A sign of a turn, or of one that may have begun, keeps history out, and so does every gap in what is known of one."""
    changes, _ = SIGNS[name]
    between = name in LINGERING and name not in ("the queue", "a taken input")
    assert judge_idleness(replace(IDLE, **changes)).between_turns == between
    assert judge_idleness(IDLE).between_turns
    for gap in GAPS.values():
        assert not judge_idleness(replace(IDLE, **{**changes, **gap})).between_turns


def test_a_process_that_was_given_nothing_runs_no_turn() -> None:
    """Also while it starts up, with children: what is written to it waits until it reads."""
    untouched = replace(IDLE, stream=Stream(), asked=False, children=2, registered=False, registry_status=None)
    assert judge_idleness(untouched).between_turns
    assert not judge_idleness(replace(untouched, unread=10)).between_turns
    assert not judge_idleness(replace(untouched, asked=True)).between_turns
