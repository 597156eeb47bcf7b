"""Starting a headless: its FIFO, its log, its environment and its command line."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from ccc_hookspecs.claude.jsonl import Line, parse
from ccc_hookspecs.claude.paths import config_dir, find_transcript, project_folders
from ccc_hookspecs.host.errors import ClaudeError
from ccc_hookspecs.host.heads import Heads
from ccc_hookspecs.host.records import Head, Session
from ccc_hookspecs.host.sight import boot_id, pid_namespace
from ccc_hookspecs.processes import start_time

log = logging.getLogger(__name__)

MARK: Final = "CCC_HOST_HEAD"
"""The environment variable by which a head is found again whose pid could not be recorded."""

INHERITED: Final = frozenset(
    {
        "AI_AGENT",
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_EXECPATH",
        "CLAUDE_CODE_MESSAGING_SOCKET",
        "CLAUDE_CODE_MESSAGING_TOKEN",
        "CLAUDE_CODE_SESSION_ATTENDED",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_EFFORT",
        "CLAUDE_PID",
        MARK,
    }
)
"""What Claude Code sets for the programs it runs (measured on 2.0.42, 2.1.61, 2.1.168 and 2.1.332), and this host for its heads. With
them, a `claude` takes itself for the child of another session and keeps no transcript."""

_INHERITED_PREFIX: Final = "CLAUDE_CODE_CHILD_"


class Child(subprocess.Popen[bytes]):
    """A head outlives its host on purpose, so there is nothing to warn of when this object goes."""

    def __del__(self) -> None:
        """Nothing."""


class Spawner:
    """Starts heads in `directory` and keeps what it must reap. `claude`: started instead of each session's own program."""

    def __init__(self, directory: Path, heads: Heads, checkpoint: Callable[[str], None], *, claude: str | None = None) -> None:
        self._directory = directory
        self._heads = heads
        self._checkpoint = checkpoint
        self._claude = claude
        self._children: list[Child] = []

    def spawn(self, session: Session) -> Head:
        """Start a headless on a session that has none; the caller holds the session's lock. Raises `ClaudeError`."""
        if not session.cwd.is_dir():
            raise ClaudeError(f"{session.cwd} is gone, so session {session.session_id} cannot be started: restore that directory")
        if self._claude is not None:
            session = replace(session, claude=self._claude)
        try:
            head = self._heads.add(self._planned(session, resumable(session)))
            self._checkpoint("planned")
            child = self._start(head, command(session, resume=head.resumed), environment(os.environ, session, head.mark))
        except OSError as error:
            raise ClaudeError(_trouble(session, error)) from error
        self._children.append(child)
        self._checkpoint("started")
        return self._heads.started(head, child.pid, start_time(child.pid))

    def reap(self) -> None:
        """Take note of those children that exited, so that none stays a zombie."""
        self._children = [child for child in self._children if child.poll() is None]

    def remove(self, head: Head) -> None:
        """A head is gone: its row is closed and its FIFO removed; its log stays, for it may prove deliveries."""
        self.reap()
        self._heads.ended(head.id)
        head.fifo.unlink(missing_ok=True)

    def _planned(self, session: Session, transcript: Path | None) -> Head:
        mark = str(uuid.uuid4())
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Head(
            id=0,
            session_id=session.session_id,
            pid=None,
            start_time=None,
            fifo=self._directory / f"{mark}.fifo",
            log=self._directory / f"{mark}.log",
            cwd=session.cwd,
            config_dir=session.config_dir,
            spawned_at=time.time(),
            transcript_size=0 if transcript is None else transcript.stat().st_size,
            resumed=transcript is not None,
            mark=mark,
            boot=boot_id(),
            namespace=pid_namespace(),
        )

    def _start(self, head: Head, arguments: list[str], environ: dict[str, str]) -> Child:
        try:
            return _popen(head, arguments, environ)
        except OSError:
            self.remove(head)
            raise


def _popen(head: Head, arguments: list[str], environ: dict[str, str]) -> Child:
    os.mkfifo(head.fifo, 0o600)
    with ExitStack() as opened:
        output = os.open(head.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        opened.callback(os.close, output)
        # Open for reading and writing, the child never sees an end of its input while writers come and go.
        fifo = os.open(head.fifo, os.O_RDWR | os.O_CLOEXEC)
        opened.callback(os.close, fifo)
        return Child(arguments, stdin=fifo, stdout=output, stderr=subprocess.STDOUT, cwd=head.cwd, env=environ, start_new_session=True)


def _trouble(session: Session, error: OSError) -> str:
    """What kept a process from being started, and what to do."""
    reason = error.strerror or str(error)
    place = error.filename or session.claude
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{place}: {reason}: free the disk"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return f"{place}: {reason}: raise the limit (`ulimit -n`), or restart what runs out of them"
    if error.errno in (errno.EAGAIN, errno.ENOMEM):
        return f"{place}: {reason}: there is no room for another process"
    return f"{place}: {reason}" + ("; name the program with --claude or $CCC_HOST_CLAUDE" if place == session.claude else "")


def command(session: Session, *, resume: bool) -> list[str]:
    """The command line of a headless. It widens no permission: whoever wants that says so in the session's own arguments."""
    start = ["--resume" if resume else "--session-id", session.session_id]
    streams = ["--input-format", "stream-json", "--output-format", "stream-json"]
    return [session.claude, "-p", "--verbose", *start, *streams, *session.arguments]


def environment(environ: Mapping[str, str], session: Session, mark: str | None = None) -> dict[str, str]:
    """The environment for a `claude` on this session: the host's, without what an enclosing Claude Code left in it.

    With `mark`, for a headless, which then also says on its output when it is busy and when idle.
    """
    kept = {name: value for name, value in environ.items() if name not in INHERITED and not name.startswith(_INHERITED_PREFIX)}
    kept.pop("CLAUDE_CONFIG_DIR", None)
    if session.config_dir is not None:
        kept["CLAUDE_CONFIG_DIR"] = str(session.config_dir)
    return kept if mark is None else {**kept, MARK: mark, "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"}


def files_of(session: Session | Head | None) -> Path:
    """The directory where this session's Claude Code keeps its files; None: that of one whose configuration directory is the usual one."""
    usual = config_dir({name: value for name, value in os.environ.items() if name != "CLAUDE_CONFIG_DIR"})
    return usual if session is None or session.config_dir is None else session.config_dir


def transcript_of(session: Session | Head) -> Path | None:
    """The session's transcript, or None while it has none."""
    return find_transcript(files_of(session), session.session_id, session.cwd)


def resumable(session: Session) -> Path | None:
    """The transcript that `--resume` will read; None when the session is to be begun under its id.

    A process that was killed before its first turn leaves a transcript without conversation: `--resume` then finds "no
    conversation", and `--session-id` says that the id is in use (all of eight releases measured). Such a file is moved aside. Raises
    `ClaudeError` when what is there cannot be read to its end, which tells nothing of what it holds; then it is left alone.
    """
    transcript = transcript_of(session)
    try:
        if transcript is None:
            _look_for(session)
        if transcript is None or _has_conversation(transcript):
            return transcript
        aside = transcript.with_name(f"{transcript.name}.{int(time.time() * 1000)}.without-conversation")
        log.warning("session %s: its transcript holds no conversation and is moved to %s", session.session_id, aside)
        transcript.rename(aside)
    except OSError as error:
        place = error.filename or transcript
        raise ClaudeError(f"{place}: the transcript cannot be read: {error.strerror or error}; nothing is started without it") from error
    return None


def _look_for(session: Session) -> None:
    """Raises OSError when it cannot be told that the session has no transcript where its own directory's are."""
    for folder in project_folders(session.cwd):
        with suppress(FileNotFoundError, NotADirectoryError):
            (files_of(session) / "projects" / folder / f"{session.session_id}.jsonl").stat()


def _has_conversation(transcript: Path) -> bool:
    """Whether there is a turn in it. Raises OSError when that cannot be read."""
    with transcript.open("rb") as file:
        for number, raw in enumerate(file):
            line = Line(number, number, raw.replace(b"\0", b""))
            if any(record.data.get("type") in ("user", "assistant") for record in parse(line)):
                return True
    return False
