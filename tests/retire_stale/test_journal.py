"""What is on disk about retirements, also when many processes use it at once or the file is unusable."""

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

from ccc_hookspecs.processes import start_time
from ccc_hookspecs.values import Headless, Rung
from ccc_plugins.retire_stale import journal as journal_module
from ccc_plugins.retire_stale.journal import AlreadyClaimed, Ending, Journal
from ccc_plugins.retire_stale.store import Store, StoreError

HEADLESS = Headless(session_id="72350742-dff3-4ee0-a645-6602d6d2b86e", pid=4_000_001, start_time=17.25)
PID, STARTED = 4_000_001, 17.25


@pytest.fixture
def journal(state_dir: Path) -> Journal:
    return Journal(state_dir)


def begin(journal: Journal, headless: Headless = HEADLESS, *, freezes: bool = True) -> int:
    return journal.begin(headless, mechanism="retire_stale.watcher", reason="a terminal took a turn", freezes=freezes)


def test_intent_and_its_end_are_kept_whole(journal: Journal) -> None:
    """An attempt holds who, why and since when from its begin, and how it ended from its finish."""
    attempt = begin(journal)
    (opened,) = journal.attempts()
    assert (opened.pid, opened.start_time, opened.session_id) == (PID, STARTED, HEADLESS.session_id)
    assert (opened.mechanism, opened.reason, opened.frozen) == ("retire_stale.watcher", "a terminal took a turn", True)
    assert (opened.host_pid, opened.host_start_time) == (os.getpid(), start_time(os.getpid()))
    assert (opened.rung, opened.outcome, opened.ended_at) == (None, None, None)
    assert journal.finish(attempt, outcome="retired", rung="terminate", exit_code=143)
    (closed,) = journal.attempts()
    assert (closed.outcome, closed.rung, closed.exit_code, closed.frozen) == ("retired", "terminate", 143, False)
    assert closed.ended_at is not None
    assert closed.ended_at >= closed.began_at == opened.began_at


@pytest.mark.case("C83")
@pytest.mark.parametrize(
    ("outcome", "rung", "ours"),
    [
        (None, "freeze", True),
        ("retired", "terminate", True),
        ("retired", "kill", True),
        ("failed", "terminate", True),
        ("failed", "kill", True),
        ("failed", "freeze", False),
        ("deferred", "rejudge", False),
        ("kept", "rejudge", False),
        ("exited", "freeze", False),
        ("interrupted", "rejudge", False),
    ],
)
def test_exit_is_ours_only_when_we_may_have_ended_it(journal: Journal, outcome: Ending | None, rung: Rung, ours: bool) -> None:
    """An open intent, a retirement and an attempt that had sent SIGTERM claim the exit; every other end leaves it to somebody else."""
    attempt = begin(journal)
    if outcome is not None:
        journal.finish(attempt, outcome=outcome, rung=rung)
    assert journal.retired_by_us(PID, STARTED) is ours
    assert not journal.retired_by_us(PID, STARTED + 0.01)
    assert not journal.retired_by_us(PID + 1, STARTED)


def test_last_attempt_decides_whose_exit_it_is(journal: Journal) -> None:
    """A later attempt that let the process go takes back what an earlier one claimed."""
    journal.finish(begin(journal), outcome="failed", rung="kill")
    journal.finish(begin(journal), outcome="deferred", rung="rejudge")
    assert not journal.retired_by_us(PID, STARTED)


def test_closed_attempt_stays_as_it_was_closed(journal: Journal) -> None:
    """A second finish does not overwrite the first."""
    attempt = begin(journal)
    journal.finish(attempt, outcome="retired", rung="kill")
    journal.finish(attempt, outcome="deferred", rung="rejudge")
    assert [one.outcome for one in journal.attempts()] == ["retired"]


def test_frozen_mark_lasts_as_long_as_the_attempt(journal: Journal) -> None:
    """A process may be frozen by us from its intent to its end, and not when the intent says that it was stopped before."""
    attempt = begin(journal)
    assert journal.may_be_frozen(PID, STARTED)
    journal.finish(attempt, outcome="deferred", rung="rejudge")
    assert not journal.may_be_frozen(PID, STARTED)
    begin(journal, freezes=False)
    assert not journal.may_be_frozen(PID, STARTED)


@pytest.mark.case("C89")
def test_open_intent_of_a_live_host_is_a_claim(journal: Journal) -> None:
    """While another process that lives has an open intent, nobody else gets one on the same headless, but on others."""
    begin(journal)
    with sleeper() as other:
        _hand_over(journal, other.pid, start_time(other.pid))
        with pytest.raises(AlreadyClaimed) as caught:
            begin(journal)
        assert caught.value.host_pid == other.pid
        begin(journal, replace(HEADLESS, start_time=18.0))
        other.kill()
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        begin(journal)
    assert [one.outcome for one in journal.attempts()] == [None, None, "abandoned"]


def test_claim_of_a_host_of_unknown_identity_stands_while_its_pid_is_in_use(journal: Journal) -> None:
    """Unknown is not dead: only a pid that nobody uses frees the claim."""
    begin(journal)
    with sleeper() as other:
        _hand_over(journal, other.pid, None)
        with pytest.raises(AlreadyClaimed):
            begin(journal)
        other.kill()
        other.wait(5)
        begin(journal)


def test_own_intent_that_could_not_be_closed_does_not_block(journal: Journal) -> None:
    """An open intent of this very process is taken over, since the session's lock lets only one thread come here."""
    begin(journal)
    begin(journal)
    assert [one.outcome for one in journal.attempts()] == [None, "abandoned"]


def sleeper() -> subprocess.Popen[bytes]:
    return _Sleeper(["sleep", "60"])


class _Sleeper(subprocess.Popen[bytes]):
    def __exit__(self, *args: object) -> None:
        self.kill()
        self.wait(10)


def _hand_over(journal: Journal, pid: int, started: float | None) -> None:
    """Make the open attempts another host's."""
    with journal.store.writing() as db:
        db.execute("UPDATE attempts SET host_pid = ?, host_start_time = ? WHERE outcome IS NULL", (pid, started))


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
        "import sys; from pathlib import Path; from tests.retire_stale.test_journal import record_twenty;"
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
