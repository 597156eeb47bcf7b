"""What becomes of a text on its way to a headless, for each answer of the plugins."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from ccc_hookspecs.outcomes import Respawned
from ccc_hookspecs.signals import headless_respawned
from ccc_hookspecs.specs import Host
from ccc_hookspecs.values import Decision, Deliver, Hold, Injection, Respawn
from tests.ccc_hookspecs.integrations.conftest import Ccc, end


@pytest.mark.case("C03")
def test_with_nobody_else_nothing_changes(ccc: Ccc) -> None:
    """A text that no plugin objects to goes once to the same process, and no other process is started."""
    session_id, row = ccc.spawn()
    answer = ccc.server._inject_text_into_session(session_id, "second")
    assert answer == {"ok": True, "pid": row["pid"], "via": "spawn-fifo"}
    ccc.heard(session_id, "second")
    assert ccc.texts(session_id) == [["first"], ["second"]]
    assert ccc.server._spawned_sessions == [row]


def test_plugins_are_asked_with_the_id_that_is_written(ccc: Ccc) -> None:
    """The message id of the injection is the id of the line in the FIFO."""
    session_id, row = ccc.spawn()
    ccc.server._inject_text_into_session(session_id, "second")
    (injection,) = ccc.plugin.asked
    assert (injection.session_id, injection.text) == (session_id, "second")
    assert row["input_command_uuids"][-1] == injection.message_id


def test_what_a_plugin_sees_of_a_headless(ccc: Ccc) -> None:
    """A headless has its identity, its files and every input that it was ever sent."""
    session_id, row = ccc.spawn()
    ccc.server._inject_text_into_session(session_id, "second")
    ccc.heard(session_id, "second")
    headless = ccc.attachment.host.headless_for(session_id)
    assert headless is not None
    assert (headless.pid, headless.engine, headless.owned, headless.resumed) == (row["pid"], "claude", True, False)
    assert headless.start_time is not None
    assert (str(headless.fifo), str(headless.stdout_log)) == (row["fifo"], row["log"])
    assert headless.sent is not None
    assert [one.message_id for one in headless.sent] == row["input_command_uuids"]


@pytest.mark.case("C01")
def test_a_refused_text_goes_once_to_a_fresh_resume(ccc: Ccc) -> None:
    """When the stale process was ended, CCC resumes the session and gives the text to the new process, with the turns it lacks in front."""
    session_id, row = ccc.spawn()
    ccc.plugin.retire(catch_up="what the terminal said")
    answer = ccc.server._inject_text_into_session(session_id, "second")
    assert answer["ok"]
    assert answer["pid"] != row["pid"]
    assert ccc.heard(session_id, "second") == ["what the terminal said", "second"]
    assert ccc.texts(session_id) == [["first"], ["what the terminal said", "second"]]
    assert [one["pid"] for one in ccc.server._spawned_sessions] == [answer["pid"]]


def test_nobody_is_asked_about_the_first_text_of_a_new_session(ccc: Ccc) -> None:
    """A session that begins can lack nothing."""
    ccc.spawn()
    assert ccc.plugin.asked == []


def test_a_fresh_process_that_is_stale_at_once_is_replaced(ccc: Ccc) -> None:
    """When somebody wrote between the start of a process and its first text, it is ended unasked and another is started."""
    session_id = str(uuid.uuid4())
    ended: list[int] = []

    def answer(host: Host, injection: Injection) -> Decision | None:
        if ended:
            return None
        ended.append(injection.headless.pid)
        ccc.server._spawned_sessions.clear()
        end(injection.headless.pid)
        host.released(injection.headless)
        return Respawn(reason="stale")

    ccc.plugin.answer = answer
    answered = ccc.server._inject_text_into_session(session_id, "first")
    assert answered["ok"]
    assert answered["pid"] not in ended
    assert ccc.heard(session_id, "first") == ["first"]
    assert ccc.texts(session_id) == [["first"]]


@pytest.mark.case("C80")
def test_no_second_writer_while_the_first_lives(ccc: Ccc) -> None:
    """A plugin that wants a fresh process but has not ended the old one gets a hold instead."""
    session_id, row = ccc.spawn()
    ccc.plugin.answer = lambda host, injection: Respawn(reason="stale")
    answer = ccc.server._inject_text_into_session(session_id, "second")
    assert answer["queued"]
    assert "has not ended" in answer["queued_reason"]
    assert ccc.server._spawned_sessions == [row]
    assert row["proc"].poll() is None


def test_who_took_over_is_said(ccc: Ccc) -> None:
    """`headless_respawned` names the process that was retired, the one that replaces it and the message that asked for it."""
    session_id, row = ccc.spawn()
    heard: list[Respawned] = []

    def receive(mechanism: str, event: Respawned) -> None:
        heard.append(event)

    ccc.plugin.retire(catch_up="what the terminal said")
    with headless_respawned.connected_to(receive):
        answer = ccc.server._inject_text_into_session(session_id, "second")
    (event,) = heard
    assert (event.retired.pid, event.headless.pid) == (row["pid"], answer["pid"])
    assert event.message_id == ccc.row(session_id)["input_command_uuids"][-1]


def test_an_interrupt_is_never_held(ccc: Ccc) -> None:
    """What is no text passes as it is, also to a process whose texts are held."""
    session_id, row = ccc.spawn()
    ccc.plugin.hold("a turn")
    ccc.server._write_stream_json_interrupt(row)
    assert ccc.heard(session_id, "interrupt") == ["interrupt"]
    assert ccc.plugin.asked == []


def test_other_engines_are_left_alone(ccc: Ccc) -> None:
    """A row of another engine is written to without a question."""
    session_id, row = ccc.spawn()
    row["engine"] = "remote-claude"
    ccc.plugin.hold("a turn")
    assert ccc.server._write_stream_json_user_message(row, "second")
    ccc.heard(session_id, "second")
    assert ccc.plugin.asked == []


def test_a_spawn_without_a_fifo_is_asked_about_too(ccc: Ccc) -> None:
    """Where CCC could not make a FIFO it writes to a pipe, and the plugins are asked all the same."""
    _, row = ccc.spawn()

    class Pipe:
        lines: list[bytes] = []  # noqa: RUF012 - one test's own
        write = lines.append

        def flush(self) -> None: ...

    row["stdin_fd"], row["proc"].stdin = None, Pipe()
    ccc.plugin.answer = lambda host, injection: Deliver(catch_up="lacked") if injection.text == "second" else Hold(reason="stale")
    assert ccc.server._write_stream_json_user_message(row, "second")
    assert not ccc.server._write_stream_json_user_message(row, "third")
    row["proc"].stdin = None
    (line,) = Pipe.lines
    content: list[dict[str, Any]] = json.loads(line)["message"]["content"]
    assert [block["text"] for block in content] == ["lacked", "second"]


def test_our_question_comes_before_ccc_s_own_check(ccc: Ccc) -> None:
    """CCC's own stale check ends a process only when the plugins let the text through, and still does then."""
    session_id, row = ccc.spawn()
    row["_stale"] = True
    ccc.plugin.hold("a background task")
    assert ccc.server._inject_text_into_session(session_id, "second")["queued"]
    assert row["proc"].poll() is None
    ccc.plugin.answer = lambda host, injection: None
    ccc.tick()
    ccc.delivered(session_id, "second")
    assert ccc.row(session_id)["pid"] != row["pid"]
    assert any("stale_transcript" in line and f"pid={row['pid']}" in line for line in ccc.activity("RETIRE"))


@pytest.mark.case("C94")
def test_a_plugin_that_raises_stops_nothing(ccc: Ccc) -> None:
    """The text is delivered once, as if nobody had objected."""
    session_id, _ = ccc.spawn()

    def fail(host: Host, injection: Injection) -> Decision | None:
        raise OSError("broken")

    ccc.plugin.answer = fail
    assert ccc.server._inject_text_into_session(session_id, "second")["ok"]
    ccc.heard(session_id, "second")
    assert ccc.texts(session_id) == [["first"], ["second"]]
