"""What proves a delivery, and what does not, in the shapes that eight releases write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ccc_hookspecs.host.proof import Watch
from ccc_hookspecs.host.records import Head, Message

MINE = "72350742-dff3-4ee0-a645-6602d6d2b86e"
SESSION = "e2483b92-e08b-4673-a52d-a79d6e8f9a2c"


class Files:
    """A log and a transcript that a test writes."""

    def __init__(self, directory: Path) -> None:
        self.log, self.transcript = directory / "log", directory / "transcript.jsonl"
        self.log.touch()

    def watch(self, text: str = "hello", *, terminal: str | None = None, release: str | None = None) -> Watch:
        head = Head(
            id=1,
            session_id=SESSION,
            pid=1,
            start_time=1.0,
            fifo=self.log,
            log=self.log,
            cwd=self.log.parent,
            config_dir=None,
            spawned_at=0.0,
            transcript_size=0,
            resumed=False,
            mark="",
            release=release,
        )
        message = Message(
            seq=1,
            message_id=MINE,
            session_id=SESSION,
            text=text,
            state="written",
            created_at=0.0,
            terminal=terminal,
            log_offset=self.log.stat().st_size,
            transcript_offset=self.transcript.stat().st_size if self.transcript.exists() else 0,
        )
        return Watch(message, head, lambda: self.transcript if self.transcript.exists() else None)

    def prints(self, *events: dict[str, Any]) -> None:
        self._append(self.log, events)

    def records(self, *records: dict[str, Any]) -> None:
        self._append(self.transcript, records)

    def _append(self, path: Path, values: tuple[dict[str, Any], ...]) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(value) + "\n" for value in values)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def lifecycle(state: str, uuid: str = MINE) -> dict[str, Any]:
    return {"type": "command_lifecycle", "command_uuid": uuid, "state": state, "session_id": SESSION}


def test_its_user_record_proves_it(files: Files) -> None:
    """Only the record whose own id it is; one that merely mentions it does not."""
    watch = files.watch()
    assert watch.look() is None
    files.records(
        {"type": "user", "uuid": "other", "message": {"role": "user", "content": f"see {MINE}"}}, {"type": "x", "parentUuid": MINE}
    )
    assert watch.look() is None
    files.records({"type": "user", "uuid": MINE, "message": {"role": "user", "content": "hello"}})
    assert watch.look() is not None


@pytest.mark.case("C72")
def test_a_text_taken_up_mid_turn_is_proven_by_its_attachment(files: Files) -> None:
    """There is no user record of it then, and the queue's own line alone does not count."""
    watch = files.watch()
    removal = {"type": "queue-operation", "operation": "remove", "commandUuid": MINE, "reason": "absorbed_mid_turn"}
    files.records(removal)
    assert watch.look() is None
    files.records({"type": "attachment", "uuid": "a", "attachment": {"type": "queued_command", "prompt": "hello", "source_uuid": MINE}})
    assert watch.look() is not None


@pytest.mark.case("C73")
def test_a_text_that_was_queued_and_removed_is_still_owed(files: Files) -> None:
    """Enqueued and gone without a record of its own: nothing proves it."""
    watch = files.watch()
    files.records(*({"type": "queue-operation", "operation": operation, "content": "hello"} for operation in ("enqueue", "remove")))
    files.prints(lifecycle("queued"))
    assert watch.look() is None


@pytest.mark.case("C71", "C72")
def test_a_process_that_says_it_has_it_does_not_prove_it(files: Files) -> None:
    """What is queued or begun in a process is gone with the process; what is completed is not."""
    watch = files.watch()
    files.prints(lifecycle("queued"), lifecycle("started"), {"type": "system", "subtype": "init", "user_message_uuids": [MINE]})
    files.prints(lifecycle("completed", uuid="another"))
    assert watch.look() is None
    assert watch.accepted
    files.prints(lifecycle("completed"))
    assert watch.look() is not None


@pytest.mark.parametrize("key", ["user_message_uuid", "user_message_uuids"])
@pytest.mark.case("C71")
def test_a_result_that_names_it_proves_it(files: Files, key: str) -> None:
    """One that names others does not: two inputs may share one result, or a late one may be another's."""
    watch = files.watch()
    files.prints({"type": "result", "subtype": "success", "user_message_uuids": ["another"]}, {"type": "result", "subtype": "success"})
    assert watch.look() is None
    files.prints({"type": "result", "subtype": "success", key: [MINE] if key.endswith("s") else MINE})
    assert watch.look() is not None


@pytest.mark.case("C72")
def test_a_replayed_message_proves_it(files: Files) -> None:
    watch = files.watch()
    files.prints({"type": "user", "uuid": MINE, "isReplay": True})
    assert watch.look() is not None


def test_a_slash_command_is_proven_by_the_next_result_where_no_id_is_left_anywhere(files: Files) -> None:
    """Releases before 2.1.216 leave no id of it; where lifecycle events are printed, those must name it."""
    old = files.watch("/cost")
    files.prints({"type": "result", "subtype": "error_during_execution", "errors": ["No conversation found"]})
    assert old.look() is None
    files.prints({"type": "result", "subtype": "success"})
    assert old.look() is not None
    new = files.watch("/cost")
    files.prints(lifecycle("queued"), {"type": "result", "subtype": "success"})
    assert new.look() is None
    assert files.watch("cost").look() is None


@pytest.mark.parametrize("release", ["2.1.216", "2.1.332"])
def test_a_result_of_another_turn_never_proves_a_slash_command(files: Files, release: str) -> None:
    """When one is sent in the middle of a turn, the next result is that turn's: it names another message, or none when the turn failed."""
    watch, unknown = files.watch("/home/me/app.py fails", release=release), files.watch("/home/me/app.py fails")
    files.prints({"type": "result", "subtype": "success", "user_message_uuid": "another"}, {"type": "result", "subtype": "success"})
    assert (watch.look(), unknown.look()) == (None, None)
    files.prints(lifecycle("completed"))
    assert watch.look() is not None


def test_what_names_messages_at_all_names_this_one_too(files: Files) -> None:
    """A process of a release that is not known yet shows by the first event that names a message, or by its `init`, that its results do."""
    signs = [lifecycle("started", uuid="another"), {"type": "system", "subtype": "init", "claude_code_version": "2.1.216"}]
    for sign in signs:
        watch = files.watch("/cost")
        files.prints(sign, {"type": "result", "subtype": "success"})
        assert watch.look() is None


def test_a_file_that_cannot_be_read_is_told_from_one_that_proves_nothing(files: Files) -> None:
    """What stands in its place cannot be read; once it is there again, it is looked at."""
    watch = files.watch()
    assert (watch.look(), watch.blind) == (None, None)
    files.transcript.mkdir()
    assert (watch.look(), watch.blind) == (None, str(files.transcript))
    files.transcript.rmdir()
    files.records({"type": "user", "uuid": MINE})
    assert (watch.look() is not None, watch.blind) == (True, None)


def test_what_stands_before_the_message_is_not_looked_at(files: Files) -> None:
    """Only what was written after the message can prove it; each byte is read once."""
    files.prints(lifecycle("completed"))
    files.records({"type": "user", "uuid": MINE})
    assert files.watch().look() is None


def test_a_shorter_transcript_is_another_one(files: Files) -> None:
    """When the file was replaced by a shorter one, all of it counts."""
    files.records(*({"type": "user", "uuid": "old"} for _ in range(9)))
    watch = files.watch()
    files.transcript.unlink()
    files.records({"type": "user", "uuid": MINE})
    assert watch.look() is not None


@pytest.mark.case("C31", "C32")
def test_broken_lines_hide_no_proof(files: Files) -> None:
    """Runs of NUL, spliced records and half lines are stepped over."""
    watch = files.watch()
    with files.transcript.open("ab") as file:
        file.write(b"\0" * 9000 + b'{"type":"assistant","message":{"cut{"type":"user","uuid":"' + MINE.encode() + b'","sessionId":"s"}\n')
    assert watch.look() is not None


@pytest.mark.case("C34")
def test_a_line_that_is_not_finished_is_waited_for(files: Files) -> None:
    watch = files.watch()
    with files.transcript.open("a") as file:
        file.write(f'{{"type":"user","uuid":"{MINE}"')
    assert watch.look() is None
    with files.transcript.open("a") as file:
        file.write("}\n")
    assert watch.look() is not None


def test_a_typed_text_is_proven_by_a_record_of_the_same_words(files: Files) -> None:
    """A terminal gives it an id of its own, and its input field changes white space; other words and earlier records do not count."""
    files.records({"type": "user", "uuid": "t0", "message": {"role": "user", "content": "two words"}})
    watch = files.watch("two\n words", terminal="1/1.0")
    files.records({"type": "user", "uuid": "t1", "message": {"role": "user", "content": "two wordsX"}})
    files.records({"type": "user", "uuid": "t2", "isMeta": True, "message": {"role": "user", "content": "two words"}})
    assert watch.look() is None
    files.records({"type": "user", "uuid": "t3", "message": {"role": "user", "content": [{"type": "text", "text": "two words "}]}})
    assert watch.look() is not None


def test_a_long_typed_text_is_proven_although_it_is_marked_as_a_paste(files: Files) -> None:
    """2.1.332 puts tags around what comes in faster than anybody types."""
    watch = files.watch("long words", terminal="1/1.0")
    content = '\n\n<pasted_content id="b07d">\nlong words \n</pasted_content>\n'
    files.records({"type": "user", "uuid": "t", "message": {"role": "user", "content": content}})
    assert watch.look() is not None


def test_a_text_typed_mid_turn_is_proven_by_its_attachment(files: Files) -> None:
    watch = files.watch("two words", terminal="1/1.0")
    files.records({"type": "attachment", "uuid": "a", "attachment": {"type": "queued_command", "prompt": "two words", "source_uuid": "t"}})
    assert watch.look() is not None


def test_the_release_is_taken_from_what_it_says_itself(files: Files) -> None:
    watch = files.watch()
    files.prints({"type": "system", "subtype": "init", "claude_code_version": "2.1.332"})
    watch.look()
    assert watch.release == "2.1.332"


def test_the_release_is_not_missed_when_it_is_said_between_the_two_looks(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is read first: what the process printed and wrote since is found in the transcript, and then in the log."""
    watch = files.watch()
    records = watch._records

    def meanwhile() -> Iterator[dict[str, Any]]:
        files.prints({"type": "system", "subtype": "init", "claude_code_version": "2.1.6"})
        files.records({"type": "user", "uuid": MINE, "message": {"role": "user", "content": "hello"}})
        return records()

    monkeypatch.setattr(watch, "_records", meanwhile)
    assert watch.look() is not None
    assert watch.release == "2.1.6"
