"""What a headless's stdout says of its work, event by event, as eight releases print it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccc_plugins.retire_stale.judgement.stream import Stream

INIT = {"type": "system", "subtype": "init", "session_id": "s"}
RESULT = {"type": "result", "subtype": "success"}
LAUNCHED = "Async agent launched successfully.\nagentId: a36a0b8 (internal ID)"
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3))
TYPES = ["assistant", "user", "stream_event", "result", "system", "command_lifecycle"]
TYPES += ["control_request", "control_response", "control_cancel_request"]
TOLD = ["background_tasks_changed", "task_started", "task_updated"]
SUBTYPES = ["init", "status", "compact_boundary", "session_state_changed", "hook_started", *TOLD]
OTHERS = ["uuid", "session_id", "task_id", "status", "patch", "state", "command_uuid", "request", "request_id", "response", "timestamp"]
OTHERS += ["user_message_uuids", "user_message_uuid", "scheduled_for", "parent_tool_use_id"]
TOOLS = st.sampled_from(["Bash", "Agent", "TaskStop", "TaskOutput", "ScheduleWakeup", "CronCreate", "CronDelete", "CronList"])
BLOCKS = st.fixed_dictionaries(
    {"type": st.sampled_from(["tool_use", "tool_result", "text"])},
    optional={"id": st.sampled_from(["t1", "t2"]) | JSON, "tool_use_id": st.sampled_from(["t1", "t2"]) | JSON, "name": TOOLS, "input": JSON,
              "content": JSON, "is_error": JSON},
)  # fmt: skip
EVENTS = st.fixed_dictionaries(
    {"type": st.sampled_from(TYPES) | JSON},
    optional={
        "subtype": st.sampled_from(SUBTYPES) | JSON,
        "message": JSON | st.fixed_dictionaries({"content": JSON | st.lists(BLOCKS, max_size=3)}, optional={"id": JSON}),
        "tool_use_result": JSON,
        "tasks": JSON | st.lists(st.fixed_dictionaries({"task_id": JSON, "task_type": JSON}), max_size=2),
        **dict.fromkeys(OTHERS, JSON),
    },
)


def fed(*events: dict[str, Any]) -> Stream:
    stream = Stream()
    for event in events:
        stream.feed(event)
    return stream


def message(kind: str, *blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": kind, "message": {"id": "msg_1", "content": list(blocks)}, "uuid": "e1", **fields}


def used(name: str, call: str = "t1", **given: Any) -> dict[str, Any]:
    return message("assistant", {"type": "tool_use", "id": call, "name": name, "input": given})


def got(text: str = "done", call: str = "t1", *, failed: bool = False) -> dict[str, Any]:
    return message("user", {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": failed})


def task(subtype: str, key: str = "b1", **fields: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": subtype, "task_id": key, **fields}


def listed(*keys: str) -> dict[str, Any]:
    return {
        "type": "system",
        "subtype": "background_tasks_changed",
        "tasks": [{"task_id": key, "task_type": "local_agent"} for key in keys],
    }


@pytest.mark.parametrize(
    "event",
    [
        INIT,
        message("assistant"),
        message("user"),
        {"type": "stream_event", "event": {}},
        {"type": "system", "subtype": "status", "status": "compacting"},
        {"type": "system", "subtype": "session_state_changed", "state": "running"},
        {"type": "system", "subtype": "session_state_changed", "state": "requires_action"},
    ],
    ids=["init", "assistant", "user", "piece", "status", "running", "requires action"],
)
@pytest.mark.case("C60")
def test_a_turn_is_open_from_its_first_event_to_its_result(event: dict[str, Any]) -> None:
    """Whatever a turn begins with, it is open until a result, of whatever kind."""
    assert fed(event).turn is not None
    assert fed(event, RESULT).turn is None
    assert fed(event, {"type": "result", "subtype": "error_during_execution", "is_error": True}).ended


@pytest.mark.parametrize(
    "event",
    [
        {"type": "system", "subtype": "api_retry"},
        {"type": "system", "subtype": "status", "status": None},
        {"type": "rate_limit_event"},
        {"type": "system", "subtype": "hook_response"},
        message("assistant", parent_tool_use_id="t1"),
        message("user", parent_tool_use_id="t1"),
    ],
    ids=["retry", "no status", "rate limit", "hook", "a subagent's answer", "a subagent's input"],
)
@pytest.mark.case("C62")
def test_other_events_neither_open_nor_close_a_turn(event: dict[str, Any]) -> None:
    """Silence and side events leave a turn as it is."""
    assert fed(INIT, event).turn is not None
    assert fed(INIT, RESULT, event).turn is None


def test_what_it_printed_is_its_own() -> None:
    """Both ids of a message, the id of a compaction, and the inputs that events name; not what a subagent said."""
    stream = fed(
        message("assistant"),
        message("assistant", parent_tool_use_id="t1", uuid="sub"),
        {"type": "system", "subtype": "compact_boundary", "uuid": "b"},
        {**RESULT, "user_message_uuids": ["i1", "i2"], "user_message_uuid": "i2"},
        {"type": "command_lifecycle", "command_uuid": "i3", "state": "queued"},
    )
    assert stream.take_ids() == ["e1", "msg_1", "b", "i1", "i2", "i3"]
    assert stream.take_ids() == []
    assert stream.first_ids == ["e1", "msg_1", "b", "i1", "i2", "i3"]
    assert stream.mentioned == {"i1", "i2", "i3"}
    assert (stream.last_answer, stream.compactions) == (("e1", "msg_1"), 1)


def test_an_input_is_finished_by_name() -> None:
    """Whatever its end is called; in any order."""
    begun = [{"type": "command_lifecycle", "command_uuid": i, "state": "queued"} for i in ("i1", "i2")]
    stream = fed(*begun, {"type": "command_lifecycle", "command_uuid": "i2", "state": "completed"})
    assert (stream.commands, stream.finished, stream.lifecycle) == ({"i1": "queued"}, {"i2"}, True)
    stream.feed({"type": "command_lifecycle", "command_uuid": "i1", "state": "cancelled"})
    assert (stream.commands, stream.finished) == ({}, {"i1", "i2"})


def test_sessions_are_noted_in_order_of_change_and_bounded() -> None:
    """The first one is kept however often they change."""
    assert fed(INIT, RESULT, {**INIT, "session_id": "t"}, INIT).session_ids == ["s", "t", "s"]
    flapping = fed(*({**INIT, "session_id": str(n)} for n in range(500)))
    assert len(flapping.session_ids) <= 64
    assert (flapping.session_ids[0], flapping.session_ids[-1]) == ("0", "499")


@pytest.mark.case("C65")
def test_a_background_task_is_open_until_it_is_told_to_have_ended() -> None:
    """By its own event, or by a list without it; the end of the turn that began it changes nothing."""
    begun = [INIT, used("Bash", run_in_background=True), task("task_started", tool_use_id="t1", task_type="local_bash"), got(), RESULT]
    assert fed(*begun).background.open == {"b1": "local_bash"}
    assert fed(*begun, task("task_updated", patch={"status": "completed"})).background.open == {}
    assert fed(*begun, task("task_notification", status="failed")).background.open == {}
    assert fed(*begun, task("task_progress", usage={})).background.open == {"b1": "local_bash"}
    assert fed(*begun, listed()).background.open == {}
    assert fed(*begun, listed("b1", "b2")).background.open == {"b1": "local_agent", "b2": "local_agent"}


@pytest.mark.parametrize(
    "end",
    [[task("task_notification", status="completed")], [task("task_updated", patch={"status": "failed"})], [listed()]],
    ids=["notification", "update", "list"],
)
def test_the_end_of_a_background_task_begins_a_turn(end: list[dict[str, Any]]) -> None:
    """Until that turn has begun, the end is remembered: between the two the process is about to work."""
    begun = [listed("b1"), task("task_started", tool_use_id="t1", is_backgrounded=True), RESULT]
    assert fed(*begun, *end).background.ended == {"b1"}
    assert fed(*begun, *end, INIT).background.ended == set()


def test_a_task_that_was_stopped_or_waited_for_begins_no_turn() -> None:
    """The model knows of either from the result of its call."""
    stopped = [listed("b1"), INIT, used("TaskStop", task_id="b1"), listed(), task("task_updated", patch={"status": "killed"}), got()]
    assert fed(*stopped, RESULT).background.ended == set()
    foreground = [
        INIT,
        used("Bash"),
        task("task_started", tool_use_id="t1", is_backgrounded=False),
        task("task_updated", patch={"status": "completed"}),
    ]
    assert fed(*foreground).background.ended == {"b1"}
    assert fed(*foreground, got(), RESULT).background.ended == set()


def test_a_command_that_is_moved_to_the_background_goes_on() -> None:
    """2.1.61 moves one there that takes too long, and answers the call at once."""
    moved = [INIT, used("Bash", timeout=1500), task("task_started", tool_use_id="t1", task_type="local_bash")]
    assert fed(*moved, got("Command running in background with ID: b1"), RESULT).background.open == {"b1": "local_bash"}


@pytest.mark.parametrize("tool", ["Task", "Agent"])
def test_a_subagent_ends_with_its_call_unless_it_was_launched(tool: str) -> None:
    """2.1.61 prints no other end of one that the turn waits for; 2.1.216 launches them in the background without being asked."""
    begun = [INIT, used(tool), task("task_started", "a36a0b8", tool_use_id="t1", task_type="local_agent")]
    assert fed(*begun, got("done")).background.open == {}
    assert fed(*begun, got(LAUNCHED), RESULT).background.open == {"a36a0b8": "local_agent"}


def test_where_no_task_is_reported_a_launched_agent_is_known_from_its_call() -> None:
    """2.1.6; it ends when the model has waited for it, or has stopped it."""
    begun = [INIT, used("Task", run_in_background=True), got(LAUNCHED), RESULT]
    assert fed(*begun).background.open == {"a36a0b8": "agent"}
    assert fed(*begun, used("TaskOutput", task_id="a36a0b8"), got("<status>running</status>")).background.open == {"a36a0b8": "agent"}
    assert fed(*begun, used("TaskOutput", task_id="a36a0b8"), got("<status>completed</status>")).background.open == {}
    assert fed(*begun, used("KillShell", shell_id="a36a0b8"), got("no such shell", failed=True)).background.open == {"a36a0b8": "agent"}
    assert fed(*begun, used("KillShell", shell_id="a36a0b8"), got()).background.open == {}


def question(key: str = "r1", **about: Any) -> dict[str, Any]:
    return {"type": "control_request", "request_id": key, "request": {"subtype": "can_use_tool", "tool_use_id": "t1", **about}}


@pytest.mark.parametrize(
    "settling",
    [
        got(),
        RESULT,
        {"type": "control_cancel_request", "request_id": "r1"},
        {"type": "control_response", "response": {"request_id": "r1"}},
    ],
    ids=["the call's result", "the turn's result", "taken back", "answered in the stream"],
)
@pytest.mark.case("C68")
def test_a_question_waits_until_it_is_settled(settling: dict[str, Any]) -> None:
    """An answer goes to the process's input and is not printed: what follows it shows that it came."""
    assert fed(INIT, used("Bash"), question()).requests == {"r1": "can_use_tool"}
    assert fed(INIT, used("Bash"), question(), settling).requests == {}


def test_a_subagents_question_outlasts_the_turn() -> None:
    """It is asked from the background."""
    assert fed(INIT, question(agent_id="a1"), RESULT).requests == {"r1": "can_use_tool"}


def test_the_result_of_a_subagents_call_settles_its_question() -> None:
    """In whatever turn it comes."""
    result = {**got("done", "sub"), "parent_tool_use_id": "t1"}
    asked = question(agent_id="a1", tool_use_id="sub")
    assert fed(INIT, asked, result, RESULT).requests == {}
    assert fed(INIT, asked, RESULT, result).requests == {}
    assert fed(INIT, asked, {**result, "message": {"content": "text"}}, RESULT).requests == {"r1": "can_use_tool"}


def test_the_end_of_a_subagent_ends_its_questions() -> None:
    """It is a task under the id that asked; another one's end is not its."""
    begun = {"type": "system", "subtype": "task_started", "task_id": "a1", "task_type": "local_agent"}
    ended = {"type": "system", "subtype": "task_notification", "task_id": "a1", "status": "completed"}
    asked = question(agent_id="a1")
    assert fed(INIT, begun, asked, RESULT, ended).requests == {}
    assert fed(INIT, begun, asked, RESULT, {**ended, "task_id": "a2"}).requests == {"r1": "can_use_tool"}
    assert fed(INIT, begun, asked, RESULT, {**ended, "status": "running"}).requests == {"r1": "can_use_tool"}


def test_a_question_without_a_subject_waits_too() -> None:
    """Whatever is asked."""
    assert fed({"type": "control_request", "request_id": "r1"}).requests == {"r1": "question"}


def test_alarms_are_armed_by_results_and_used_up_by_turns() -> None:
    """The result of the call that arms one, and the input that it becomes."""
    armed = fed(used("ScheduleWakeup", delaySeconds=60), {**got("(in 96s)"), "tool_use_result": {"scheduledFor": 1796043120000}})
    assert armed.alarms["wakeup"].due == 1796043120.0
    armed.feed({"type": "command_lifecycle", "command_uuid": "i", "state": "started", "scheduled_for": 1796043120000})
    assert armed.alarms == {}


def test_results_whose_text_says_something_are_told_apart() -> None:
    """Of most calls, only that there is a result counts; a reader may skip the rest."""
    stream = fed(used("Bash", "t1"), used("Bash", "t2", run_in_background=True), used("Agent", "t3"), used("CronList", "t4"))
    assert [stream.must_read(call) for call in ("t1", "t2", "t3", "t4", "t5")] == [False, True, True, True, False]


@pytest.mark.case("C61")
def test_a_hook_at_the_start_runs_until_it_has_answered() -> None:
    """However long: an event ends it, and a process that waits for its first input afterwards has begun nothing."""
    began = {"type": "system", "subtype": "hook_started", "hook_id": "h1", "hook_event": "SessionStart"}
    assert fed(began).hooks == {"h1"}
    assert fed(began, {**began, "subtype": "hook_progress"}, {**began, "hook_id": "h2"}).hooks == {"h1", "h2"}
    answered = fed(began, {**began, "subtype": "hook_response"})
    assert (answered.hooks, answered.begun) == (set(), False)


def test_only_a_report_says_that_the_session_was_reset() -> None:
    """A `/clear`."""
    assert fed({"type": "conversation_reset"}).reset
    assert not fed(INIT).reset


@given(st.lists(EVENTS, max_size=8))
def test_no_event_raises(events: list[dict[str, Any]]) -> None:
    """Whatever it holds; and what follows is understood."""
    stream = fed(*events)
    stream.take_ids()
    stream.feed(INIT)
    assert stream.turn is not None
