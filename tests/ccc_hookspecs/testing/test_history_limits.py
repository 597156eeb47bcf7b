"""What history does that is no plain message, that comes too early, or that an older release gets."""

from __future__ import annotations

import pytest

from ccc_hookspecs.testing.harness import Simulator, as_history, recited, wait_until
from tests.ccc_hookspecs.testing.feeding import answer, begun, every_release, leaf, parents, user, written


@every_release
def test_a_command_is_run_as_one(simulator: Simulator, release: str) -> None:
    """`/compact` compacts, as a string and as a block."""
    for content in ("/compact", [{"type": "text", "text": "/compact"}]):
        head = begun(simulator, release)
        head.feed(user(content))
        assert head.events("system", "compact_boundary")
        [summary, last] = recited(head.ask("after"))
        assert ("first" in summary, last) == (True, "after")


@every_release
def test_an_unknown_command_is_told_or_stands_as_text(simulator: Simulator, release: str) -> None:
    """From 2.1.275 on it is a text like any other; before that no record has its id. A path is always a text."""
    head = begun(simulator, release)
    unknown, path = user("/nonsense x"), user("/tmp/some path")
    head.feed(unknown)
    stands = head.release.has("unknown_command_is_text")
    assert head.events("result")[-1]["result"] == ("" if stands else "Unknown command: /nonsense")
    assert (unknown["uuid"] in parents(head)) is stands
    head.feed(path)
    texts = recited(head.ask("after"))
    assert [text for text in texts if "Unknown" not in text] == ["first", *(["/nonsense x"] if stands else []), "/tmp/some path", "after"]


@every_release
def test_answers_overtake_inputs_when_nobody_waits(simulator: Simulator, release: str) -> None:
    """Frames that come at once change places: the answers are written before the first input."""
    head = begun(simulator, release)
    before = len(head.records())
    frames = [user("one"), answer("said one"), user("two"), answer("said two")]
    head.write(*map(as_history, frames))
    head.wait_idle()
    one, said_one, two, said_two = (frame["uuid"] for frame in frames)
    assert [record for record in written(head, before) if record not in {"enqueue", "dequeue"}] == [said_one, said_two, one, two]
    assert recited(head.ask("after")) == ["first", "one", "two", "after"]


@every_release
def test_history_fed_during_an_answer_leaves_that_answer_aside(simulator: Simulator, release: str) -> None:
    """The input waits for the turn's end; a fed answer hangs on what stood there when it came, and the next input on that."""
    head = begun(simulator, release)
    head.send("SLOW 2")
    head.wait_event("system", "init", count=2)
    prompt, said, history = leaf(head), answer("said"), user("history")
    head.write(as_history(said), as_history(history))
    head.wait_idle()
    hangs_on = parents(head)
    assert (hangs_on[said["uuid"]] == hangs_on[history["uuid"]], hangs_on[history["uuid"]]) == (False, said["uuid"])
    assert hangs_on[said["uuid"]] == prompt
    assert recited(head.ask("after")) == ["first", "SLOW 2", "history", "after"]


@every_release
def test_history_fed_during_a_tool_joins_the_turn(simulator: Simulator, release: str) -> None:
    """As any input does: an attachment, and no result of its own."""
    head = begun(simulator, release)
    head.send("RUN: until [ -e go ]; do sleep 0.05; done")
    head.wait_event("assistant", count=2)
    history = user("history")
    head.write(as_history(history))
    head.wait_busy()
    (head.home.project / "go").touch()
    head.wait_idle()
    assert len(head.events("result")) == 2
    sources = [record["attachment"].get("source_uuid") for record in head.records() if "attachment" in record]
    assert history["uuid"] in sources
    assert [head.memory()[0], head.memory()[-1]] == ["first", "history"]


def test_inputs_and_history_that_wait_are_not_merged(simulator: Simulator) -> None:
    """Each piece of history is acknowledged alone, and what a person asked is answered alone."""
    head = begun(simulator, "2.1.332")
    head.send("SLOW 2")
    head.wait_event("system", "init", count=2)
    one, history, two = user("one"), user("history"), user("two")
    head.write(one, as_history(history), two)
    head.wait_idle()
    assert head.memory() == ["first", "SLOW 2", "one", "history", "two"]
    assert [event["user_message_uuid"] for event in head.events("result")[2:]] == [one["uuid"], history["uuid"], two["uuid"]]


@pytest.mark.parametrize(("release", "meta", "text"), [("2.1.168", None, "note"), ("2.1.216", True, "note"), ("2.1.332", True, "[MESSAGE")])
def test_a_synthetic_input_is_marked(simulator: Simulator, release: str, meta: bool | None, text: str) -> None:
    """A meta record from 2.1.216 on, whose text says from 2.1.275 on that no person typed it."""
    head = begun(simulator, release)
    for content in ("note", [{"type": "text", "text": "note"}]):
        note = user(content)
        head.write(as_history(note) | {"isSynthetic": True})
        head.wait_idle()
        [record] = [record for record in head.records() if record.get("uuid") == note["uuid"]]
        said = record["message"]["content"]
        assert (record.get("isMeta"), str(said if isinstance(said, str) else said[0]["text"]).startswith(text)) == (meta, True)


def test_the_newest_release_marks_what_was_fed(simulator: Simulator) -> None:
    """In the transcript, and nothing says there what began a turn."""
    head = begun(simulator, "2.1.332")
    history, said = user("history"), answer("said")
    head.feed(history, said)
    head.ask("after")
    records = {record.get("uuid"): record for record in head.records()}
    assert (records[history["uuid"]]["queueTranscriptOnly"], records[said["uuid"]]["madeBy"]) == (True, "input")
    assert "turnOrigin" not in records[history["uuid"]]


def test_a_fed_answer_is_written_before_a_command(simulator: Simulator) -> None:
    """The echo of a local command hangs on it."""
    head = begun(simulator, "2.1.332")
    history, said = user("history"), answer("said")
    head.feed(history, said)
    command = head.send("/cost")
    head.wait_idle()
    hangs_on = parents(head)
    assert (hangs_on[said["uuid"]], hangs_on[str(hangs_on[command])]) == (history["uuid"], said["uuid"])


@pytest.mark.parametrize("release", ["2.0.42", "2.1.6"])
def test_the_oldest_releases_end_at_an_answer(simulator: Simulator, release: str) -> None:
    """With exit code 1, and their reason on stderr."""
    head = begun(simulator, release)
    head.write(as_history(answer("said")))
    assert head.wait_exit() == 1
    assert "got 'assistant'" in head.log.read_text()


@pytest.mark.parametrize("release", ["2.0.42", "2.1.6", "2.1.61"])
def test_older_releases_answer_history(simulator: Simulator, release: str) -> None:
    """An input is an input, whatever the line says; 2.1.61 passes over an answer."""
    head = begun(simulator, release)
    if release == "2.1.61":
        head.feed(answer("said"))
    head.feed(user("history"))
    assert head.memory() == ["first", "history"]
    assert not any("said" in str(record.get("message")) for record in head.records())


@pytest.mark.parametrize(("release", "subtype"), [("2.1.275", "error"), ("2.1.332", "success")])
def test_memory_can_be_exported(simulator: Simulator, release: str, subtype: str) -> None:
    """The newest release prints it as text; no turn is taken."""
    head = begun(simulator, release)
    head.feed(user("history"))
    head.control("export_conversation")
    wait_until(lambda: head.events("control_response"), "the export")
    response = head.events("control_response")[-1]["response"]
    assert response["subtype"] == subtype
    assert [text in str(response) for text in ("first", "history")] == [subtype == "success"] * 2
