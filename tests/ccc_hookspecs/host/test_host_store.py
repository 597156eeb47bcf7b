"""What the host keeps on disk: private, versioned, safe to use from several processes at once."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ccc_hookspecs.host.database import FILE_NAME, MIGRATIONS
from ccc_hookspecs.host.errors import StateError, UnknownMessage, UnknownSession
from ccc_hookspecs.host.records import Session
from ccc_hookspecs.host.store import Store, default_state_dir
from ccc_hookspecs.values import Hold, SentInput

SESSION = "72350742-dff3-4ee0-a645-6602d6d2b86e"
OTHER = "72ff0742-dff3-4ee0-a645-6602d6d2b86e"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "state")


def test_only_this_user_can_read_it(store: Store) -> None:
    """The directory that it makes is 0700 and every file in it 0600, also the side files of SQLite."""
    assert mode(store.directory) == 0o700
    again = Store(store.directory)
    with again.database.writing() as db:
        db.execute("INSERT INTO journal (at, what, detail) VALUES (0, 'x', '{}')")
        files = [path for path in store.directory.iterdir() if path.is_file()]
        assert {mode(path) for path in files} == {0o600}
        assert len(files) == 3
    with store.locks.hold(SESSION, 0):
        assert mode(store.directory / "locks") == 0o700
        assert {mode(path) for path in (store.directory / "locks").iterdir()} == {0o600}


def test_a_directory_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    """It may be a person's own, for more than this; one that others can write in is refused."""
    os.chmod(tmp_path, 0o755)
    Store(tmp_path).outbox.add(SESSION, "one")
    assert (mode(tmp_path), mode(tmp_path / FILE_NAME)) == (0o755, 0o600)
    for shared in (0o775, 0o1777):
        os.chmod(tmp_path, shared)
        with pytest.raises(StateError, match="others can write"):
            Store(tmp_path)
        assert mode(tmp_path) == shared
    os.chmod(tmp_path, 0o700)


def test_it_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`$CCC_HOST_STATE`, else below `$XDG_STATE_HOME` when that is absolute, else below the home directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_state_dir() == tmp_path / ".local" / "state" / "ccc-host"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert default_state_dir() == tmp_path / ".local" / "state" / "ccc-host"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert default_state_dir() == tmp_path / "xdg" / "ccc-host"
    monkeypatch.setenv("CCC_HOST_STATE", "~/mine")
    assert default_state_dir() == tmp_path / "mine"
    monkeypatch.setenv("CCC_HOST_STATE", "~nobody-of-this-name/mine")
    with pytest.raises(StateError, match="CCC_HOST_STATE"):
        default_state_dir()


def test_a_newer_schema_is_left_alone(store: Store) -> None:
    """A file of a later release is not touched, and the error says to upgrade."""
    store.sessions.all()
    with sqlite3.connect(store.directory / FILE_NAME) as db:
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    with pytest.raises(StateError, match=r"upgrade ccc-host") as error:
        store.sessions.all()
    assert error.value.path == store.directory / FILE_NAME


def test_a_directory_that_cannot_be_made_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match=r"CCC_HOST_STATE"):
        Store(tmp_path / "file" / "state")


def test_a_file_that_is_no_database_is_an_error_that_names_it(tmp_path: Path) -> None:
    """Nothing is overwritten."""
    (tmp_path / FILE_NAME).write_text("not a database, and long enough to be looked at as one " * 20)
    with pytest.raises(StateError, match=FILE_NAME):
        Store(tmp_path).sessions.all()
    assert (tmp_path / FILE_NAME).read_text().startswith("not a database")


def test_many_processes_may_make_it_at_once(tmp_path: Path) -> None:
    """Each of six processes that start together on no state at all keeps its message."""
    script = (
        "import sys; from pathlib import Path; from ccc_hookspecs.host.store import Store\n"
        f"Store(Path({str(tmp_path / 'state')!r})).outbox.add({SESSION!r}, sys.argv[1])"
    )
    started = [subprocess.Popen([sys.executable, "-c", script, f"text {number}"]) for number in range(6)]
    assert [process.wait(60) for process in started] == [0] * 6
    assert {message.text for message in Store(tmp_path / "state").outbox.open()} == {f"text {number}" for number in range(6)}


def test_a_session_is_found_by_the_beginning_of_its_id(store: Store) -> None:
    """In either case; what fits none or several is an error that names them."""
    for session_id in (SESSION, OTHER):
        store.sessions.add(Session(session_id=session_id, cwd=Path("/"), claude="claude"))
    assert store.sessions.find("7235").session_id == SESSION
    assert store.sessions.find(OTHER.upper()).session_id == OTHER
    with pytest.raises(UnknownSession) as several:
        store.sessions.find("72")
    assert set(several.value.matches) == {SESSION, OTHER}
    for nothing in ("73", "", "%", "72_"):
        with pytest.raises(UnknownSession) as none:
            store.sessions.find(nothing)
        assert none.value.matches == ()


def test_messages_come_in_the_order_they_were_given(store: Store) -> None:
    """Each session sees its own."""
    for number in range(5):
        store.outbox.add(SESSION if number % 2 else OTHER, f"text {number}")
    assert [message.text for message in store.outbox.open_of(SESSION)] == ["text 1", "text 3"]
    assert [message.text for message in store.outbox.open()] == [f"text {number}" for number in range(5)]


def test_a_hold_is_kept_whole(store: Store) -> None:
    """Reason, signs, whether it lingers and what overruling costs; the time of the first hold stays."""
    message = store.outbox.add(SESSION, "text")
    first = store.outbox.hold(message, Hold(reason="busy", signs=("a", "b"), lingering=True, cost="work"))
    again = store.outbox.hold(first, Hold(reason="busy still"))
    assert first.hold == Hold(reason="busy", signs=("a", "b"), lingering=True, cost="work")
    assert (again.hold, again.held_since) == (Hold(reason="busy still"), first.held_since)


def test_a_message_that_a_process_has_cannot_be_dropped(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that waits can; so can one that a terminal had time enough to take."""
    waiting, written = store.outbox.add(SESSION, "one"), store.outbox.add(SESSION, "two")
    written = store.outbox.intend_typed(written, "1/1.0", transcript_offset=0)
    with pytest.raises(UnknownMessage, match="cannot be dropped"):
        store.outbox.drop(written)
    with pytest.raises(UnknownMessage):
        store.outbox.waiting("")
    assert store.outbox.drop(store.outbox.waiting(waiting.message_id[:8])).message_id == waiting.message_id
    assert store.outbox.get(waiting.message_id) is None
    monkeypatch.setattr("ccc_hookspecs.host.records.STUCK_SECONDS", 0.0)
    store.outbox.drop(written)
    assert store.outbox.open() == ()


def test_the_clock_may_be_set_back(store: Store) -> None:
    """What was given to a process in a time to come was given to it long ago."""
    message = store.outbox.intend_typed(store.outbox.add(SESSION, "one"), "1/1.0", transcript_offset=0)
    assert not message.is_stuck
    assert replace(message, written_at=(message.written_at or 0.0) + 1e6).is_stuck


def test_an_older_schema_is_brought_up_to_date(tmp_path: Path) -> None:
    """Step by step, with everything that is kept."""
    (tmp_path / FILE_NAME).touch(0o600)
    with sqlite3.connect(tmp_path / FILE_NAME) as db:
        db.executescript(MIGRATIONS[0] + "PRAGMA user_version = 1;")
        values = ("one", SESSION, b"kept", "held", '{"reason": "busy", "signs": [], "lingering": false, "cost": null}')
        db.execute("INSERT INTO outbox (message_id, session_id, text, state, created_at, hold) VALUES (?, ?, ?, ?, 0, ?)", values)
        head = (SESSION, 1, 1.0, "fifo", "log", "/", 0, 0, 0, "mark")
        columns = "session_id, pid, start_time, fifo, log, cwd, spawned_at, transcript_size, resumed, mark"
        db.execute(f"INSERT INTO headless ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", head)
        db.execute("INSERT INTO inputs (head_id, message_id, sent_at) VALUES (1, ?, 2.0)", (OTHER,))
    db.close()
    store = Store(tmp_path)
    (message,), (live,) = store.outbox.open(), store.heads.all_live()
    assert (message.text, message.hold, message.own_hold, live.mark) == ("kept", Hold(reason="busy"), False, "mark")
    live = replace(live, fifo=tmp_path / "fifo", log=tmp_path / "log")
    assert store.heads.headless(live).sent == (SentInput(message_id=OTHER, sent_at=2.0),)


def test_a_message_is_never_shown_by_its_repr(store: Store) -> None:
    """It reaches no log by accident."""
    assert "private" not in repr(store.outbox.add(SESSION, "private words"))


def test_the_fingerprint_changes_with_every_write(store: Store) -> None:
    """Also with a write by another connection; it stays when nothing is written."""
    store.outbox.add(SESSION, "one")
    before = store.database.fingerprint()
    store.outbox.open()
    assert store.database.fingerprint() == before
    Store(store.directory).outbox.add(SESSION, "two")
    assert store.database.fingerprint() != before


def test_old_deliveries_and_logs_are_forgotten(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was delivered long ago goes; what is open, and the head it was given to, stays."""
    old, kept = store.outbox.add(SESSION, "old"), store.outbox.add(SESSION, "kept")
    done = store.outbox.delivered(old, "proof")
    assert done.delivered_at is not None
    store.outbox.forget_before(done.delivered_at + 1)
    assert store.outbox.get(old.message_id) is None
    assert store.outbox.get(kept.message_id) == kept
