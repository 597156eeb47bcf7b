"""CCC stopped and started again: what it finds again is judged as before, and what it owes is paid."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ccc_hookspecs.integrations.command_center.debts import Debt
from ccc_hookspecs.integrations.command_center.upkeep import TICKS
from ccc_hookspecs.processes import start_time
from ccc_hookspecs.values import Headless
from tests.ccc_hookspecs.integrations.conftest import Ccc, Home, disk_full, end, wait_for


def headless_of(ccc: Ccc, session_id: str) -> Headless:
    headless = ccc.attachment.host.headless_for(session_id)
    assert headless is not None
    return headless


@pytest.mark.case("C88")
def test_a_process_found_again_is_known_as_before(home: Home, ccc: Ccc) -> None:
    """After a restart a headless has the same identity and every input that it was ever sent, although CCC keeps only the last."""
    session_id, row = ccc.spawn()
    ccc.server._inject_text_into_session(session_id, "second")
    ccc.heard(session_id, "second")
    before = headless_of(ccc, session_id)
    row["input_command_uuids"] = []
    ccc.server._save_registry()
    again = home.restart(ccc)
    assert headless_of(again, session_id) == before
    assert before.sent is not None
    assert len(before.sent) == 2


@pytest.mark.case("C88")
def test_a_process_found_again_is_asked_about_and_replaced(home: Home, ccc: Ccc) -> None:
    """The first text after a restart goes to a fresh process when the one that was found again is stale."""
    session_id, row = ccc.spawn()
    again = home.restart(ccc)
    again.plugin.retire(catch_up="lacked")
    answer = again.server._inject_text_into_session(session_id, "second")
    assert answer["pid"] != row["pid"]
    assert again.heard(session_id, "second") == ["lacked", "second"]
    assert [one[-1] for one in again.texts(session_id)] == ["first", "second"]


@pytest.mark.case("C75", "C86")
def test_a_held_text_survives_a_restart(home: Home, ccc: Ccc) -> None:
    """CCC's queue is on disk and the next look finds the hold again; the text is delivered once."""
    session_id, row = ccc.spawn()
    ccc.plugin.hold("a turn")
    ccc.server._inject_text_into_session(session_id, "second")
    again = home.restart(ccc)
    again.plugin.hold("a turn")
    again.server.drain()
    assert again.server._headless_turn_in_progress(again.row(session_id))
    again.plugin.retire()
    again.tick()
    again.delivered(session_id, "second")
    assert [one[-1] for one in again.texts(session_id)] == ["first", "second"]
    assert again.row(session_id)["pid"] != row["pid"]


@pytest.mark.case("C75", "C86")
def test_what_a_session_is_owed_survives_a_restart(home: Home, ccc: Ccc) -> None:
    """CCC ends between the retirement and the delivery: the text is kept although no process is left, and its process is asked about."""
    session_id, _ = ccc.spawn()
    ccc.plugin.hold("a turn")
    ccc.server._inject_text_into_session(session_id, "second")
    ccc.plugin.retire(catch_up="lacked")
    ccc.tick()
    again = home.restart(ccc)
    again.plugin.retire(catch_up="lacked")
    assert again.delivered(session_id, "second") == ["lacked", "second"]
    assert [one[-1] for one in again.texts(session_id)] == ["first", "second"]
    assert again.attachment.host.debts.get(session_id) is None


def test_spawns_from_before_the_plugins_are_judged_too(home: Home) -> None:
    """A headless that was started without us has its identity, and the inputs that its log and CCC's row name."""
    plain = home.start(attached=False)
    session_id, row = plain.spawn()
    sent = list(row["input_command_uuids"])
    ccc = home.restart(plain)
    headless = headless_of(ccc, session_id)
    assert headless.start_time == start_time(row["pid"])
    assert headless.sent is not None
    assert [one.message_id for one in headless.sent] == sent
    assert headless.resumed is False


def test_inputs_that_nothing_names_are_unknown_not_none(home: Home) -> None:
    """Releases before 2.1.216 name no inputs in their log; what was sent before we came is then not known."""
    plain = home.start(attached=False)
    session_id, row = plain.spawn()
    row["input_command_uuids"] = []
    plain.server._save_registry()
    Path(row["log"]).write_text("\n".join(line for line in Path(row["log"]).read_text().splitlines() if "lifecycle" not in line))
    ccc = home.restart(plain)
    assert headless_of(ccc, session_id).sent is None


@pytest.mark.case("C59", "C51")
def test_a_pid_that_now_belongs_to_another_has_no_identity(home: Home, ccc: Ccc) -> None:
    """CCC recognises what it finds again by the program's name; where the start does not fit its own note, it is never signalled."""
    session_id, row = ccc.spawn()
    ccc.attachment.host.records.drop(row["pid"])
    row["started"] = "20200101T000000"
    ccc.server._save_registry()
    again = home.restart(ccc)
    headless = headless_of(again, session_id)
    assert (headless.start_time, headless.sent) == (None, None)


def test_records_of_processes_that_are_gone_are_removed(home: Home, ccc: Ccc) -> None:
    """A state directory does not fill up with the records of processes that ended while CCC was down."""
    _, row = ccc.spawn()
    folder = ccc.attachment.host.state_dir / "spawns"
    assert len(list(folder.iterdir())) == 1
    end(row["pid"])
    row["proc"].wait()
    home.restart(ccc)
    assert list(folder.iterdir()) == []


@pytest.mark.case("C31")
def test_a_record_that_cannot_be_read_says_nothing_of_what_was_sent(home: Home, ccc: Ccc, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its inputs are unknown until it can be, and not none, which would make them look foreign."""
    session_id, _ = ccc.spawn()
    before = headless_of(ccc, session_id)
    again = home.restart(ccc)
    again.attachment.host.records._known.clear()

    def no_descriptor(*_: object) -> bytes:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr("ccc_hookspecs.integrations.command_center.records.Path.read_bytes", no_descriptor)
        patch.setattr("ccc_hookspecs.integrations.command_center.records.start_time", lambda pid: before.start_time)
        assert headless_of(again, session_id).sent is None
    assert headless_of(again, session_id) == before


@pytest.mark.case("C31", "C34")
def test_a_damaged_record_costs_only_what_is_damaged(ccc: Ccc) -> None:
    """A line that a crash cut short or filled with zeros is left out; the others count."""
    session_id, row = ccc.spawn()
    (path,) = (ccc.attachment.host.state_dir / "spawns").iterdir()
    with open(path, "ab") as file:
        file.write(b'{"message_id": "1111\n' + b"\0" * 64 + b"\n[]\n")
    ccc.server._inject_text_into_session(session_id, "second")
    headless = headless_of(ccc, session_id)
    assert headless.sent is not None
    assert [one.message_id for one in headless.sent] == row["input_command_uuids"]


def test_a_record_that_cannot_be_written_is_kept_in_memory(ccc: Ccc, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk must not stop a message, nor make what was sent look foreign while CCC runs."""
    session_id, row = ccc.spawn()
    with monkeypatch.context() as patch:
        patch.setattr("ccc_hookspecs.integrations.command_center.records._append", disk_full)
        ccc.server._inject_text_into_session(session_id, "second")
    headless = headless_of(ccc, session_id)
    assert headless.sent is not None
    assert [one.message_id for one in headless.sent] == row["input_command_uuids"]
    ccc.heard(session_id, "second")


@pytest.mark.case("C31", "C88")
@pytest.mark.parametrize("short_by", [1, 30])
def test_a_write_that_falls_short_costs_no_input(home: Home, ccc: Ccc, monkeypatch: pytest.MonkeyPatch, short_by: int) -> None:
    """A disk that fills up in the middle of a line glues no two together; what was cut off is written with the next one."""
    session_id, row = ccc.spawn()
    write = os.write

    def short(descriptor: int, raw: bytes) -> int:
        return write(descriptor, raw[:-short_by] if b"message_id" in raw else raw)

    with monkeypatch.context() as patch:
        patch.setattr("ccc_hookspecs.integrations.command_center.records.os.write", short)
        ccc.server._inject_text_into_session(session_id, "second")
    ccc.server._inject_text_into_session(session_id, "third")
    ccc.heard(session_id, "third")
    sent = list(row["input_command_uuids"])
    again = home.restart(ccc)
    headless = headless_of(again, session_id)
    assert headless.sent is not None
    assert [one.message_id for one in headless.sent] == sent


def test_what_a_full_disk_kept_from_the_record_is_written_later(home: Home, ccc: Ccc, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also without a further text, so that a restart knows every input."""
    session_id, row = ccc.spawn()
    with monkeypatch.context() as patch:
        patch.setattr("ccc_hookspecs.integrations.command_center.records._append", disk_full)
        ccc.server._inject_text_into_session(session_id, "second")
    ccc.heard(session_id, "second")
    ccc.tick(TICKS)
    again = home.restart(ccc)
    headless = headless_of(again, session_id)
    assert headless.sent is not None
    assert [one.message_id for one in headless.sent] == row["input_command_uuids"]


def test_what_was_owed_in_a_file_that_cannot_be_read_is_forgotten(ccc: Ccc) -> None:
    """A damaged note costs no message."""
    session_id, _ = ccc.spawn()
    debts = ccc.attachment.host.debts
    debts.put(session_id, Debt(reason="stale", mechanism="m"))
    (path,) = (ccc.attachment.host.state_dir / "owed").iterdir()
    path.write_text(json.dumps({"unknown": 1}))
    assert debts.get(session_id) is None
    ccc.server._inject_text_into_session(session_id, "second")
    assert ccc.heard(session_id, "second") == ["second"]


def test_debts_that_nobody_came_for_are_forgotten(home: Home, ccc: Ccc) -> None:
    """A state directory does not fill up with sessions that were given up."""
    debts = ccc.attachment.host.debts
    old, young = "0b66f575-6a40-4785-b5a5-0581958b7040", "7713fc42-3b60-46cb-a3fb-0fcfcfc4e913"
    for session_id in (old, young):
        debts.put(session_id, Debt(reason="stale", mechanism="m"))
    os.utime(ccc.attachment.host.state_dir / "owed" / f"{old}.json", (1.0, 1.0))
    again = home.restart(ccc).attachment.host.debts
    assert (again.get(old), again.get(young)) == (None, debts.get(young))


def test_nobody_else_may_read_what_is_kept(ccc: Ccc) -> None:
    """Files and directories are for this user alone."""
    session_id, _ = ccc.spawn()
    ccc.attachment.host.debts.put(session_id, Debt(reason="stale", mechanism="m"))
    folder = ccc.attachment.host.state_dir
    modes = [os.stat(path).st_mode & 0o077 for path in (folder, *folder.rglob("*"))]
    assert modes == [0] * len(modes)


def test_a_process_that_ended_by_itself_needs_nobody(ccc: Ccc) -> None:
    """A text for a session without a process is delivered by CCC's own resume, and the new process is asked about."""
    session_id, row = ccc.spawn()
    end(row["pid"])
    ccc.server._inject_text_into_session(session_id, "second")
    ccc.heard(session_id, "second")
    (injection,) = ccc.plugin.asked
    assert injection.headless.pid == ccc.row(session_id)["pid"]
    assert wait_for(lambda: headless_of(ccc, session_id)).resumed is True
