"""Situations of public reports that are judged from the files alone, staged record by record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.retire_stale.evidence.written_session import NOW, WrittenSession, iso, new_id

FRESH_IDLE = ("fresh", "idle")
STALE_IDLE = ("stale", "idle")


@pytest.fixture
def session(tmp_path: Path) -> WrittenSession:
    """A session that its headless began, one turn old."""
    made = WrittenSession(tmp_path)
    made.turn()
    return made


@pytest.mark.case("C09", "C10")
def test_markers_of_a_bridge_are_no_advance(session: WrittenSession) -> None:
    """An hour of marker lines without a `uuid` leaves the headless fresh, and nothing is read twice."""
    for _ in range(60):
        session.raw({"type": "bridge-session", "sessionId": session.id, "bridgeSessionId": "b"})
        assert session.verdicts() == FRESH_IDLE


@pytest.mark.case("C12")
def test_records_that_land_late_count_on_landing(session: WrittenSession) -> None:
    """A block whose stamps lie an hour back makes the headless stale when it arrives, whatever the headless did meanwhile."""
    before = session.leaf
    session.turn()
    assert session.verdicts() == FRESH_IDLE
    session.write("user", stamp=NOW - 3600, parentUuid=before, message={"role": "user", "content": "typed"}, entrypoint="cli")
    session.write("assistant", stamp=NOW - 3590, message={"id": "msg_x", "role": "assistant", "content": []}, entrypoint="cli")
    assert session.verdicts() == STALE_IDLE


@pytest.mark.case("C13")
def test_every_line_of_the_file_counts_whatever_session_it_names(session: WrittenSession) -> None:
    """A terminal's turn under another `sessionId` in the same file is an advance."""
    session.foreign(sessionId=new_id())
    assert session.verdicts() == STALE_IDLE


@pytest.mark.case("C14")
def test_an_id_that_resume_prints_from_the_start_moves_nothing(tmp_path: Path) -> None:
    """A log that names another session from its first event on, while the turns land in this file, serves this session."""
    session = WrittenSession(tmp_path)
    real, tag = session.say, new_id()
    session.say = lambda kind, **fields: real(kind, **{**fields, "session_id": tag})  # type: ignore[method-assign]
    session.turn()
    session.turn()
    assert session.verdicts() == FRESH_IDLE


@pytest.mark.case("C18")
def test_a_clear_takes_the_headless_to_another_session(session: WrittenSession) -> None:
    """After `/clear` the headless no longer serves the session it is registered under."""
    session.say("conversation_reset")
    session.say("system", subtype="init", session_id=new_id())
    session.say("result", subtype="success", session_id=new_id())
    judgement = session.judge()
    assert judgement.attribution.verdict == "stale"
    assert "went on to session" in judgement.attribution.reason


@pytest.mark.case("C19")
def test_what_the_headless_itself_writes_elsewhere_too_is_its_own(session: WrittenSession) -> None:
    """Records of the headless that also stand in a second file change nothing here, and more of its turns here are its own."""
    (session.transcript.parent / f"{new_id()}.jsonl").write_bytes(session.transcript.read_bytes())
    session.turn()
    assert session.verdicts() == FRESH_IDLE


@pytest.mark.case("C20")
def test_progress_records_inside_its_own_turn_are_no_ones(session: WrittenSession) -> None:
    """Side forks of progress records, which are never printed, leave the headless fresh."""
    session.prompt()
    call = session.answer("calls a tool")
    for number in range(3):
        session.write("progress", parentUuid=call, data={"type": "hook_progress", "n": number})
    session.answer("after the tool")
    session.end()
    assert session.verdicts() == FRESH_IDLE


@pytest.mark.case("C21")
def test_a_broken_link_alone_is_no_verdict(session: WrittenSession) -> None:
    """An own turn whose parent was never written, and a snapshot with the next prompt's id, leave the headless fresh."""
    session.leaf = new_id()
    session.raw({"type": "file-history-snapshot", "messageId": new_id(), "snapshot": {}})
    session.turn()
    assert session.verdicts() == FRESH_IDLE


@pytest.mark.case("C22")
def test_what_is_new_counts_not_what_is_last(session: WrittenSession) -> None:
    """A terminal's turn before a record that repeats the last known `uuid` is seen; a repeated first line is not."""
    last = session.leaf
    first = json.loads(session.transcript.read_bytes().split(b"\n")[0])
    session.raw(first)
    assert session.verdicts() == FRESH_IDLE
    session.foreign()
    session.write("attachment", uuid=last, attachment={"type": "hook_additional_context"})
    assert session.verdicts() == STALE_IDLE


@pytest.mark.case("C23")
@pytest.mark.parametrize(
    "kind", ["last-prompt", "mode", "custom-title", "agent-name", "pr-link", "queue-operation", "summary", "cost-state"]
)
def test_trailers_without_a_uuid_are_no_advance(session: WrittenSession, kind: str) -> None:
    """Whoever writes them: the headless, the host that renames a session, or a terminal that leaves."""
    session.raw({"type": kind, "sessionId": session.id, "leafUuid": session.leaf})
    assert session.verdicts() == FRESH_IDLE


@pytest.mark.case("C24", "C79")
def test_own_records_that_land_after_the_result_are_its_own(session: WrittenSession) -> None:
    """Until the last answer is on disk the headless is not known to be fresh; when it has landed with its trailers it is."""
    session.prompt()
    late = session.answer("the last block", written=False)
    session.end()
    assert session.verdicts() == ("unknown", "idle")
    assert not session.judge().resumable
    session.write("assistant", uuid=late, parentUuid=session.leaf, message={"id": "msg_late", "role": "assistant", "content": []})
    session.write("system", subtype="turn_duration", parentUuid=late, durationMs=5)
    assert session.verdicts() == FRESH_IDLE


@pytest.mark.case("C25")
def test_answers_are_known_by_message_id_too(session: WrittenSession) -> None:
    """A log whose event ids never occur in the transcript still tells its own answers."""
    session.prompt()
    session.answer(printed=new_id())
    session.end()
    assert session.verdicts() == FRESH_IDLE


@pytest.mark.case("C27")
def test_a_flood_of_progress_does_not_hide_whose_the_turns_are(session: WrittenSession) -> None:
    """Twenty thousand progress records between two own turns; and a terminal's turn behind them is found."""
    lines = b"".join(
        json.dumps({"type": "progress", "uuid": new_id(), "parentUuid": session.leaf, "data": {"n": n}}).encode() + b"\n"
        for n in range(20_000)
    )
    with session.transcript.open("ab") as file:
        file.write(lines)
    session.turn()
    assert session.verdicts() == FRESH_IDLE
    session.foreign()
    assert session.verdicts() == STALE_IDLE


@pytest.mark.case("C28")
@pytest.mark.parametrize("root", [False, True], ids=["from the middle", "a new root"])
def test_a_rewind_in_a_terminal_is_an_advance(session: WrittenSession, root: bool) -> None:
    """The file only grows, but the live branch changed."""
    middle = session.leaf
    session.turn()
    session.write("user", parentUuid=None if root else middle, message={"role": "user", "content": "edited"}, entrypoint="cli")
    session.raw({"type": "last-prompt", "leafUuid": middle, "sessionId": session.id})
    assert session.verdicts() == STALE_IDLE


@pytest.mark.case("C29")
def test_a_notice_that_waits_in_the_queue_is_the_headless_own_work(session: WrittenSession) -> None:
    """A finished task's notice, enqueued and then written without a turn, is nobody else's turn, and is pending until it is taken."""
    session.raw(
        {"type": "queue-operation", "operation": "enqueue", "timestamp": iso(NOW + 9), "sessionId": session.id, "content": "notice"}
    )
    assert session.verdicts() == ("fresh", "busy")
    session.raw({"type": "queue-operation", "operation": "dequeue", "timestamp": iso(NOW + 10), "sessionId": session.id})
    notice = {"role": "user", "content": "<task-notification>\n<task-id>b1</task-id></task-notification>"}
    session.write("user", parentUuid=session.leaf, message=notice, origin={"kind": "task-notification"}, entrypoint="sdk-cli")
    assert session.judge().attribution.verdict == "fresh"


@pytest.mark.case("C30")
def test_a_prompt_that_nobody_sent_is_own_once_the_headless_answered_it(session: WrittenSession) -> None:
    """A teammate's message appears as a prompt; the headless's answer below it shows that it was in its memory."""
    session.leaf = session.write(
        "user", parentUuid=session.leaf, message={"role": "user", "content": "from a teammate"}, entrypoint="sdk-cli"
    )
    session.say("system", subtype="init")
    session.answer()
    session.end()
    assert session.verdicts() == FRESH_IDLE


@pytest.mark.case("C33")
def test_stamps_out_of_order_change_nothing(session: WrittenSession) -> None:
    """Own records stamped half a second before the one above them are own; a terminal's, stamped before all, is an advance."""
    session.prompt()
    session.answer()
    session.end()
    session.write("system", subtype="turn_duration", parentUuid=session.leaf, stamp=NOW - 0.5)
    assert session.verdicts() == FRESH_IDLE
    session.foreign(timestamp=iso(NOW - 100))
    assert session.verdicts() == STALE_IDLE


@pytest.mark.case("C60")
def test_a_turn_is_work_from_the_prompt_to_the_result(session: WrittenSession) -> None:
    """Nothing printed yet, only an init, or text without a result: busy each time, with no child to show for it."""
    session.prompt()
    session.log.write_bytes(session.log.read_bytes().rsplit(b'{"type": "command_lifecycle"', 2)[0])
    assert session.judge().idleness.verdict == "busy"
    session.say("system", subtype="init")
    assert session.judge().idleness.verdict == "busy"
    session.answer()
    assert session.judge().idleness.verdict == "busy"
    session.end()
    assert session.verdicts() == FRESH_IDLE


@pytest.mark.case("C62")
def test_silence_inside_a_turn_is_work(session: WrittenSession) -> None:
    """Seven minutes of nothing, or of retries only, after an answer without a result: busy."""
    session.prompt()
    session.answer()
    session.say("system", subtype="api_retry", attempt=3)
    assert session.judge(now=NOW + 420).idleness.verdict == "busy"
    assert session.judge(now=NOW + 86_400).idleness.verdict == "busy"


@pytest.mark.case("C69")
def test_a_turn_that_nobody_sent_is_open_between_init_and_result(session: WrittenSession) -> None:
    """Autonomous turns are work while they last; results are matched to no count of inputs."""
    for _ in range(3):
        session.say("system", subtype="init")
        assert session.judge().idleness.verdict == "busy"
        session.answer()
        session.say("result", subtype="success")
        assert session.verdicts() == FRESH_IDLE


@pytest.mark.case("C70")
def test_an_interrupted_turn_is_closed_and_its_prompt_the_headless_own(session: WrittenSession) -> None:
    """After an interrupt with its error result the headless is idle and fresh."""
    session.prompt()
    note = {"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]}
    uid = session.write("user", parentUuid=session.leaf, message=note, entrypoint="sdk-cli")
    session.say("user", message=note, parent_tool_use_id=None, uuid=uid)
    session.end("error_during_execution")
    assert session.verdicts() == FRESH_IDLE
