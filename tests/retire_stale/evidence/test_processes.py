"""Whom a session belongs to: the exact headless, the people at terminals, and nobody by mistake."""

from __future__ import annotations

import os
import sys
import time
import uuid
from pathlib import Path

import pytest

from ccc_hookspecs.claude.registry import Registry, RegistryRecord
from ccc_hookspecs.processes import start_time
from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.evidence.processes import (
    Identity,
    InteractiveWriter,
    ProcessRow,
    ProcessTable,
    age,
    identity_of,
    interactive_writers,
    is_claude,
    is_stream_json_row,
    same_process,
    same_user,
    snapshot,
    unnamed_directories,
)
from tests.retire_stale.evidence.conftest import Actors

S = "7d5f2c31-4c58-4a36-9d7f-0c2d6a1b9e10"
N = "0a8e3f42-1111-4222-8333-944445555666"
TTY = "/dev/pts/3"
NOBODY = Registry(state="missing")


def _row(pid: int, *argv: str, tty: str | None = None, status: str = "sleeping", **more: object) -> ProcessRow:
    values: dict[str, object] = {"start_time": float(pid), "ppid": 1, "name": "claude", "tty": tty, "status": status, **more}
    return ProcessRow(pid=pid, argv=argv, **values)  # type: ignore[arg-type]  # a test's own keywords


def _table(*rows: ProcessRow) -> ProcessTable:
    return ProcessTable({row.pid: row for row in rows})


def _registry(*records: tuple[int, str, str | None], kind: str = "interactive", start: float | None = None) -> Registry:
    return Registry(
        records=tuple(
            RegistryRecord(pid=pid, session_id=session, proc_start=start or float(pid), entrypoint=entrypoint, kind=kind)
            for pid, session, entrypoint in records
        )
    )


def _found(writers: tuple[InteractiveWriter, ...]) -> list[tuple[int, str, bool]]:
    return [(writer.row.pid, writer.by, writer.sure) for writer in writers]


def _headless(pid: int, start: float | None) -> Headless:
    return Headless(session_id=S, pid=pid, start_time=start)


@pytest.mark.case("C05", "C57", "C85")
def test_a_real_terminal_is_found_beside_its_real_headless(actors: Actors) -> None:
    """A process with a terminal on the session is found; the headless, which has a terminal too, is left out by identity."""
    session = str(uuid.uuid4())
    headless = actors.start("-p", "--input-format", "stream-json", "--resume", session, tty=True)
    terminal = actors.start(f"--resume={session}", tty=True)
    actors.start("-r", str(uuid.uuid4()), tty=True)
    actors.start("--resume", session, "--fork-session", tty=True)
    actors.start(session, name="grep", tty=True)
    table = snapshot()
    assert _found(interactive_writers(table, NOBODY, session, identity_of(headless.pid))) == [(terminal.pid, "command line", True)]
    assert interactive_writers(table, NOBODY, session, identity_of(terminal.pid)) == ()
    assert is_stream_json_row(table.rows[headless.pid]) is True
    assert is_stream_json_row(table.rows[terminal.pid]) is False


@pytest.mark.skipif(sys.platform != "linux", reason="reads the working directory from /proc")
def test_a_terminal_that_names_no_session_is_possible_in_its_directory(actors: Actors, tmp_path: Path) -> None:
    """A release without arguments or registry may be on any session of the directory it works in, and of no other."""
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    here = actors.start(tty=True, cwd=tmp_path)
    actors.start(tty=True, cwd=tmp_path / "other")
    actors.start(cwd=tmp_path)
    actors.start("--resume", N, tty=True, cwd=tmp_path)
    table = snapshot()
    assert _found(interactive_writers(table, NOBODY, S, None, tmp_path / "link")) == [(here.pid, "directory", False)]
    assert interactive_writers(table, NOBODY, S, None) == ()
    assert os.path.realpath(tmp_path) in unnamed_directories(table, NOBODY)
    named = _registry((here.pid, N, "cli"), start=start_time(here.pid))
    assert os.path.realpath(tmp_path) not in unnamed_directories(table, named)
    assert interactive_writers(table, named, S, None, tmp_path) == ()


@pytest.mark.case("C02", "C08")
def test_the_registry_finds_terminals_and_windows() -> None:
    """Every process that the registry proves to be on the session counts, with a terminal or through an editor's window."""
    table = _table(_row(10, "claude", tty=TTY), _row(11, "claude"), _row(12, "claude", tty=TTY), _row(13, "claude", tty=TTY))
    registry = _registry((10, S, "cli"), (11, S, "claude-vscode"), (12, S, "something-new"), (13, N, "cli"), (14, S, "cli"))
    assert _found(interactive_writers(table, registry, S)) == [(10, "registry", True), (11, "registry", True), (12, "registry", False)]


@pytest.mark.case("C46", "C47", "C59")
def test_a_record_of_another_start_finds_nobody() -> None:
    """When the pid was used again the record is about nobody, and the process that has it now is not on the session."""
    registry = _registry((10, S, "cli"), start=5.0)
    assert interactive_writers(_table(_row(10, "sshd", tty=TTY)), registry, S) == ()
    assert interactive_writers(_table(_row(10, "claude", tty=TTY)), registry, S) == ()
    zombie = _row(10, tty=TTY, status="zombie")
    assert interactive_writers(_table(zombie), _registry((10, S, "cli")), S) == ()


@pytest.mark.parametrize("entrypoint", ["sdk-cli", "sdk-ts", "sdk-py"])
def test_what_a_program_drives_is_nobodys_terminal(entrypoint: str) -> None:
    """A headless or a print-mode run is none, even with a terminal and whatever the other source says."""
    table = _table(_row(10, "claude", "--resume", S, tty=TTY))
    assert interactive_writers(table, _registry((10, S, entrypoint)), S) == ()
    for flags in (("-p",), ("-p", "--input-format", "stream-json")):
        table = _table(_row(10, "claude", "--resume", S, *flags, tty=TTY))
        assert interactive_writers(table, NOBODY, S) == ()
        assert interactive_writers(table, _registry((10, S, "cli")), S) == ()


@pytest.mark.case("C53")
def test_daemons_and_hosts_are_nobodys_terminal_and_what_they_host_is_judged_by_itself() -> None:
    """The daemon, the pty host and a spare are left out; the process inside is found when it has a terminal."""
    inner = ("/home/x/.local/share/claude/versions/2.1.212", "--resume", S)
    table = _table(
        _row(10, "claude", "daemon", "run"),
        _row(11, "claude", "--bg-pty-host", "/run/x", "--", *inner, tty=TTY),
        _row(12, "claude", "--bg-spare", tty=TTY),
        _row(13, *inner, tty="/dev/pts/9"),
        _row(14, *inner),
    )
    assert _found(interactive_writers(table, NOBODY, S)) == [(13, "command line", True)]
    assert interactive_writers(table, _registry((10, S, "cli"), kind="daemon"), S, Identity(13, 13.0)) == ()


@pytest.mark.case("C54")
def test_a_background_kind_neither_hides_nor_makes_a_terminal() -> None:
    """A person's terminal that is registered as `bg` is still found, and a process without one is only possible."""
    table = _table(_row(10, "claude", tty=TTY), _row(11, "claude"))
    writers = interactive_writers(table, _registry((10, S, "cli"), (11, S, "cli"), kind="bg"), S)
    assert _found(writers) == [(10, "registry", True), (11, "registry", False)]


@pytest.mark.case("C56")
@pytest.mark.parametrize("more", [{"status": "stopped", "tty": TTY}, {"status": "sleeping", "tty": None}], ids=["stopped", "closed"])
def test_a_stopped_terminal_and_one_without_its_window_are_not_sure(more: dict[str, str]) -> None:
    """Nobody types into a stopped process or into one whose terminal was closed, though it may write again later."""
    table = _table(_row(10, "claude", "--resume", S, **more))
    assert _found(interactive_writers(table, _registry((10, S, "cli")), S)) == [(10, "registry", False)]
    assert all(not writer.sure for writer in interactive_writers(table, NOBODY, S))


@pytest.mark.case("C16", "C17")
def test_a_record_and_a_command_line_that_disagree_are_not_sure() -> None:
    """A terminal started on one session and registered on another may be on either; what names neither is found by neither."""
    table = _table(_row(10, "claude", "--resume", S, tty=TTY), _row(11, "claude", "--continue", tty=TTY))
    registry = _registry((10, N, "cli"), (11, N, "cli"))
    assert _found(interactive_writers(table, registry, S)) == [(10, "command line", False)]
    assert _found(interactive_writers(table, registry, N)) == [(10, "registry", True), (11, "registry", True)]


@pytest.mark.case("C55")
def test_a_terminal_that_cannot_be_seen_is_possible_and_one_that_is_not_there_is_none() -> None:
    """Unknown is not the same as none: only the former may be a person."""
    unseen = _row(10, "claude", "--resume", S, unknown=frozenset({"tty"}))
    assert _found(interactive_writers(_table(unseen), NOBODY, S)) == [(10, "command line", False)]
    assert interactive_writers(_table(_row(10, "claude", "--resume", S)), NOBODY, S) == ()


@pytest.mark.case("C57")
def test_an_unattended_run_under_a_terminal_counts_and_its_carrier_does_not() -> None:
    """What `script` runs cannot be told from a person's terminal; `script` itself and a shell around it are no Claude Code."""
    table = _table(
        _row(10, "script", "-qefc", f"claude --resume {S}", tty=TTY, name="script"),
        _row(11, "sh", "-c", f"claude --resume {S}", tty=TTY, name="sh"),
        _row(12, "claude", "--resume", S, tty=TTY),
    )
    assert _found(interactive_writers(table, NOBODY, S)) == [(12, "command line", True)]


@pytest.mark.case("C58")
def test_twenty_mentions_of_a_session_are_nobody_on_it() -> None:
    """Shells, searches and editors with the id in their command line are not on the session."""
    rows = [_row(n, "zsh", "-c", f"sleep {n}; claude --resume {S}", tty=TTY, name="zsh") for n in range(10, 30)]
    rows += [_row(40, "grep", S, tty=TTY, name="grep"), _row(41, "vim", f"/p/{S}.jsonl", tty=TTY, name="vim")]
    table = _table(*rows)
    assert interactive_writers(table, NOBODY, S) == ()
    assert [is_claude(row) for row in rows] == [False] * 22


@pytest.mark.case("C57")
def test_the_headless_is_left_out_even_when_its_start_is_unknown() -> None:
    """Whoever may be the excluded process is not reported as a terminal; another start under the same pid is somebody else."""
    table = _table(_row(10, "claude", "--resume", S, tty=TTY))
    for start in (10.0, None, 0.0):
        assert interactive_writers(table, NOBODY, S, Identity(10, start)) == ()
    assert len(interactive_writers(table, NOBODY, S, Identity(10, 11.0))) == 1
    assert len(interactive_writers(table, NOBODY, S.upper())) == 1


@pytest.mark.case("C52", "C50")
@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (_row(1, "claude"), True),
        (_row(1, "/home/x/.local/bin/claude", name="2.1.212"), True),
        (_row(1, "node", "server.js", name="2.1.212"), False),
        (ProcessRow(pid=1, name="claude"), None),
        (ProcessRow(pid=1, name="2.1.212"), None),
        (ProcessRow(pid=1, name="/home/x/.local/b"), None),
        (ProcessRow(pid=1, name="bash"), False),
        (_row(1, "2.1.212"), None),
        (_row(1, "2.1.212", exe="/opt/tool/2.1.212"), False),
        (_row(1, "2.1.212", exe="/home/x/.local/share/claude/versions/2.1.212"), True),
    ],
)
def test_what_cannot_be_read_is_neither_claude_nor_not(row: ProcessRow, expected: bool | None) -> None:
    """With a command line the answer is sure; with only a fitting name it is unknown."""
    assert is_claude(row) is expected


def test_without_arguments_the_input_format_is_unknown() -> None:
    """Releases up to 2.1.61 show no arguments, so whether they are fed by a program cannot be told; others never are."""
    assert is_stream_json_row(_row(1, "claude")) is None
    assert is_stream_json_row(ProcessRow(pid=1, name="claude")) is None
    assert is_stream_json_row(_row(1, "sshd", name="sshd")) is False


@pytest.mark.case("C48", "C51", "C59")
def test_a_process_is_the_headless_by_pid_and_start_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of the wall clock changes nothing; another start is another process; a missing start is unknown, never a match."""
    here = identity_of(os.getpid())
    monkeypatch.setattr(time, "time", lambda: 176.0)
    row = snapshot().rows[os.getpid()]
    assert same_process(_headless(here.pid, here.start_time), row) is True
    assert here.start_time is not None
    assert same_process(_headless(here.pid, here.start_time + 0.01), row) is False
    assert same_process(_headless(here.pid + 1, here.start_time), row) is False
    for missing in (None, 0.0):
        assert same_process(_headless(here.pid, missing), row) is None
        assert same_process(_headless(here.pid, here.start_time), ProcessRow(pid=here.pid, start_time=missing)) is None


def test_a_process_of_the_same_user_is_told_from_another() -> None:
    """By the real user; unknown when it was not looked up."""
    assert same_user(_row(1, "claude", uid=os.getuid())) is True
    assert same_user(_row(1, "claude", uid=os.getuid() + 1)) is False
    assert same_user(_row(1, "claude")) is None


def test_a_process_has_an_age_by_its_start(actors: Actors) -> None:
    """Seconds since the start, whatever the wall clock says; without a start it has none."""
    process = actors.start()
    seconds = age(process.pid, start_time(process.pid))
    assert seconds is not None
    assert 0 <= seconds < 60
    assert age(process.pid, None) is None
    assert age(0, 1.0) is None
    assert identity_of(2**22 + 1).start_time is None
