"""The answer to one message is told from everything else in a headless's log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ccc_hookspecs.host import stream
from ccc_hookspecs.host.stream import Answer
from ccc_hookspecs.testing.harness import Simulator, wait_until
from ccc_hookspecs.testing.simulator import MEASURED
from tests.ccc_hookspecs.host.world import World

MINE = "72350742-dff3-4ee0-a645-6602d6d2b86e"


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}, **more}


def lifecycle(state: str, uuid: str = MINE) -> dict[str, Any]:
    return {"type": "command_lifecycle", "command_uuid": uuid, "state": state}


class Log:
    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def prints(self, *events: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(event) + "\n" for event in events)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "log")


def test_texts_come_as_they_are_printed(log: Log) -> None:
    """Each once, with the names of tools between them; a subagent's are its own."""
    answer = Answer(MINE, log.path, 0)
    log.prints(lifecycle("queued"), lifecycle("started"), said("one"))
    assert answer.poll(delivered=False) == ["one"]
    tool = {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "Bash", "input": {}}]}}
    log.prints(tool, said("of a subagent", parent_tool_use_id="toolu_1"), said("two"))
    assert answer.poll(delivered=True) == ["[Bash]", "two"]
    assert answer.poll(delivered=True) == []
    assert answer.parts == ["one", "two"]
    assert not answer.done
    log.prints({"type": "result", "subtype": "success", "user_message_uuids": [MINE]})
    assert answer.poll(delivered=True) == []
    assert answer.done
    assert answer.error is None


def test_what_another_turn_says_is_not_part_of_it(log: Log) -> None:
    """While the message waits in the process for the end of a turn, that turn's texts and result are not its own."""
    answer = Answer(MINE, log.path, 0)
    log.prints(lifecycle("queued"), said("of the turn before"), {"type": "result", "user_message_uuids": ["another"]})
    assert answer.poll(delivered=False) == []
    assert answer.waits
    assert not answer.done
    log.prints(lifecycle("started"), said("mine"))
    assert answer.poll(delivered=False) == ["mine"]
    assert not answer.waits


def test_a_completed_message_is_answered_also_when_another_input_has_its_result(log: Log) -> None:
    """Two inputs may share one result."""
    answer = Answer(MINE, log.path, 0)
    log.prints(lifecycle("queued"), lifecycle("started"), lifecycle("completed"))
    answer.poll(delivered=True)
    assert answer.done


def test_a_failed_turn_is_told_with_its_first_line(log: Log) -> None:
    answer = Answer(MINE, log.path, 0)
    log.prints({"type": "result", "is_error": True, "result": "API Error: 400\nmore", "user_message_uuid": MINE})
    answer.poll(delivered=True)
    assert (answer.done, answer.error) == (True, "API Error: 400")


def test_without_names_the_first_result_after_the_delivery_ends_it(log: Log) -> None:
    """Releases before 2.1.216 name no message: a result that was there before the delivery was another's."""
    answer = Answer(MINE, log.path, 0)
    log.prints(said("of the turn before"), {"type": "result", "subtype": "success"}, {"type": "system", "subtype": "init"})
    answer.poll(delivered=False)
    answer.poll(delivered=True)
    assert not answer.done
    log.prints(said("mine"), {"type": "result", "subtype": "success"})
    answer.poll(delivered=True)
    assert answer.done


def test_without_names_the_result_of_history_ends_nothing(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """History that lay before the message is acknowledged by a result that says nothing; a command's own, like it, stays the last event."""
    init = {"type": "system", "subtype": "init"}
    nothing = {"type": "result", "subtype": "success", "result": ""}
    answer = Answer(MINE, log.path, 0)
    log.prints(init, nothing)
    answer.poll(delivered=True)
    assert not answer.done
    log.prints(init, said("mine"), {"type": "result", "subtype": "success", "result": "mine", "terminal_reason": "completed"})
    assert answer.poll(delivered=True) == ["mine"]
    assert answer.done
    command = Answer(MINE, log.path, log.path.stat().st_size)
    log.prints(init, nothing)
    command.poll(delivered=True)
    assert not command.done
    monkeypatch.setattr(stream, "QUIET_SECONDS", 0.0)
    command.poll(delivered=True)
    assert command.done


def test_a_record_that_came_later_than_the_result_still_ends_it(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """On releases that write the transcript late, the result is there before the delivery is proven; then nothing more comes."""
    monkeypatch.setattr(stream, "QUIET_SECONDS", 0.0)
    answer = Answer(MINE, log.path, 0)
    log.prints(said("mine"), {"type": "result", "subtype": "success"})
    answer.poll(delivered=False)
    assert not answer.done
    answer.poll(delivered=True)
    assert answer.done


def test_a_failure_is_told_also_when_its_record_came_late(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that failed before the delivery was proven is not taken for an answer."""
    monkeypatch.setattr(stream, "QUIET_SECONDS", 0.0)
    answer = Answer(MINE, log.path, 0)
    log.prints(said("API Error: 400"), {"type": "result", "subtype": "success", "is_error": True, "result": "API Error: 400"})
    answer.poll(delivered=False)
    answer.poll(delivered=True)
    assert (answer.done, answer.error) == (True, "API Error: 400")


@pytest.mark.parametrize("release", MEASURED)
def test_each_release_is_answered(world: World, simulator: Simulator, release: str) -> None:
    """Two texts in a row, the second sent while the first runs: each answer ends once, with its text, by every release's own events."""
    simulator.release = release
    host = world.host()
    session = host.begin(world.home.project)
    first, second = (host.send(session.session_id, text) for text in ("RUN: sleep 0.3", "second"))
    for message, words in ((first, "RUN: sleep 0.3"), (second, "second")):
        world.until(host, message)
        now = world.now(host, message)
        head = host.agents.known(session.session_id)
        assert head is not None
        answer = Answer(message.message_id, head.log, now.log_offset)

        def done(answer: Answer = answer) -> bool:
            answer.poll(delivered=True)
            return answer.done

        wait_until(done, f"an answer of {release}")
        assert words in answer.parts[-1]
        assert answer.error is None
