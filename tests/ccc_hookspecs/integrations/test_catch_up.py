"""The turns that a session is owed: given once, kept until then, and those that it lacks now."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from ccc_hookspecs.integrations.command_center.debts import Debt
from ccc_hookspecs.integrations.command_center.given import stands_in
from ccc_hookspecs.specs import Host
from ccc_hookspecs.values import Decision, Deliver, Injection, Respawn
from tests.ccc_hookspecs.integrations.conftest import Ccc, Home, end


def transcript(ccc: Ccc, session_id: str) -> Path:
    path: Path = ccc.server.PROJECTS_ROOT / "project" / f"{session_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def prompt(*texts: str) -> str:
    return json.dumps({"type": "user", "message": {"content": [{"type": "text", "text": text} for text in texts]}}) + "\n"


def owing(ccc: Ccc) -> str:
    """A session that is owed turns of a while ago, and whose process has ended since."""
    session_id, _ = ccc.spawn()
    ccc.plugin.retire(catch_up="what the terminal said")
    # A command keeps its place at the front, so the turns are owed on.
    ccc.server.compact_session_context(session_id)
    ccc.heard(session_id, "/compact")
    end(ccc.row(session_id)["pid"])
    return session_id


def test_the_catch_up_is_given_once(ccc: Ccc) -> None:
    """The text after the one with the catch-up goes without it, and nothing is owed any more."""
    session_id, _ = ccc.spawn()
    ccc.plugin.retire(catch_up="what the terminal said")
    ccc.server._inject_text_into_session(session_id, "second")
    ccc.plugin.answer = lambda host, injection: None
    ccc.server._inject_text_into_session(session_id, "third")
    assert ccc.heard(session_id, "third") == ["third"]
    assert ccc.attachment.host.debts.get(session_id) is None


def test_a_command_keeps_its_place_at_the_front(ccc: Ccc) -> None:
    """A catch-up in front of a slash command would make a text of it, so it waits for the next text."""
    session_id, _ = ccc.spawn()
    ccc.plugin.retire(catch_up="what the terminal said")
    ccc.server._inject_text_into_session(session_id, "/cost")
    assert ccc.heard(session_id, "/cost") == ["/cost"]
    ccc.plugin.answer = lambda host, injection: None
    ccc.server._inject_text_into_session(session_id, "third")
    assert ccc.heard(session_id, "third") == ["what the terminal said", "third"]


@pytest.mark.case("C77")
def test_half_a_surrogate_pair_in_a_catch_up_is_no_obstacle(ccc: Ccc) -> None:
    """A transcript may hold what the Messages API refuses; the catch-up arrives without it."""
    session_id, _ = ccc.spawn()
    ccc.plugin.retire(catch_up="half \ud83d of it")
    ccc.server._inject_text_into_session(session_id, "second")
    assert ccc.heard(session_id, "second") == ["half \ufffd of it", "second"]


def test_a_resumed_process_is_asked_about_before_its_first_text(ccc: Ccc) -> None:
    """What a process lacks that CCC itself resumed is given to it, although nothing was retired."""
    session_id = str(uuid.uuid4())
    ccc.plugin.answer = lambda host, injection: Deliver(catch_up="what the terminal said") if not injection.headless.sent else None
    ccc.server._inject_text_into_session(session_id, "first")
    assert ccc.heard(session_id, "first") == ["what the terminal said", "first"]
    (injection,) = ccc.plugin.asked
    assert injection.headless.resumed is True


@pytest.mark.case("C01")
def test_what_a_process_lacks_now_takes_the_place_of_what_was_promised(ccc: Ccc) -> None:
    """Turns that are owed since long are not given in place of the newer ones, which the plugins know."""
    session_id = owing(ccc)
    ccc.plugin.answer = lambda host, injection: Deliver(catch_up="all that is lacking") if not injection.headless.sent else None
    ccc.server._inject_text_into_session(session_id, "second")
    assert ccc.heard(session_id, "second") == ["all that is lacking", "second"]
    ccc.server._inject_text_into_session(session_id, "third")
    assert ccc.heard(session_id, "third") == ["third"]
    assert ccc.attachment.host.debts.get(session_id) is None


@pytest.mark.case("C01")
def test_what_was_promised_is_not_lost_when_nobody_says_more(ccc: Ccc) -> None:
    """A plugin that does not look on the disk, or is switched off by now, has nothing to say of a fresh process."""
    session_id = owing(ccc)
    ccc.plugin.answer = lambda host, injection: None
    ccc.server._inject_text_into_session(session_id, "second")
    assert ccc.heard(session_id, "second") == ["what the terminal said", "second"]


def test_another_respawn_does_not_take_back_what_was_promised(ccc: Ccc) -> None:
    """A process that is replaced before it was given the turns leaves them owed to the next one."""
    session_id, _ = ccc.spawn()
    ccc.plugin.retire(catch_up="what the terminal said")
    ccc.server.compact_session_context(session_id)
    ccc.heard(session_id, "/compact")

    def answer(host: Host, injection: Injection) -> Decision | None:
        if not injection.headless.sent:
            return None
        end(injection.headless.pid)
        host.released(injection.headless)
        return Respawn(reason="stale again")

    ccc.plugin.answer = answer
    ccc.server._inject_text_into_session(session_id, "second")
    assert ccc.heard(session_id, "second") == ["what the terminal said", "second"]


@pytest.mark.case("C86")
def test_turns_that_were_given_are_not_given_again_after_a_crash(home: Home, ccc: Ccc) -> None:
    """When CCC ends between the writing and its own note, the transcript tells, also for a process that lives on."""
    session_id, _ = ccc.spawn()
    path = transcript(ccc, session_id)
    path.write_text(prompt("first"))
    owed = Debt(reason="stale", mechanism="m", catch_up="what the terminal said", promised_at=path.stat().st_size)
    ccc.attachment.host.debts.put(session_id, owed)
    path.write_text(path.read_text() + prompt("what the terminal said", "second"))
    again = home.restart(ccc)
    again.server._inject_text_into_session(session_id, "third")
    assert again.heard(session_id, "third") == ["third"]
    assert again.attachment.host.debts.get(session_id) is None


def test_what_was_said_before_the_promise_is_not_its_fulfilment(ccc: Ccc) -> None:
    """The turns of an earlier catch-up may be the same, and lacking again."""
    session_id, _ = ccc.spawn()
    path = transcript(ccc, session_id)
    path.write_text(prompt("what the terminal said", "zeroth"))
    owed = Debt(reason="stale", mechanism="m", catch_up="what the terminal said", promised_at=path.stat().st_size)
    ccc.attachment.host.debts.put(session_id, owed)
    ccc.server._inject_text_into_session(session_id, "second")
    assert ccc.heard(session_id, "second") == ["what the terminal said", "second"]


@pytest.mark.parametrize(
    ("line", "given"),
    [
        (prompt("lacked", "second"), True),
        (json.dumps({"type": "user", "message": {"content": "lacked and second"}}) + "\n", True),
        (json.dumps({"type": "assistant", "message": {"content": [{"type": "text", "text": "lacked"}]}}) + "\n", False),
        (json.dumps({"type": "user", "message": {"content": [{"type": "tool_result", "content": "lacked"}, "x"]}}) + "\n", False),
        ('{"type": "user", "message": {"content": "lac\n', False),
        (json.dumps({"type": "user", "message": None}) + "\n", False),
    ],
)
def test_only_what_a_person_s_message_holds_was_given(tmp_path: Path, line: str, given: bool) -> None:
    """Not what the model or a tool said, and nothing that cannot be read."""
    path = tmp_path / "transcript.jsonl"
    path.write_text(prompt("first") + line)
    assert stands_in(path, "lacked", 0) is given
    assert not stands_in(tmp_path / "missing.jsonl", "lacked", 0)
