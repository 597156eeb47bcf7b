"""Healing: a running headless takes history on its standard input, as the real program was seen to do, release by release."""

from __future__ import annotations

import pytest

from ccc_hookspecs.testing.harness import Simulator, recited
from tests.ccc_hookspecs.testing.feeding import STATES, TAKES, answer, begun, elsewhere, every_release, leaf, parents, told, user, written


def test_history_makes_a_forked_tree_one_line(simulator: Simulator) -> None:
    """Other releases too: what a stale headless is fed it knows, and so does every process after it."""
    for release in TAKES:
        head = begun(simulator, release)
        foreign = elsewhere(simulator, head)
        assert recited(head.ask("stale")) == ["first", "stale"]
        head.feed(*foreign)
        assert recited(head.ask("healed")) == ["first", "stale", "from elsewhere", "healed"]
        head.stop()
        assert recited(simulator.one_shot(head.session_id, "fresh")) == ["first", "stale", "from elsewhere", "healed", "fresh"]


@every_release
def test_a_fed_input_stands_below_the_leaf_that_the_process_knows(simulator: Simulator, release: str) -> None:
    """Under its own id, between the queue's operations; an answer is written with the next input, and becomes its parent."""
    head = begun(simulator, release)
    first_answer = leaf(head)
    foreign = elsewhere(simulator, head)
    [prompt, said] = (record["uuid"] for record in foreign)
    before = len(head.records())
    head.feed(*foreign)
    assert written(head, before) == ["enqueue", "dequeue", prompt]
    question = head.send("next")
    head.wait_idle()
    assert written(head, before)[3:7] == ["enqueue", "dequeue", said, question]
    hangs_on = parents(head)
    assert [hangs_on[prompt], hangs_on[said], hangs_on[question]] == [first_answer, prompt, said]
    copies = [record["message"] for record in head.records() if record.get("uuid") == said]
    assert copies[0] == copies[1]


@every_release
def test_a_fed_input_is_acknowledged_by_a_result_of_no_turn(simulator: Simulator, release: str) -> None:
    """No request, no answer; the lifecycle from 2.1.216 on, and there `completed` comes after the result."""
    head = begun(simulator, release, **STATES)
    since = len(head.events())
    head.feed(user("history"))
    queued, completed = (["queued", "started"], ["completed"]) if head.release.has("lifecycle") else ([], [])
    assert told(head, since) == ["running", *queued, "init", "success", *completed, "idle"]
    result = head.events("result")[-1]
    assert (result["result"], "terminal_reason" in result) == ("", False)


@pytest.mark.parametrize(("release", "turns"), [("2.1.119", [3, 4, 6, 7]), ("2.1.168", [0, 0, 0, 0]), ("2.1.332", [0, 0, 0, 0])])
def test_the_acknowledgement_counts_no_turns_from_2_1_168_on(simulator: Simulator, release: str, turns: list[int]) -> None:
    """On 2.1.119 the number is that of the messages before it."""
    head = begun(simulator, release)
    head.feed(user("one"), user("two"), answer("said"), user("three"), user([]))
    assert [event["num_turns"] for event in head.events("result")[1:]] == turns


@every_release
def test_a_fed_answer_is_told_but_not_acknowledged(simulator: Simulator, release: str) -> None:
    """Only `completed` under its id, from 2.1.216 on, again when it is repeated; nothing is written."""
    head = begun(simulator, release, **STATES)
    since, size = len(head.events()), len(head.records())
    said = answer("said")
    head.feed(said, said)
    assert told(head, since) == (["completed", "completed"] if head.release.has("lifecycle") else [])
    assert {event.get("command_uuid") for event in head.events()[since:]} <= {said["uuid"]}
    assert len(head.records()) == size
    head.ask("next")
    assert [record.get("uuid") for record in head.records()].count(said["uuid"]) == 1


@pytest.mark.parametrize("end", ["stop", "kill"])
@every_release
def test_an_answer_that_was_not_written_yet_is_lost(simulator: Simulator, release: str, end: str) -> None:
    """However the process ends. SIGTERM then names the last input as the leaf, so a fresh process closes that as an open turn."""
    head = begun(simulator, release)
    foreign = elsewhere(simulator, head)
    head.feed(*foreign)
    before = len(head.records())
    head.stop() if end == "stop" else head.kill()
    left = head.records()[before:]
    named = {"leafUuid": foreign[0]["uuid"]} if head.release.has("last_prompt_leaf") else {}
    if end == "stop":
        assert left[0]["type"] == "last-prompt"
        assert left[0].items() >= {"lastPrompt": "from elsewhere", **named}.items()
    assert foreign[1]["uuid"] not in [record.get("uuid") for record in left]
    simulator.one_shot(head.session_id, "fresh")
    # The other process's own `last-prompt` names its answer, which is not above the input that was fed last.
    lost = end == "stop" or not head.release.has("last_prompt_leaf")
    assert any(record.get("isApiErrorMessage") is False for record in head.records()) is lost


@pytest.mark.parametrize("end", ["stop", "kill"])
@every_release
def test_an_empty_input_makes_a_fed_answer_last(simulator: Simulator, release: str, end: str) -> None:
    """It is acknowledged, writes the answer and no record of its own, and is no part of memory."""
    head = begun(simulator, release)
    foreign = elsewhere(simulator, head)
    head.feed(*foreign)
    before, results = len(head.records()), len(head.events("result"))
    head.feed(user([]))
    reminder = ["attachment"] if release == "2.1.275" else []
    assert written(head, before) == ["enqueue", "dequeue", foreign[1]["uuid"], *reminder]
    assert len(head.events("result")) == results + 1
    head.stop() if end == "stop" else head.kill()
    assert recited(simulator.one_shot(head.session_id, "fresh")) == ["first", "from elsewhere", "fresh"]
    assert not any(record.get("isApiErrorMessage") is False for record in head.records())


def test_an_input_of_an_empty_text_says_so(simulator: Simulator) -> None:
    """Unlike an empty list it becomes a record."""
    head = begun(simulator, "2.1.332")
    head.feed(user(""))
    assert recited(head.ask("after")) == ["first", "(no content)", "after"]


@every_release
def test_a_repeated_input_is_dropped(simulator: Simulator, release: str) -> None:
    """No record and no result; from 2.1.216 on the idle state is told again, and `completed` for one that was loaded."""
    head = begun(simulator, release, **STATES)
    history = user("history")
    head.feed(history)
    size, since = len(head.records()), len(head.events())
    head.feed(history)
    tells = ["idle"] if head.release.has("tells_repeated") else []
    assert (len(head.records()), told(head, since)) == (size, tells)
    head.stop()
    fresh = simulator.headless(head.session_id, environ=STATES)
    size = len(head.records())
    fresh.feed(history)
    assert (len(head.records()), told(fresh, 0)) == (size, ["completed", *tells] if tells else [])


def test_what_the_process_wrote_itself_is_not_taken_again(simulator: Simulator) -> None:
    """Its own prompts and answers are known by their ids, also after it moved to another session."""
    head = begun(simulator, "2.1.332")
    own = [record for record in head.records() if record["type"] in {"user", "assistant"}]
    head.feed(*own)
    assert recited(head.ask("second")) == ["first", "second"]
    head.send("/clear")
    head.wait_idle()
    head.feed(*own)
    assert recited(head.ask("third")) == ["third"]


@every_release
def test_a_turn_with_a_tool_is_fed_whole(simulator: Simulator, release: str) -> None:
    """Every record once more in the same order below each other; a tool's result is no prompt."""
    head = begun(simulator, release)
    foreign = elsewhere(simulator, head, "RUN: echo out")
    assert [record["type"] for record in foreign] == ["user", "assistant", "user", "assistant"]
    before = len(head.records())
    head.feed(*foreign)
    assert recited(head.ask("after")) == ["first", "RUN: echo out", "after"]
    again = [record for record in head.records()[before:] if record["type"] in {"user", "assistant"}][:4]
    assert [(record["uuid"], record["message"]) for record in again] == [(record["uuid"], record["message"]) for record in foreign]
    # 2.1.275 alone puts a reminder below a tool's result.
    hangs_on = parents(head)
    reminders = {record["uuid"] for record in head.records() if "attachment" in record}
    above = [hangs_on[parent] if parent in reminders else parent for parent in (record["parentUuid"] for record in again[1:])]
    assert above == [record["uuid"] for record in again[:-1]]


@pytest.mark.parametrize(("release", "prompt"), [("2.1.119", None), ("2.1.168", None), ("2.1.216", "first"), ("2.1.332", "first")])
def test_a_process_that_was_fed_a_tool_s_result_alone_names_it_at_its_end(simulator: Simulator, release: str, prompt: str | None) -> None:
    """With the prompt that stood in the transcript; up to 2.1.168 with none, and 2.1.119 then says nothing."""
    begun(simulator, release).stop()
    [session] = (path.stem for path in simulator.home.config_dir.glob("projects/*/*.jsonl"))
    head = simulator.headless(session)
    result = user([{"type": "tool_result", "tool_use_id": "toolu_0", "content": "out"}])
    head.feed(result)
    before = len(head.records())
    head.stop()
    named = [(record.get("leafUuid"), record.get("lastPrompt")) for record in head.records()[before:] if record["type"] == "last-prompt"]
    assert named == ([(result["uuid"], prompt)] if head.release.has("last_prompt_leaf") else [])
