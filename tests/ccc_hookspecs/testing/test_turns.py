"""What simulated turns do: tools, questions, interruptions, background work, and inputs that come in meanwhile."""

from __future__ import annotations

import contextlib
import os
import time
import uuid

import psutil
import pytest

from ccc_hookspecs.testing.harness import SimulatedHeadless, Simulator, recited, wait_until
from ccc_hookspecs.testing.simulator import MEASURED, NEWEST

some_releases = pytest.mark.parametrize("release", ["2.0.42", "2.1.119", NEWEST])
STATES = {"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"}


def results(head: SimulatedHeadless) -> list[str]:
    """What the tools gave back, oldest first."""
    contents = [event["message"]["content"] for event in head.events("user")]
    return [block["content"] for content in contents if isinstance(content, list) for block in content if block["type"] == "tool_result"]


def states(head: SimulatedHeadless) -> list[str]:
    return [event["state"] for event in head.events("system", "session_state_changed")]


@some_releases
def test_a_command_runs_in_a_process_group_of_its_own(simulator: Simulator, release: str) -> None:
    """The tool is a real child, outside the headless's process group, and its output is the result."""
    head = simulator.headless(release=release)
    head.send("RUN: sleep 0.4; echo out")

    def leads_a_group() -> bool:
        # Between its fork and its start a child is in its parent's group.
        with contextlib.suppress(ProcessLookupError):
            return any(os.getpgid(child.pid) == child.pid for child in psutil.Process(head.pid).children())
        return False

    wait_until(leads_a_group, "a command that leads a process group")
    head.wait_idle()
    assert results(head) == ["out"]


def test_a_failing_command_is_an_error_result(simulator: Simulator) -> None:
    """The exit code decides."""
    head = simulator.headless()
    head.ask("RUN: false")
    [block] = head.events("user")[0]["message"]["content"]
    assert block["is_error"] is True


@pytest.mark.parametrize("allow", [True, False])
def test_a_question_waits_for_a_person(simulator: Simulator, allow: bool) -> None:
    """Until the answer comes nothing runs; then the command runs or is refused."""
    head = simulator.headless(environ=STATES)
    head.send("ASK: echo ran")
    question = head.wait_event("control_request")
    assert question["request"]["subtype"] == "can_use_tool"
    assert states(head)[-1] == "requires_action"
    assert results(head) == []
    head.reply(question, allow=allow)
    head.wait_idle()
    assert results(head) == (["ran"] if allow else ["no"])
    assert states(head) == ["running", "requires_action", "running", "idle"]


def test_a_host_that_answers_questions_is_asked_for_every_command(simulator: Simulator) -> None:
    """With `--permission-prompt-tool stdio` and no waiver `RUN:` asks too."""
    head = simulator.headless(arguments=("--permission-prompt-tool", "stdio"))
    head.send("RUN: echo ran")
    head.reply(head.wait_event("control_request"), allow=True)
    head.wait_idle()
    assert results(head) == ["ran"]


def test_an_interrupted_question_is_withdrawn(simulator: Simulator) -> None:
    """The question is cancelled on stdout and the turn ends as an error."""
    head = simulator.headless()
    head.send("ASK: echo ran")
    question = head.wait_event("control_request")
    head.control("interrupt")
    head.wait_idle()
    assert head.events("control_cancel_request")[0]["request_id"] == question["request_id"]
    assert head.events("result")[-1]["subtype"] == "error_during_execution"


def test_a_terminal_asks_on_its_screen(simulator: Simulator) -> None:
    """The person answers with a line."""
    head = simulator.headless()
    head.ask("first")
    terminal = simulator.terminal(head.session_id)
    terminal.type("ASK: echo ran")
    wait_until(lambda: "[y/n]" in terminal.screen(), "the question")
    terminal.type("y")
    wait_until(terminal.answers, "the answer")
    assert recited(terminal.answers()[-1]) == ["first", "ASK: echo ran"]


@some_releases
def test_an_interrupted_answer_ends_the_turn(simulator: Simulator, release: str) -> None:
    """The turn is over at once, and the next one remembers what was asked."""
    head = simulator.headless(release=release)
    head.send("SLOW 60")
    head.wait_event("system", "init")
    head.control("interrupt")
    head.wait_idle()
    assert head.events("result")[-1]["subtype"] == "error_during_execution"
    assert recited(head.ask("after")) == ["SLOW 60", "after"]


@some_releases
def test_an_input_during_a_tool_joins_the_turn(simulator: Simulator, release: str) -> None:
    """It is answered within the same result; from 2.1.119 on a later process remembers it, from an attachment."""
    head = simulator.headless(release=release)
    head.send("RUN: sleep 0.5")
    head.wait_event("assistant")
    head.send("meanwhile")
    head.wait_idle()
    assert head.memory() == ["RUN: sleep 0.5", "meanwhile"]
    assert len(head.events("result")) == 1
    head.stop()
    again = recited(simulator.headless(head.session_id, release=release).ask("after"))
    assert again == ["RUN: sleep 0.5", *(["meanwhile"] if head.release.has("attachments") else []), "after"]


@some_releases
def test_inputs_during_an_answer_wait_for_its_end(simulator: Simulator, release: str) -> None:
    """Up to 2.1.61 each begins a turn; later one turn takes them all, and its record bears the last one's id alone."""
    head = simulator.headless(release=release)
    head.send("SLOW 0.5")
    head.wait_event("system", "init")
    ids = [head.send("one"), head.send("two")]
    head.wait_idle()
    merged = head.release.has("merges_queued_inputs")
    assert recited(head.answers()[-1]) == ["SLOW 0.5", "one", "two"]
    assert len(head.events("result")) == (2 if merged else 3)
    assert [one in {record.get("uuid") for record in head.records()} for one in ids] == [not merged, True]


def test_a_resumed_process_answers_again_what_had_joined_a_turn(simulator: Simulator) -> None:
    """The id of an input that became an attachment is not known to the next process, as measured on every release."""
    head = simulator.headless()
    head.send("RUN: sleep 0.4")
    head.wait_event("assistant")
    joined = head.send("meanwhile")
    head.wait_idle()
    head.stop()
    fresh = simulator.headless(head.session_id)
    fresh.send("meanwhile", message_id=joined)
    fresh.wait_idle()
    assert fresh.memory() == ["RUN: sleep 0.4", "meanwhile", "meanwhile"]


@pytest.mark.parametrize(("release", "between"), [("2.1.168", []), ("2.1.216", ["idle", "running"])])
def test_a_background_command_reports_back(simulator: Simulator, release: str, between: list[str]) -> None:
    """Its end begins a turn of its own; up to 2.1.168 the session stays running until then, later it is idle meanwhile."""
    head = simulator.headless(release=release, environ=STATES)
    head.ask("BG: sleep 0.3")
    assert head.wait_event("system", "task_notification")["status"] == "completed"
    head.wait_event("result", count=2)
    wait_until(lambda: states(head)[-1] == "idle", "the idle state")
    assert states(head) == ["running", *between, "idle"]


def test_a_subagent_works_beside_the_turn(simulator: Simulator) -> None:
    """The turn ends first; the subagent's own transcript grows, marked as a side chain."""
    head = simulator.headless()
    head.ask("TASK: SLOW 0.4")
    assert [task["task_type"] for task in head.events("system", "background_tasks_changed")[-1]["tasks"]] == ["local_agent"]
    head.wait_event("result", count=2)
    [path] = (head.home.transcript(head.session_id).with_suffix("") / "subagents").glob("agent-*.jsonl")
    assert path.read_text().count('"isSidechain": true') == 2
    assert head.events("system", "background_tasks_changed")[-1]["tasks"] == []


def test_an_armed_wake_up_begins_a_turn(simulator: Simulator) -> None:
    """Without any input the process goes on when the time has come."""
    head = simulator.headless()
    head.ask("WAKE: 0.3")
    assert len(head.events("result")) == 1
    head.wait_event("result", count=2)
    assert head.memory() == ["WAKE: 0.3", "wake"]


def test_the_last_record_can_be_late(simulator: Simulator) -> None:
    """The result is printed before the transcript has the answer, which then comes."""
    head = simulator.headless()
    head.ask("first")
    head.ask("LATE 0.5")
    answers = [record for record in head.records() if record["type"] == "assistant"]
    assert len(answers) == 1
    wait_until(lambda: sum(record["type"] == "assistant" for record in head.records()) == 2, "the late record")


def test_a_clean_exit_flushes_what_was_late(simulator: Simulator) -> None:
    """SIGTERM loses no record."""
    head = simulator.headless(environ={"CCC_SIM_LATE_FLUSH": "60"})
    head.ask("first")
    head.stop()
    assert [record["message"]["role"] for record in head.records() if record["type"] == "assistant"] == ["assistant"]


@pytest.mark.parametrize(("release", "moves"), [("2.1.61", False), ("2.1.119", True), ("2.1.332", True)])
def test_clear_moves_a_later_headless_to_another_session(simulator: Simulator, release: str, moves: bool) -> None:
    """Its next events name the new session, and nothing is remembered; before 2.1.119 the command is unknown."""
    head = simulator.headless(release=release)
    head.ask("first")
    head.send("/clear")
    head.wait_idle()
    answer = recited(head.ask("after"))
    assert (head.events("result")[-1]["session_id"] != head.session_id) is moves
    assert (answer == ["after"]) is moves


def test_compact_leaves_a_summary_in_memory(simulator: Simulator) -> None:
    """What came before is remembered as one text, by this process and by the next."""
    head = simulator.headless()
    head.ask("first")
    head.send("/compact")
    head.wait_idle()
    [summary, after] = recited(head.ask("after"))
    assert "first" in summary
    head.stop()
    assert recited(simulator.headless(head.session_id).ask("last")) == [summary, after, "last"]


def test_inputs_are_acknowledged_by_their_ids(simulator: Simulator) -> None:
    """From 2.1.216 on each input is queued, started and completed on stdout."""
    head = simulator.headless(release="2.1.216")
    message_id = head.send("first")
    head.wait_idle()
    told = [(event["command_uuid"], event["state"]) for event in head.events("command_lifecycle")]
    assert told == [(message_id, state) for state in ("queued", "started", "completed")]


def test_an_input_may_be_a_plain_string_without_id(simulator: Simulator) -> None:
    """Both forms of content are taken."""
    head = simulator.headless()
    head.write({"type": "user", "message": {"role": "user", "content": "plain"}})
    head.wait_idle()
    assert head.memory() == ["plain"]


def test_control_requests_are_answered(simulator: Simulator) -> None:
    """A known one succeeds, an unknown one is refused, both under the request's id."""
    head = simulator.headless()
    known, unknown = head.control("initialize"), head.control("nonsense")
    wait_until(lambda: len(head.events("control_response")) == 2, "two answers")
    answers = {event["response"]["request_id"]: event["response"]["subtype"] for event in head.events("control_response")}
    assert answers == {known: "success", unknown: "error"}


def test_a_refused_request_is_told(simulator: Simulator) -> None:
    """The answer is the error, no model's, and the input is cancelled."""
    head = simulator.headless()
    head.send("FAIL400")
    head.wait_idle()
    assert "400" in head.answers()[-1]
    assert head.events("command_lifecycle")[-1]["state"] == "cancelled"


@pytest.mark.case("C77")
@pytest.mark.parametrize("release", MEASURED)
def test_half_a_surrogate_pair_is_the_end_of_the_answers_up_to_2_1_168(simulator: Simulator, release: str) -> None:
    """It stands escaped in the transcript, and is refused with every later turn; newer releases send U+FFFD in its place."""
    simulator.release = release
    head = simulator.headless()
    head.ask("half \ud83d")
    head.ask("second")
    assert b"half \\ud83d" in head.home.transcript(head.session_id).read_bytes()
    poisoned = MEASURED.index(release) <= MEASURED.index("2.1.168")
    assert ("API Error: 400" in head.answers()[-1]) == poisoned
    assert ("half \ufffd" in head.answers()[-1]) == (not poisoned)


def test_a_person_s_lines_are_answered_in_order(simulator: Simulator) -> None:
    """What is typed during a turn is taken after it."""
    head = simulator.headless()
    head.ask("first")
    terminal = simulator.terminal(head.session_id)
    terminal.type("SLOW 0.3")
    terminal.wait_busy()
    terminal.type("typed meanwhile")
    wait_until(lambda: len(terminal.answers()) == 2, "two answers")
    assert recited(terminal.answers()[-1]) == ["first", "SLOW 0.3", "typed meanwhile"]
    assert [record.get("content") for record in head.records() if record.get("operation") == "enqueue"][-1] == "typed meanwhile"


def test_records_never_change_once_written(simulator: Simulator) -> None:
    """The transcript only grows, whoever writes."""
    head = simulator.headless(str(uuid.uuid4()))
    path = head.home.transcript(head.session_id)
    before = b""
    for text in ("first", "RUN: echo hi", "THINK"):
        head.ask(text)
        now = path.read_bytes()
        assert now.startswith(before)
        before = now
    assert before.endswith(b"\n")
    assert time.time() - path.stat().st_mtime < 60
