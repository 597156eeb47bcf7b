"""The file under the journal: private, shared by many processes, bounded, and sometimes unusable."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from ccc_plugins.retire_stale import journal as journal_module
from ccc_plugins.retire_stale.journal import Journal
from ccc_plugins.retire_stale.store import Store, StoreError
from tests.retire_stale.conftest import HEADLESS, PID, STARTED, begin


def test_files_are_private(journal: Journal, state_dir: Path) -> None:
    """The directory is made 0700 and the files 0600, also those that SQLite keeps beside the file while it is used."""
    previous = os.umask(0)
    try:
        with journal.store.writing() as db:
            db.execute("DELETE FROM attempts")
            found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in state_dir.iterdir()}
    finally:
        os.umask(previous)
    assert stat.S_IMODE(state_dir.stat().st_mode) == 0o700
    assert set(found) == {"retire_stale.sqlite3", "retire_stale.sqlite3-wal", "retire_stale.sqlite3-shm"}
    assert set(found.values()) == {0o600}


def test_file_that_others_could_read_is_made_private(journal: Journal) -> None:
    """A file restored with too open a mode is closed again before it is used."""
    begin(journal)
    journal.store.path.chmod(0o644)
    begin(journal)
    assert stat.S_IMODE(journal.store.path.stat().st_mode) == 0o600


def test_link_is_not_followed(journal: Journal, tmp_path: Path, state_dir: Path) -> None:
    """A link in the file's place is refused, and what it points to stays as it is."""
    state_dir.mkdir(mode=0o700)
    (tmp_path / "precious").write_text("precious")
    journal.store.path.symlink_to(tmp_path / "precious")
    with pytest.raises(StoreError, match="not a plain file"):
        begin(journal)
    assert (tmp_path / "precious").read_text() == "precious"


def test_reading_makes_no_file(journal: Journal) -> None:
    """Asking about the past of a host that has none leaves no file behind."""
    assert journal.attempts() == ()
    assert not journal.retired_by_us(PID, STARTED)
    assert journal.settle_abandoned(lambda attempt: "abandoned") == ()
    assert not journal.store.path.parent.exists()


@pytest.mark.parametrize("content", [b"not a database" * 100, b"SQLite format 3\0" + b"\xff" * 4096])
def test_corrupt_file_answers_no_and_refuses_intents(journal: Journal, state_dir: Path, content: bytes) -> None:
    """A corrupt file raises nothing where it is only read, refuses every intent, and is not replaced behind anybody's back."""
    state_dir.mkdir(mode=0o700)
    journal.store.path.write_bytes(content)
    assert journal.attempts() == ()
    assert not journal.retired_by_us(PID, STARTED)
    assert not journal.may_be_frozen(PID, STARTED)
    assert not journal.finish(1, outcome="retired", rung="terminate")
    with pytest.raises(StoreError) as caught:
        begin(journal)
    assert caught.value.path == journal.store.path
    assert journal.store.path.read_bytes() == content


def test_trouble_is_logged_once(journal: Journal, state_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What every tick runs into again is one warning that names the file."""
    state_dir.mkdir(mode=0o700)
    journal.store.path.write_bytes(b"not a database" * 100)
    for _ in range(3):
        journal.attempts()
    (warning,) = caplog.records
    assert str(journal.store.path) in warning.getMessage()


def test_locked_file_is_waited_for_and_then_refused(journal: Journal, state_dir: Path) -> None:
    """Another process's write is waited for, bounded; the reads do not wait for it at all."""
    begin(journal)
    hasty = Journal(state_dir, busy_seconds=0.05)
    with journal.store.writing():
        with pytest.raises(StoreError, match="locked"):
            begin(hasty, replace(HEADLESS, pid=PID + 1))
        assert hasty.retired_by_us(PID, STARTED)
        assert not hasty.finish(1, outcome="retired", rung="terminate")


def test_file_of_a_newer_release_is_left_alone(journal: Journal) -> None:
    """What a newer release wrote is neither read nor changed."""
    begin(journal)
    with closing(sqlite3.connect(journal.store.path)) as db:
        db.execute("PRAGMA user_version = 7")
    with pytest.raises(StoreError, match="newer release"):
        begin(journal)


def test_unusable_text_is_refused_and_not_raised_as_something_else(journal: Journal) -> None:
    """A lone surrogate cannot be stored; that is the same error as every other reason not to record."""
    with pytest.raises(StoreError):
        journal.begin(HEADLESS, mechanism="retire_stale.watcher", reason="\ud83d", freezes=True)
    assert journal.attempts() == ()


def test_error_inside_a_transaction_rolls_it_back(journal: Journal) -> None:
    """What raised half-way leaves nothing behind, and does not keep the file locked."""
    begin(journal)
    with pytest.raises(ZeroDivisionError):
        _delete_half(journal)
    begin(journal)
    assert len(journal.attempts()) == 2


def _delete_half(journal: Journal) -> None:
    with journal.store.writing() as db:
        db.execute("DELETE FROM attempts")
        raise ZeroDivisionError


def test_old_attempts_are_forgotten_and_open_ones_are_not(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file stays bounded, but an intent that is still open is never forgotten."""
    monkeypatch.setattr(journal_module, "ATTEMPTS_KEPT", 5)
    begin(journal)
    for pid in range(1, 11):
        journal.finish(begin(journal, replace(HEADLESS, pid=PID + pid)), outcome="retired", rung="terminate")
    kept = journal.attempts()
    assert [one.pid for one in kept if one.outcome is None] == [PID]
    assert len(kept) == 6


def test_many_processes_share_one_new_file(state_dir: Path) -> None:
    """Processes that all start on a directory without a file record everything, each headless claimed once."""
    code = (
        "import sys; from pathlib import Path; from tests.retire_stale.test_journal_file import record_twenty;"
        "print('ready', flush=True); sys.stdin.readline(); print(*record_twenty(Path(sys.argv[1])))"
    )
    command = [sys.executable, "-c", code, str(state_dir)]
    root = Path(__file__).parents[2]
    writers = [subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    claims: Counter[str] = Counter()
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        claims.update(writer.communicate(timeout=60)[0].split())
        assert writer.returncode == 0
    attempts = Journal(state_dir).attempts()
    assert sum(claims.values()) == len(attempts) == 80
    assert {one.outcome for one in attempts} == {"retired"}


def record_twenty(state_dir: Path) -> list[int]:
    """Record twenty retirements of different headless agents; the ids they got."""
    journal = Journal(state_dir, busy_seconds=30)
    ids = [begin(journal, replace(HEADLESS, pid=os.getpid() * 100 + number)) for number in range(20)]
    for number in ids:
        assert journal.finish(number, outcome="retired", rung="terminate", exit_code=143)
    return ids


def test_many_threads_share_one_journal(journal: Journal) -> None:
    """One instance serves any thread."""
    threads = [threading.Thread(target=_record, args=(journal, number)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert Counter(one.outcome for one in journal.attempts()) == {"retired": 8}


def _record(journal: Journal, number: int) -> None:
    journal.finish(begin(journal, replace(HEADLESS, pid=PID + number)), outcome="retired", rung="terminate")


def test_connection_is_closed_when_the_file_cannot_be_prepared(state_dir: Path) -> None:
    """A refused file is not kept open, so it can be moved away and started afresh."""
    store = Store(state_dir)
    state_dir.mkdir(mode=0o700)
    store.path.write_bytes(b"x" * 200)
    with pytest.raises(StoreError), store.reading():
        pass
    store.path.rename(state_dir / "corrupt")
    with store.writing() as db:
        assert db.execute("SELECT COUNT(*) FROM attempts").fetchone()[0] == 0
