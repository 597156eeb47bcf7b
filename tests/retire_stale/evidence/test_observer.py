"""Both verdicts from files on disk, staged as eight releases write them, compactly and with spaces."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.evidence.observer import Observer
from tests.retire_stale.builders import QUIET, RELEASES, Head, Json, Session, call, new_id, said, stamp, verdicts

FRESH_IDLE = ("fresh", "idle")
STALE_IDLE = ("stale", "idle")


@pytest.fixture(params=[(release, spaced) for release in RELEASES for spaced in (False, True)], ids=lambda p: f"{p[0]}{' spaced' * p[1]}")
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Session:
    """An empty session of each release."""
    release, spaced = request.param
    return Session(tmp_path, release, spaced=spaced)


@pytest.fixture
def newest(tmp_path: Path) -> Session:
    return Session(tmp_path)


def unreported(tmp_path: Path) -> Session:
    """Of a release whose log names no inputs."""
    return Session(tmp_path, "2.1.61")


# --- a turn of its own ---------------------------------------------------------------------------------------------------


@pytest.mark.case("C60", "C71")
def test_a_turn_is_work_from_the_write_to_the_result(session: Session) -> None:
    """Written, read, taken, begun, answered: busy at each step, fresh or not yet known to be; then fresh and idle."""
    head = Head(session)
    head.ask()
    observer = head.observer()
    assert verdicts(head.judge(observer)) == FRESH_IDLE
    sent = head.send()
    assert verdicts(head.judge(observer)) == ("fresh", "busy")
    head.take("second", sent)
    assert verdicts(head.judge(observer)) == ("fresh", "busy")
    assert head.judge().idleness.verdict == "busy"
    head.begin()
    assert verdicts(head.judge(observer)) == ("fresh", "busy")
    answer = head.answer(printed=False)
    assert verdicts(head.judge(observer)) == ("unknown", "busy")
    head.show(answer)
    assert verdicts(head.judge(observer)) == ("fresh", "busy")
    head.finish(sent)
    assert verdicts(head.judge(observer)) == FRESH_IDLE
    assert verdicts(head.judge()) == FRESH_IDLE


def test_a_command_that_it_handles_itself_is_work_until_it_left_something(session: Session) -> None:
    """Up to 2.1.168 only the transcript shows that one was taken, and `/context` takes its time."""
    head = Head(session)
    head.ask()
    sent = head.send()
    head.lifecycle(sent, "started")
    session.operation("dequeue")
    assert head.judge().idleness.verdict == "busy"
    echoed = session.user(head.tip, "<command-name>/context</command-name>", "sdk-cli")
    session.user(echoed["uuid"], "<local-command-stdout>## Context Usage</local-command-stdout>", "sdk-cli")
    head.begin()
    head.finish(sent)
    assert verdicts(head.judge()) == FRESH_IDLE


@pytest.mark.parametrize("text", ["Unknown skill: nonsense", "Unknown command: /nonsense", "Unknown slash command: nonsense"])
def test_a_command_that_does_not_exist_is_no_turn_of_another_writer(session: Session, text: str) -> None:
    """What says so is never printed, and hangs below nothing that is."""
    head = Head(session)
    head.ask()
    sent = head.send()
    head.lifecycle(sent, "started")
    session.operation("dequeue")
    caveat = session.user(head.tip, "<local-command-caveat>Caveat", "sdk-cli", isMeta=True)
    session.user(caveat["uuid"], text, "sdk-cli")
    head.begin()
    head.finish(sent)
    assert verdicts(head.judge()) == FRESH_IDLE


@pytest.mark.parametrize("release", ["2.0.42", "2.1.6", "2.1.61", "2.1.119", "2.1.168"])
def test_an_input_just_behind_another_is_not_taken_with_it(tmp_path: Path, release: str) -> None:
    """What was taken a moment before the second was written is the first."""
    session = Session(tmp_path, release)
    head = Head(session)
    head.ask()
    first = head.send(session.tick())
    session.operation("dequeue")
    session.user(head.tip, "<command-name>/cost</command-name>", "sdk-cli")
    head.begin()
    head.finish(first)
    assert head.judge().idleness.verdict == "idle"
    second = head.send(session.now + 0.3)
    assert any(sign.startswith(f"input {second.message_id[:4]} unacknowledged") for sign in head.judge().idleness.signs)


@pytest.mark.case("C72")
@pytest.mark.parametrize("release", ["2.1.119", "2.1.332"])
def test_a_text_that_joins_a_running_turn_is_finished_with_it(tmp_path: Path, release: str) -> None:
    """It leaves a queue operation and an attachment, no record of its own; what it was is known from the release's own ways."""
    session = Session(tmp_path, release)
    head = Head(session)
    first = head.send()
    head.take("first", first)
    head.begin()
    called = call("Bash")
    head.answer(called)
    second = head.send()
    head.lifecycle(second, "queued")
    session.operation("enqueue")
    assert head.judge().idleness.verdict == "busy"
    head.result_of(called)
    session.operation("remove")
    head.own(session.attachment(head.tip, "queued_command", source_uuid=second.message_id, prompt=[said("and this")]))
    head.answer()
    assert head.judge().idleness.verdict == "busy"
    head.finish(first, second)
    assert verdicts(head.judge()) == FRESH_IDLE


@pytest.mark.case("C73")
@pytest.mark.parametrize("release", ["2.1.61", "2.1.332"])
def test_an_input_that_was_taken_and_left_nothing_is_still_owed(tmp_path: Path, release: str) -> None:
    """Enqueued and removed a moment later, with no record and no word in the log."""
    session = Session(tmp_path, release)
    head = Head(session)
    head.ask()
    head.send()
    session.operation("enqueue")
    session.operation("remove")
    assert verdicts(head.judge()) == ("fresh", "busy")


@pytest.mark.case("C71")
def test_a_result_ends_no_input_that_is_not_finished_by_name(newest: Session) -> None:
    """Two inputs, one result, the second finished first: busy until the first is, too."""
    head = Head(newest)
    first, second = head.send(), head.send()
    head.take("one", first)
    head.begin()
    head.answer()
    head.finish(second)
    assert verdicts(head.judge()) == ("fresh", "busy")
    head.lifecycle(first, "completed")
    assert verdicts(head.judge()) == FRESH_IDLE


@pytest.mark.case("C70")
def test_an_interrupted_turn_is_over(session: Session) -> None:
    """Its prompt and the note of the interruption are the headless's."""
    head = Head(session)
    sent = head.send()
    head.take("stop me", sent)
    head.begin()
    head.show(head.own(session.user(head.tip, [said("[Request interrupted by user]")], "sdk-cli")))
    head.event("result", "error_during_execution", is_error=True)
    head.lifecycle(sent, "cancelled")
    assert verdicts(head.judge()) == FRESH_IDLE


def test_inputs_that_the_host_does_not_know_leave_it_unknown(session: Session) -> None:
    """However quiet everything is."""
    head = Head(session)
    head.ask()
    assert verdicts(head.judge(sent=None)) == ("fresh", "unknown")


def test_a_background_agent_of_2_1_6_ends_with_its_notice(tmp_path: Path) -> None:
    """It is launched in the result of its call, and only the transcript tells its end."""
    session = Session(tmp_path, "2.1.6")
    head = Head(session)
    head.tool("Task", {"run_in_background": True}, "Async agent launched successfully.\nagentId: a36a0b8 (This is an internal ID)")
    assert head.judge().idleness.signs == ("background task a36a (agent) open",)
    session.operation("enqueue", content="<task-notification>\n<task-id>a36a0b8</task-id>\n<status>completed</status>")
    assert head.judge().idleness.verdict == "idle"


# --- somebody else's turn ------------------------------------------------------------------------------------------------


@pytest.mark.case("C01", "C88")
def test_a_turn_of_a_terminal_makes_it_stale_for_good(session: Session) -> None:
    """Whether or not it was seen before, whether the terminal is still there, and whatever the headless does afterwards."""
    head = Head(session)
    head.ask()
    observer = head.observer()
    assert verdicts(head.judge(observer)) == FRESH_IDLE
    asked, answered = session.turn()
    judged = head.judge()
    assert verdicts(judged) == STALE_IDLE
    assert [f.uuid for f in judged.attribution.foreign] == [asked["uuid"], answered["uuid"]]
    assert all(session.transcript.read_bytes()[f.offset :].startswith(b"{") for f in judged.attribution.foreign)
    assert head.judge(observer).attribution.verdict == "stale"
    head.ask("and answers without it")
    assert verdicts(head.judge()) == STALE_IDLE
    assert head.judge(observer).attribution.verdict == "stale"


def test_a_turn_in_the_middle_of_its_own_makes_it_stale(session: Session) -> None:
    """Its late answer stands last, and proves nothing."""
    head = Head(session)
    head.ask()
    sent = head.send()
    head.take("long", sent)
    head.begin()
    session.turn()
    assert verdicts(head.judge()) == ("stale", "busy")
    head.answer()
    head.finish(sent)
    assert verdicts(head.judge()) == STALE_IDLE


def test_a_terminal_that_was_closed_before_its_answer_makes_it_stale(session: Session) -> None:
    """The prompt is on disk, and is all there is."""
    head = Head(session)
    head.ask()
    session.user(session.last, "SLOW 30")
    assert verdicts(head.judge()) == STALE_IDLE


@pytest.mark.parametrize("kind", ["note", "boundary", "bash"])
def test_whatever_changes_the_conversation_makes_it_stale(session: Session, kind: str) -> None:
    """A terminal's interruption, compaction or shell command."""
    head = Head(session)
    head.ask()
    if kind == "boundary":
        session.system(None, "compact_boundary", "cli", logicalParentUuid=session.last)
    else:
        session.user(session.last, "<bash-input>ls</bash-input>" if kind == "bash" else "[Request interrupted by user]")
    assert verdicts(head.judge()) == STALE_IDLE


def test_a_terminal_that_only_looked_leaves_it_fresh(session: Session) -> None:
    """What it appends at its exit is no conversation."""
    head = Head(session)
    head.ask()
    leaf = session.last
    echoed = session.user(leaf, "<command-name>/exit</command-name>")
    session.user(echoed["uuid"], "<local-command-stdout>Bye!</local-command-stdout>")
    for kind in ("last-prompt", "mode", "custom-title", "file-history-snapshot", "summary"):
        session.trailer(kind, leafUuid=leaf)
    assert verdicts(head.judge()) == FRESH_IDLE


def test_a_terminal_that_answers_by_itself_during_a_turn_makes_it_stale(tmp_path: Path) -> None:
    """A scheduled turn of a terminal has no prompt that counts; by its entry point it is not the headless's own answer to be printed."""
    session = Session(tmp_path, "2.1.332")
    head = Head(session)
    head.ask()
    head.take()
    head.begin()
    scheduled = session.user(head.tip, "cron says hi", isMeta=True)
    session.assistant(scheduled["uuid"], said("hi"))
    assert verdicts(head.judge()) == ("stale", "busy")


# --- a fresh process -----------------------------------------------------------------------------------------------------


def forked(session: Session, branch: str) -> Head:
    """A headless resumed on a forked transcript. `branch`: where it was told to go on, at the end or before it."""
    first = Head(session)
    first.ask("first")
    base = session.last
    mine = first.ask("rolled back")[1]["uuid"]
    theirs = session.turn(parent=base)[1]["uuid"]
    session.trailer("last-prompt", leafUuid=mine)
    session.tick(60)
    head = Head(session, resumed=True)
    head.tip = theirs if branch == "last" else mine
    return head


@pytest.mark.parametrize("branch", ["last", "earlier"])
@pytest.mark.parametrize("noted", [True, False], ids=["size noted", "size not noted"])
def test_a_fresh_process_on_a_fork_is_fresh(session: Session, branch: str, noted: bool) -> None:
    """Before its first record and after it, also when it goes on below the branch that does not stand last; else it would be
    retired for ever."""
    head = forked(session, branch)
    changes: Json = {"transcript_size": session.transcript.stat().st_size, "resumed": True} if noted else {}
    observer = head.observer(**changes)
    assert head.judge(observer, **changes).attribution.verdict == "fresh"
    for _ in range(3):
        head.ask("after resume")
        assert verdicts(head.judge(observer, **changes)) == FRESH_IDLE
        assert verdicts(head.judge(**changes)) == FRESH_IDLE
    session.turn(parent=head.tip)
    assert head.judge(observer, **changes).attribution.verdict == "stale"
    assert verdicts(head.judge(**changes)) == STALE_IDLE


def test_a_fresh_process_is_stale_before_its_first_record(session: Session) -> None:
    """A terminal's turn after it loaded the session is news, although the headless wrote nothing yet."""
    Head(session).ask()
    session.tick(60)
    head = Head(session, resumed=True)
    session.turn()
    assert head.judge().attribution.verdict == "stale"
    head.ask(
        "first of its own",
    )
    assert verdicts(head.judge()) == STALE_IDLE


def test_where_nothing_tells_what_it_loaded_it_is_unknown(session: Session) -> None:
    """No time of its start, no size and no record of its own."""
    Head(session).ask()
    head = Head(session, resumed=True)
    assert head.judge(spawned_at=None).attribution.verdict == "unknown"
    head.ask()
    assert verdicts(head.judge(spawned_at=None)) == FRESH_IDLE


def test_a_record_that_was_half_written_at_its_start_is_news(newest: Session) -> None:
    """The host noted a size in the middle of a line: that line was not loaded."""
    Head(newest).ask()
    newest.tick(60)
    whole = newest.transcript.read_bytes()
    newest.user(newest.last, "typed while it started")
    line = newest.transcript.read_bytes()[len(whole) :]
    newest.transcript.write_bytes(whole + line[:40])
    head = Head(newest, resumed=True)
    size = newest.transcript.stat().st_size
    newest.raw(line[40:])
    assert head.judge(transcript_size=size, resumed=True).attribution.verdict == "stale"


def test_a_size_larger_than_the_file_tells_nothing(newest: Session) -> None:
    """The file is another one, or was cut."""
    head = Head(newest)
    head.ask()
    assert head.judge(transcript_size=10**9).attribution.verdict == "unknown"


# --- compactions ---------------------------------------------------------------------------------------------------------


def compact(session: Session, tip: str | None, entrypoint: str, again: list[Json]) -> tuple[Json, Json]:
    """A compaction: history appended anew, as from the second one on by 2.1.168 and later; the boundary; the summary."""
    for record in again:
        session.write(record)
    boundary = session.system(None, "compact_boundary", entrypoint, logicalParentUuid=tip)
    return boundary, session.user(boundary["uuid"], "This session is being continued", entrypoint, isCompactSummary=True)


def history(session: Session) -> list[Json]:
    records = [json.loads(line) for line in session.transcript.read_bytes().splitlines()]
    return [record for record in records if "uuid" in record]


def test_its_own_compactions_leave_it_fresh(session: Session) -> None:
    """Also the second, before which the history stands once more; and a resumed one repeats what it had loaded from others."""
    first = Head(session)
    first.ask()
    session.turn()
    session.tick(60)
    head = Head(session, resumed=True)
    for again in ([], history(session)):
        head.ask()
        sent = head.send()
        head.lifecycle(sent, "started")
        session.operation("dequeue")
        boundary, summary = compact(session, head.tip, "sdk-cli", again)
        head.print({"type": "system", "subtype": "compact_boundary", "session_id": session.id, "uuid": boundary["uuid"]})
        head.show(head.own(summary))
        head.finish(sent)
        assert verdicts(head.judge()) == FRESH_IDLE
    head.ask("after the compaction")
    assert verdicts(head.judge()) == FRESH_IDLE
    session.turn()
    assert verdicts(head.judge()) == STALE_IDLE


@pytest.mark.parametrize("spawned", [True, False], ids=["start known", "start not known"])
def test_a_compaction_elsewhere_makes_it_stale(session: Session, spawned: bool) -> None:
    """Although its own records stand behind the terminal's turn once more."""
    head = Head(session)
    head.ask()
    session.turn()
    compact(session, session.last, "cli", history(session))
    judged = head.judge() if spawned else head.judge(spawned_at=None)
    assert judged.attribution.verdict == "stale"


def test_inputs_before_a_compaction_elsewhere_stay_acknowledged(tmp_path: Path) -> None:
    """History that the terminal appended anew, the headless's own records among it, hides none of what was taken before."""
    session = Session(tmp_path, "2.1.168")
    head = Head(session)
    head.ask()
    sent = head.send()
    session.operation("dequeue")
    session.user(head.tip, "<command-name>/cost</command-name>", "sdk-cli")
    head.begin()
    head.finish(sent)
    compact(session, session.last, "cli", history(session))
    assert verdicts(head.judge()) == STALE_IDLE


# --- files that are not as they were -------------------------------------------------------------------------------------


@pytest.mark.case("C44")
def test_a_transcript_that_was_deleted_leaves_it_unknown(session: Session) -> None:
    """Its memory is the only copy: it is not given up."""
    head = Head(session)
    head.ask()
    observer = head.observer()
    head.judge(observer)
    session.transcript.unlink()
    for judged in (head.judge(observer), head.judge()):
        assert (judged.attribution.verdict, judged.resumable) == ("unknown", False)


@pytest.mark.case("C45")
def test_a_headless_without_a_transcript_yet_is_fresh(session: Session) -> None:
    """It appears with its first turn."""
    head = Head(session)
    observer = head.observer()
    assert head.judge(observer).attribution.verdict == "fresh"
    head.ask()
    assert verdicts(head.judge(observer)) == FRESH_IDLE


@pytest.mark.case("C36")
def test_a_transcript_that_was_replaced_is_unknown_once_and_read_anew(session: Session) -> None:
    """A shorter file in its place, or one that was cut; then what stands in it counts."""
    head = Head(session)
    for _ in range(5):
        head.ask()
    observer = head.observer()
    assert verdicts(head.judge(observer)) == FRESH_IDLE
    kept = b"".join(session.transcript.read_bytes().splitlines(keepends=True)[:-1])
    other = session.folder / "other"
    other.write_bytes(kept)
    os.replace(other, session.transcript)
    judged = head.judge(observer)
    assert (judged.attribution.verdict, judged.resumable) == ("unknown", False)
    assert head.judge(observer).attribution.verdict == "unknown"  # its last answer is not in it
    session.turn()
    assert head.judge(observer).attribution.verdict == "stale"


@pytest.mark.case("C41")
def test_a_transcript_that_moved_is_read_with_everything_it_printed(session: Session) -> None:
    """A project folder was renamed in the middle of a long session."""
    head = Head(session)
    for _ in range(12):
        head.ask()
    observer = head.observer()
    head.judge(observer)
    moved = session.folder / "elsewhere"
    moved.mkdir()
    path = Path(shutil.move(session.transcript, moved))
    assert verdicts(head.judge(observer, path=path)) == FRESH_IDLE


@pytest.mark.parametrize("how", ["missing", "replaced", "cut"])
def test_without_its_whole_log_it_is_unknown(session: Session, how: str) -> None:
    """What it printed is not known, so its own answers look like anybody's: neither stale nor idle."""
    head = Head(session)
    head.ask()
    observer = head.observer()
    head.judge(observer)
    content = head.log.read_bytes()
    head.log.unlink()
    if how != "missing":
        head.log.write_bytes(b"{}\n" if how == "replaced" else content[: len(content) // 2])
    head.take("second")
    session.assistant(head.tip, said("SEEN"), entrypoint="sdk-cli")
    if how == "missing":
        head.log.unlink(missing_ok=True)
    for judged in (head.judge(observer), head.judge(observer if how != "missing" else None)):
        assert judged.attribution.verdict == "unknown"
        assert judged.idleness.verdict != "idle"


def test_a_person_who_typed_is_known_without_a_log(newest: Session) -> None:
    """By the entry point of the records."""
    head = Head(newest)
    head.ask()
    head.log.unlink()
    newest.turn()
    assert verdicts(head.judge()) == ("stale", "unknown")


def test_a_log_that_stands_still_is_no_proof_of_idleness(tmp_path: Path) -> None:
    """The input is in the transcript, with an answer, but the log stopped before: its turn may go on."""
    session = unreported(tmp_path)
    head = Head(session)
    head.ask()
    observer = head.observer()
    head.judge(observer)
    head.take("second")
    assert head.judge(observer).idleness.verdict != "idle"
    head.answer(printed=False)
    for _ in range(3):
        assert head.judge(observer).idleness.verdict != "idle"
        assert head.judge().idleness.verdict != "idle"


def test_a_transcript_that_goes_on_alone_is_not_idle_at_that_look(newest: Session) -> None:
    """With nobody else on the session; with a terminal there it is the terminal's doing."""
    head = Head(newest)
    head.ask()
    for others, verdict in ((False, "unknown"), (True, "idle")):
        observer = head.observer()
        head.judge(observer)
        newest.turn()
        assert head.judge(observer, around=replace(QUIET, others=others)).idleness.verdict == verdict


@pytest.mark.parametrize("name", ["transcript", "log"])
def test_a_directory_in_place_of_a_file_is_unknown(newest: Session, name: str) -> None:
    """Nothing on disk raises."""
    head = Head(newest)
    head.ask()
    path = newest.transcript if name == "transcript" else head.log
    path.unlink()
    path.mkdir()
    assert head.judge().attribution.verdict == "unknown"


# --- another session -----------------------------------------------------------------------------------------------------


def cleared(session: Session, *, answered: bool) -> tuple[Head, Json | None]:
    """A headless that was given `/clear`, and perhaps one more turn, which stands in the other session's file."""
    head, other = Head(session), Session(session.folder, session.release, spaced=session.spaced)
    head.ask()
    sent = head.send()
    head.lifecycle(sent, "started")
    session.operation("dequeue")
    head.session = other
    head.begin()
    head.finish(sent)
    answer = None
    if answered:
        head.tip = None
        answer = head.ask("after the clear")[1]
    head.session = session
    return head, answer


@pytest.mark.case("C18", "C16")
def test_a_headless_that_was_cleared_serves_another_session(session: Session) -> None:
    """It is stale for this one, and has settled when the other session's file holds its last answer."""
    head, answer = cleared(session, answered=True)
    judged = head.judge()
    assert judged.attribution.verdict == "stale"
    assert judged.idleness.verdict == "idle"
    assert answer is not None
    beside = next(path for path in session.folder.glob("*.jsonl") if path != session.transcript)
    observer = head.observer()
    head.judge(observer)
    assert observer.settled()
    beside.unlink()
    assert not observer.settled()


def test_a_headless_that_was_cleared_and_not_asked_since_has_settled(session: Session) -> None:
    """All that it answered stands here."""
    head, _ = cleared(session, answered=False)
    observer = head.observer()
    assert head.judge(observer).attribution.verdict == "stale"
    assert observer.settled()


@pytest.mark.case("C19")
@pytest.mark.parametrize("alternating", [True, False])
def test_a_headless_that_writes_two_files_went_nowhere(newest: Session, alternating: bool) -> None:
    """Its events name another session, but its answers stand in this one's file, too."""
    head, other = Head(newest), Session(newest.folder)
    head.ask()
    head.session = other
    head.event("system", "init")
    if alternating:
        head.session = newest
        head.event("system", "status", status=None)
        head.session = other
    sent = head.send()
    head.session = newest
    head.take("both", sent)
    record = head.answer(printed=False)
    head.session = other
    head.show(record)
    other.write({**record, "sessionId": other.id})
    head.finish(sent)
    head.session = newest
    assert verdicts(head.judge()) == FRESH_IDLE


def test_a_session_id_that_is_no_id_leads_nowhere(newest: Session) -> None:
    """A log that was tampered with names a path: nothing raises, and nothing is read there."""
    head = Head(newest)
    head.ask()
    head.print({"type": "assistant", "message": {"id": "m", "content": []}, "session_id": "../../x\0y", "uuid": new_id()})
    head.print({"type": "result", "session_id": "../../x\0y"})
    observer = head.observer()
    assert head.judge(observer).attribution.verdict == "stale"
    assert not observer.settled()


@pytest.mark.parametrize("entrypoint", ["", " ", "\u2028", "\ud800"])
def test_whatever_a_record_of_another_writer_says_of_its_origin_it_counts(newest: Session, entrypoint: str) -> None:
    """What is only quoted must not keep the verdict from being told."""
    head = Head(newest)
    head.ask()
    newest.user(newest.last, "from elsewhere", entrypoint)
    assert head.judge().facts().attribution == "stale"


# --- what is looked at ---------------------------------------------------------------------------------------------------


def test_facts_carry_what_decided(newest: Session) -> None:
    """As signals give it to subscribers."""
    head = Head(newest)
    head.ask()
    newest.turn()
    judged = head.judge()
    facts = judged.facts()
    assert (facts.attribution, facts.idleness) == ("stale", "idle")
    assert facts.transcript_size == newest.transcript.stat().st_size
    assert facts.log_size == head.log.stat().st_size
    assert judged.release == "2.1.332"
    assert judged.on_disk


def test_a_host_without_a_log_knows_nothing(newest: Session) -> None:
    """A headless without a known log is never idle, and stale only by what a person typed."""
    head = Head(newest)
    head.ask()
    bare = Headless(session_id=newest.id, pid=1, start_time=None)
    observer = Observer(bare, None)
    observer.read(bare, newest.transcript)
    assert verdicts(observer.judge(QUIET)) == ("unknown", "unknown")
    assert not observer.reports_states


def test_stamps_say_nothing_once_its_own_records_are_there(session: Session) -> None:
    """A clock that was set back between spawn and turns changes no verdict."""
    head = Head(session)
    head.spawned_at = session.now + 86_400
    head.ask()
    assert verdicts(head.judge()) == FRESH_IDLE
    session.user(session.last, "typed", timestamp=stamp(0.0))
    assert verdicts(head.judge()) == STALE_IDLE
