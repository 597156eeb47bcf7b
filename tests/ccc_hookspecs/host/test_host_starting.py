"""A process cannot be started, or not without harm: the text is kept, and the transcript left alone."""

from __future__ import annotations

import errno
import io
import os
import time
from pathlib import Path
from typing import Any

import pytest

from ccc_hookspecs.host.errors import ClaudeError
from ccc_hookspecs.host.host import EmbeddedHost
from tests.ccc_hookspecs.host.world import World, end_process


@pytest.mark.case("C91")
def test_a_failed_resume_keeps_the_message_with_the_error(world: World) -> None:
    """When the fresh process finds no conversation, the message stays kept, says why, and is tried again when asked for."""
    host = world.host()
    session = world.session(host, "first")
    program = Path(world.claude)
    original = program.read_text("utf-8")
    end_process(world.headless(host, session).pid)
    program.write_text('#!/bin/sh\necho "No conversation found with session ID: $4"\nexit 1\n', "utf-8")
    message = host.send(session.session_id, "second")
    failed = world.until(host, message, "failed")
    assert failed.error == f"No conversation found with session ID: {session.session_id}"
    assert failed.text == "second"
    host.drive(session.session_id)
    assert world.now(host, message).state == "failed"
    program.write_text(original, "utf-8")
    host.push(session.session_id)
    world.answered(host, message)
    assert world.memory(host, session) == ["first", "second"]
    assert world.prompts(session)[1:] == [message.message_id]


def away(program: Path) -> Path:
    """Move a program away, as an update does for some seconds; returns where it is."""
    return program.rename(program.with_suffix(".away"))


def test_a_program_that_is_away_for_a_while_costs_no_try(world: World) -> None:
    """No process took the message and let it down: it waits, is tried again by whoever looks after it, and goes out in its order."""
    host = world.host()
    session = world.session(host, "first")
    end_process(world.headless(host, session).pid)
    program = Path(world.claude)
    kept = away(program)
    message = host.send(session.session_id, "second")
    for _ in range(5):
        host.drive(session.session_id)
    now = world.now(host, message)
    assert (now.state, now.attempts, str(program) in str(now.error), "--claude" in str(now.error)) == ("queued", 0, True, True)
    kept.rename(program)
    world.answered(host, message)
    assert world.memory(host, session) == ["first", "second"]
    assert world.now(host, message).unstarted_since is None


def test_a_program_that_stays_away_is_tried_after_a_pause_and_by_each_send(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking after the message costs nothing until then; somebody who sends again is not told to wait."""
    monkeypatch.setattr("ccc_hookspecs.host.settling.FIRST_PAUSE", 20.0)
    host = world.host()
    session = host.begin(world.home.project)
    program = Path(world.claude)
    kept = away(program)
    message = host.send(session.session_id, "first")
    assert message.rests
    kept.rename(program)
    host.drive(session.session_id)
    assert world.now(host, message).state == "queued"
    host.push(session.session_id)
    world.answered(host, message)


def test_a_program_that_cannot_be_started_for_minutes_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message stays kept with an error that says what to do, and is tried anew when somebody asks for it."""
    host = world.host()
    session = host.begin(world.home.project)
    kept = away(program := Path(world.claude))
    with monkeypatch.context() as patience:
        patience.setattr("ccc_hookspecs.host.settling.START_SECONDS", 0.0)
        failed = host.send(session.session_id, "first")
    assert (failed.state, "--claude" in str(failed.error)) == ("failed", True)
    host.push(session.session_id)
    assert world.now(host, failed).state == "queued"
    kept.rename(program)
    world.answered(host, world.until(host, failed))
    assert world.memory(host, session) == ["first"]


@pytest.mark.parametrize("by", ["the next look", "the next send"])
def test_a_time_in_which_nobody_tried_does_not_count(world: World, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    """Two tries with a laptop's sleep between them are not minutes of trying; those begin after it."""
    host = world.host()
    session = host.begin(world.home.project)
    kept = away(Path(world.claude))
    before = host.send(session.session_id, "first")
    now = time.time
    with monkeypatch.context() as later:
        later.setattr(time, "time", lambda: now() + 600)
        (host.drive if by == "the next look" else host.push)(session.session_id)
        after = world.now(host, before)
        assert (after.state, (after.unstarted_since or 0) > (before.unstarted_since or 0) + 500) == ("queued", True)
        later.setattr(time, "time", lambda: now() + 640)
        host.push(session.session_id)
        assert world.now(host, before).unstarted_since == after.unstarted_since
    kept.rename(Path(world.claude))
    host.push(session.session_id)
    world.answered(host, before)


@pytest.mark.parametrize(
    ("number", "advice"), [(errno.ENOSPC, "free the disk"), (errno.EMFILE, "ulimit"), (errno.EAGAIN, "no room"), (errno.EACCES, "denied")]
)
def test_what_is_missing_is_named(world: World, monkeypatch: pytest.MonkeyPatch, number: int, advice: str) -> None:
    """A full disk or too many open files is no wrong program; nothing that was opened before stays open."""
    host = world.host()
    session = host.begin(world.home.project)
    whole = os.open

    def opening(path: Any, *arguments: Any, **more: Any) -> int:
        if str(path).endswith(".fifo"):
            raise OSError(number, os.strerror(number), str(path))
        return whole(path, *arguments, **more)

    before = len(os.listdir("/dev/fd"))
    with monkeypatch.context() as failing:
        failing.setattr("ccc_hookspecs.host.spawn.os.open", opening)
        message = host.send(session.session_id, "first")
    assert advice in str(message.error)
    assert "--claude" not in str(message.error)
    assert len(os.listdir("/dev/fd")) == before
    assert [path for path in host.store.heads_dir.iterdir() if path.suffix == ".fifo"] == []


@pytest.mark.case("C42")
def test_a_session_whose_directory_is_gone_keeps_its_message(world: World) -> None:
    """A fresh process cannot start there; the error names the directory."""
    host = world.host()
    place = world.home.root / "place"
    place.mkdir()
    session = host.begin(place)
    place.rmdir()
    message = host.send(session.session_id, "first")
    assert (message.state, str(place) in str(message.error)) == ("queued", True)
    place.mkdir()
    world.answered(host, message)


@pytest.mark.parametrize("left", ["", '{"type":"queue-operation","operation":"enqueue"}\n'])
def test_a_transcript_without_conversation_does_not_bar_the_session(world: World, left: str) -> None:
    """A process killed before its first turn leaves one that can neither be resumed nor begun; it is moved aside, not removed."""
    host = world.host()
    session = host.begin(world.home.project)
    path = world.home.transcript(session.session_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(left)
    world.answered(host, host.send(session.session_id, "first"))
    assert world.memory(host, session) == ["first"]
    (aside,) = path.parent.glob("*.without-conversation")
    assert aside.read_text() == left


@pytest.mark.parametrize("failing", ["open", "read", "look"])
def test_a_transcript_that_cannot_be_read_is_left_alone(world: World, failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's, on a failing disk, or with no descriptor free: no process is started without it, and the text is kept."""
    host = world.host()
    session = world.session(host, "first")
    end_process(world.headless(host, session).pid)
    host.recover()
    transcript = world.home.transcript(session.session_id)
    content = transcript.read_bytes()
    with monkeypatch.context() as failure:
        fail_for(failure, transcript, failing)
        message = host.send(session.session_id, "second")
        assert "cannot be read" in str(message.error)
        assert host.headless_for(session.session_id) is None
    assert transcript.read_bytes() == content
    host.push(session.session_id)
    world.answered(host, message)
    assert world.memory(host, session) == ["first", "second"]


def fail_for(monkeypatch: pytest.MonkeyPatch, path: Path, failing: str) -> None:
    """What the system says of a file: `open`, `read` or `look` fails for it. These tests may run as root, who may read everything."""
    whole_open, whole_stat = Path.open, Path.stat

    class Unreadable(io.BytesIO):
        def __next__(self) -> bytes:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    def opening(self: Path, *arguments: Any, **more: Any) -> Any:
        if self != path:
            return whole_open(self, *arguments, **more)
        if failing == "read":
            return Unreadable()
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))

    def looking(self: Path, *arguments: Any, **more: Any) -> Any:
        if self == path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return whole_stat(self, *arguments, **more)

    if failing == "look":
        monkeypatch.setattr(Path, "stat", looking)
        monkeypatch.setattr("ccc_hookspecs.host.spawn.find_transcript", lambda *arguments: None)
    else:
        monkeypatch.setattr(Path, "open", opening)


def test_a_missing_program_is_an_error_that_says_how_to_name_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(world.home.root))
    monkeypatch.setattr(world.simulator, "program", lambda: "no-such-claude")
    with pytest.raises(ClaudeError, match=r"no-such-claude: no such program; name it with --claude or \$CCC_HOST_CLAUDE"):
        world.host().begin(world.home.project)


def test_a_program_named_by_a_relative_path_is_found_from_every_directory(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process is started in its session's directory, and a terminal opened there."""
    program = Path(world.claude)
    monkeypatch.chdir(program.parent)
    host = EmbeddedHost(world.state, claude="./claude")
    world.hosts.append(host)
    session = world.session(host, "first")
    assert host.launch_terminal(session)[0][0] == str(program)
