"""What processes wrote about themselves is read whatever its state, and is about a process only when that is proven."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccc_hookspecs.claude import registry as module
from ccc_hookspecs.claude.registry import Registry, RegistryRecord, own_pid_domain, parse_proc_start, read_registry
from ccc_hookspecs.processes import start_time

CORPUS = Path(__file__).parents[2] / "corpus"
S = "7d5f2c31-4c58-4a36-9d7f-0c2d6a1b9e10"
TICKS = os.sysconf("SC_CLK_TCK")


def _write(config: Path, name: str, data: Any, *, old: bool = True) -> Path:
    path = config / "sessions" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    if old:
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


def _own(**more: object) -> dict[str, object]:
    """A record of the process that runs the test."""
    start = start_time(os.getpid())
    assert start is not None
    return {"pid": os.getpid(), "sessionId": S, "procStart": str(round(start * TICKS)), **more}


def test_every_recorded_registry_is_read(tmp_path: Path) -> None:
    """All records that real releases wrote are understood, with times in seconds."""
    files = sorted(CORPUS.glob("*/*/registry/*.json"))
    assert len(files) > 50
    for file in files:
        written = json.loads(file.read_text())
        _write(tmp_path, file.name, file.read_bytes())
        record = read_registry(tmp_path).by_pid[written["pid"]]
        assert (record.session_id, record.version, record.kind) == (written["sessionId"], written["version"], "interactive")
        assert record.entrypoint in ("cli", "sdk-cli")
        assert record.status == written.get("status")
        assert record.started_at == written["startedAt"] / 1000
        assert record.updated_at == (written["updatedAt"] / 1000 if "updatedAt" in written else None)
        assert record.proc_start is not None


@pytest.mark.case("C02", "C85")
def test_a_session_keeps_all_its_records(tmp_path: Path) -> None:
    """Several processes on one session, dead ones among them, stay a list; only the living one is identified."""
    for pid in (11, 12, 13, 14):
        _write(tmp_path, f"{pid}.json", {"pid": pid, "sessionId": S, "procStart": "5"})
    _write(tmp_path, f"{os.getpid()}.json", _own())
    registry = read_registry(tmp_path)
    assert sorted(record.pid for record in registry.by_session[S]) == sorted([11, 12, 13, 14, os.getpid()])
    living = [record.pid for record in registry.by_session[S] if record.identifies(record.pid, start_time(record.pid))]
    assert living == [os.getpid()]
    assert registry.of(11, start_time(11)) is None
    assert registry.of(os.getpid(), start_time(os.getpid())) is not None


@pytest.mark.case("C46")
def test_unknown_shapes_and_half_written_files_are_no_records(tmp_path: Path) -> None:
    """Legacy files, snake case, empty and cut files, and values of the wrong type leave the good record alone."""
    _write(tmp_path, "123.json", {"pid": 123, "sessionId": S, "procStart": "77", "status": "shell"})
    _write(tmp_path, "pid-77.json", {"pid": 77, "session_id": S})
    _write(tmp_path, "123.0abc.key", {"peerToken": "x"})
    _write(tmp_path, "012.json", {"pid": 12, "sessionId": S})
    broken = {
        "78.json": {"pid": 78, "session_id": S},
        "79.json": b"",
        "80.json": b'{"pid": 80, "sessionId": "7d5f2c',
        "81.json": [1],
        "82.json": {"pid": 82, "sessionId": 5},
        "83.json": {"pid": 99, "sessionId": S},
        "84.json": b"\xff\xfe{",
        "85.json": b"[" * 100_000,
        "86.json": b" " * 300_000,
    }
    for name, data in broken.items():
        _write(tmp_path, name, data)
    (tmp_path / "sessions" / "87.json").mkdir()
    (tmp_path / "sessions" / "88.json").symlink_to("88.json")
    registry = read_registry(tmp_path)
    assert [record.pid for record in registry.records] == [123]
    assert registry.records[0].status == "shell"
    assert set(registry.broken) == {*broken, "87.json", "88.json"}


@settings(deadline=None)
@given(
    data=st.fixed_dictionaries(
        {},
        optional={
            key: st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
            for key in (
                "pid",
                "sessionId",
                "procStart",
                "entrypoint",
                "kind",
                "status",
                "version",
                "startedAt",
                "updatedAt",
                "pidDomain",
                "cwd",
            )
        },
    )
)
def test_no_value_in_a_record_raises(data: dict[str, Any]) -> None:
    """Any value under any key gives a record of the right types or none."""
    record = module._record(data, 5)
    if record is not None:
        assert record.session_id
        assert record.started_at is None or record.started_at >= 0
        assert record.identifies(5, None) is False


@pytest.mark.case("C46", "C47", "C51")
def test_only_the_exact_start_identifies_a_process(tmp_path: Path) -> None:
    """Another start, a missing or unreadable one on either side, and another pid identify nobody, however fresh the record is."""
    start = start_time(os.getpid())
    assert start is not None
    pid = os.getpid()
    good = RegistryRecord(pid=pid, session_id=S, proc_start=start, updated_at=1.0)
    assert good.identifies(pid, start)
    assert not good.identifies(pid, start + 1 / TICKS if sys.platform == "linux" else start + 2)
    assert not good.identifies(pid + 1, start)
    assert not good.identifies(pid, None)
    assert not good.identifies(pid, 0.0)
    for missing in (None, 0.0):
        assert not RegistryRecord(pid=pid, session_id=S, proc_start=missing).identifies(pid, start)
    _write(tmp_path, f"{pid}.json", _own(procStart="soon", updatedAt=9e11))
    assert read_registry(tmp_path).of(pid, start) is None


def test_a_record_of_another_machine_or_namespace_identifies_nobody() -> None:
    """In a shared home the same pid may run elsewhere; a record that names our own place, or none, still counts."""
    pid, start = os.getpid(), start_time(os.getpid())
    own = RegistryRecord(pid=pid, session_id=S, proc_start=start, pid_domain=own_pid_domain())
    assert own.identifies(pid, start)
    for domain in ("linux:someothermachine:pid:[1]", "linux:host", ""):
        assert not RegistryRecord(pid=pid, session_id=S, proc_start=start, pid_domain=domain).identifies(pid, start)


@pytest.mark.skipif(sys.platform != "linux", reason="the form that Linux has")
def test_our_own_place_is_named_by_machine_and_process_namespace() -> None:
    """The domain has the three parts that a real record has."""
    system, machine, namespace = own_pid_domain().split(":", 2)
    assert system == "linux"
    assert len(machine) in (0, 32)
    assert namespace.startswith("pid:[")


def test_a_start_is_read_in_the_form_of_each_system() -> None:
    """Clock ticks on Linux, the date that ps prints in UTC elsewhere; anything else is not understood."""
    assert parse_proc_start("250", "linux") == 250 / TICKS
    assert parse_proc_start("Mon Nov 30 12:17:05 2026", "darwin") == 1_796_041_025.0
    assert parse_proc_start("Tue Dec  1 00:00:00 2026 ", "darwin") == 1_796_083_200.0
    for value in (None, 250, "", "-1", "2.5", "9" * 400, "Mon Nov 30 12:17:05 2026", "\u0662"):
        assert parse_proc_start(value, "linux") is None
    for value in ("250", "Mon Xxx 30 12:17:05 2026", "lun. 30 nov. 12:17:05 2026"):
        assert parse_proc_start(value, "darwin") is None


def test_elsewhere_a_start_is_compared_to_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only whole seconds are written, the process that started within that second is meant."""
    monkeypatch.setattr(sys, "platform", "darwin")
    own_pid_domain.cache_clear()
    record = RegistryRecord(pid=5, session_id=S, proc_start=1_796_041_025.0)
    assert record.identifies(5, 1_796_041_025.87)
    assert not record.identifies(5, 1_796_041_027.1)
    monkeypatch.undo()
    own_pid_domain.cache_clear()


@pytest.mark.case("C16", "C17")
def test_a_record_says_which_session_and_nothing_about_a_file(tmp_path: Path) -> None:
    """A session id left behind by `/clear` or made up by `--continue` is handed on as it is; the other session has no record."""
    _write(tmp_path, f"{os.getpid()}.json", _own(entrypoint="cli", updatedAt=1_796_041_025_000))
    registry = read_registry(tmp_path)
    assert [record.session_id for record in registry.records] == [S]
    assert "0a8e3f42-1111-4222-8333-944445555666" not in registry.by_session


@pytest.mark.case("C54")
def test_a_background_kind_is_handed_on_beside_the_entrypoint(tmp_path: Path) -> None:
    """`kind` and `entrypoint` are two facts, and one never stands in for the other."""
    _write(tmp_path, "9.json", {"pid": 9, "sessionId": S, "kind": "bg", "entrypoint": "cli"})
    (record,) = read_registry(tmp_path).records
    assert (record.kind, record.entrypoint) == ("bg", "cli")


def test_a_missing_registry_is_not_an_unreadable_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old releases have none; one that may not be listed is something else."""
    assert read_registry(tmp_path) == Registry(state="missing")
    _write(tmp_path, "9.json", {"pid": 9, "sessionId": S})
    assert read_registry(tmp_path).state == "read"

    def refuse(_path: str) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refuse)
    assert read_registry(tmp_path).state == "unreadable"


def test_only_changed_files_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with the same time, size and inode keeps its record; changed, new and removed ones are noticed."""
    for pid in (5, 6, 7):
        _write(tmp_path, f"{pid}.json", {"pid": pid, "sessionId": S, "status": "idle"})
    first = read_registry(tmp_path)
    read: list[str] = []
    original = module._read

    def note(path: str, name: str) -> RegistryRecord | None:
        read.append(name)
        return original(path, name)

    monkeypatch.setattr(module, "_read", note)
    second = read_registry(tmp_path, first)
    assert read == []
    assert second == first
    _write(tmp_path, "6.json", {"pid": 6, "sessionId": S, "status": "busy"}, old=False)
    _write(tmp_path, "8.json", {"pid": 8, "sessionId": S})
    (tmp_path / "sessions" / "7.json").unlink()
    third = read_registry(tmp_path, second)
    assert sorted(read) == ["6.json", "8.json"]
    assert {record.pid: record.status for record in third.records} == {5: "idle", 6: "busy", 8: None}


@pytest.mark.case("C47")
def test_a_file_that_was_just_written_is_read_again(tmp_path: Path) -> None:
    """A status of the same length, written in place within the clock's grain of the last look, is not missed."""
    path = _write(tmp_path, "5.json", {"pid": 5, "sessionId": S, "status": "idle"}, old=False)
    first = read_registry(tmp_path)
    seen = path.stat()
    with path.open("r+b") as file:
        file.write(json.dumps({"pid": 5, "sessionId": S, "status": "busy"}).encode())
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert read_registry(tmp_path, first).records[0].status == "busy"


def test_a_file_that_vanishes_meanwhile_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends between the listing and the look leaves no record and no broken file."""
    _write(tmp_path, "5.json", {"pid": 5, "sessionId": S})
    listed = os.listdir(tmp_path / "sessions")
    monkeypatch.setattr(os, "listdir", lambda _path: [*listed, "6.json"])
    registry = read_registry(tmp_path)
    assert [record.pid for record in registry.records] == [5]
    assert registry.broken == ()
