"""The embedded host: a small, complete Claude Command Center, as a library."""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Final

from ccc_hookspecs.checks import is_uuid
from ccc_hookspecs.claude.jsonl import JsonlFollower, parse
from ccc_hookspecs.claude.paths import find_transcript
from ccc_hookspecs.errors import CccError, NotWritten, SessionLockTimeout
from ccc_hookspecs.host import programs
from ccc_hookspecs.host.agents import Agents
from ccc_hookspecs.host.delivery import Delivery
from ccc_hookspecs.host.errors import ClaudeError, HostError, UnknownSession
from ccc_hookspecs.host.guard import Tell, guarded
from ccc_hookspecs.host.liveness import seen_within
from ccc_hookspecs.host.records import Message, Session
from ccc_hookspecs.host.sight import in_sight, presence_of
from ccc_hookspecs.host.spawn import environment, files_of, transcript_of
from ccc_hookspecs.host.store import Store, default_state_dir
from ccc_hookspecs.host.writing import Writer
from ccc_hookspecs.manager import PluginManager
from ccc_hookspecs.values import Headless, TerminalLaunch, Tick

log = logging.getLogger(__name__)

LOCK_SECONDS: Final = 30.0
"""How long to wait for a session that another process of the host is at; a retirement may take so long."""

TRANSCRIPT_SECONDS: Final = 3.0
"""How long a terminal waits for the transcript of a session that a headless has just begun; up to 1 s was measured."""

FORGET_SECONDS: Final = 3600.0
"""How often what nothing needs any more is dropped."""


class EmbeddedHost:
    """Drives Claude Code sessions headless, and calls the plugins of `manager` on the way. Implements `ccc_hookspecs.Host`.

    Several processes may run one on the same `state_dir` at once, and every method may be called from any thread.
    `claude`: the program for sessions begun here and, when given, for every process started here; `$CCC_HOST_CLAUDE`, else
    `claude` on the PATH. `manager`: one that was loaded; without one no plugin is asked.

    `checkpoint` is called with the name of each step of a delivery before it is taken; it does nothing. `tell_failure`, when it is set, is
    told of each error that `tick`, `recover` and `take_on` log and go on from.
    """

    def __init__(self, state_dir: Path | None = None, *, manager: PluginManager | None = None, claude: str | None = None) -> None:
        self.store = Store(state_dir or default_state_dir())
        self.manager = manager or PluginManager()
        self.tell_failure: Tell | None = None
        self._forgot = -FORGET_SECONDS
        self._claude = programs.chosen(claude)
        self.agents = Agents(self.store, self.checkpoint, claude=self._claude)
        self._writer = Writer(self.store, self.checkpoint)
        self._delivery = Delivery(self, self.store, self.agents, self.manager, self.checkpoint)

    def checkpoint(self, name: str) -> None:
        """Does nothing. A subclass may see, or end, a delivery at this step."""

    # --- what plugins are offered

    @property
    def state_dir(self) -> Path:
        """Where the host, and plugins, keep what must survive a restart."""
        return self.store.directory

    def headless_for(self, session_id: str) -> Headless | None:
        """The session's live headless, or None. One of another pid namespace is none: whoever looks for its pid finds another process."""
        head = self.agents.known(session_id)
        return None if head is None or not in_sight(head) else self.store.heads.headless(head)

    def headless_agents(self) -> Sequence[Headless]:
        """Every headless believed alive, as `headless_for`."""
        return self.store.heads.all_headless(in_sight)

    def session_lock(self, session_id: str, timeout: float) -> AbstractContextManager[None]:
        """The session's lock, across processes, reentrant within a thread. Raises `SessionLockTimeout` on entry."""
        return self.store.locks.hold(session_id, timeout)

    def write(self, headless: Headless, line: bytes) -> None:
        """Write a line that is no message of the outbox, such as history, into a headless's FIFO, with the session's lock held.

        It goes in as a message does: a host that is killed in the middle leaves the process marked as one that takes nothing more.
        Raises `NotWritten`, also for a line that Claude Code would end at.
        """
        head = self.agents.known(headless.session_id)
        if head is None or not in_sight(head) or (head.pid, head.start_time) != (headless.pid, headless.start_time):
            raise NotWritten(headless.session_id, f"process {headless.pid} is not the session's headless")
        if head.jammed:
            raise NotWritten(headless.session_id, f"process {headless.pid} holds half of an earlier line")
        try:
            self._writer.feed(line, head)
        except (CccError, OSError, ValueError) as error:
            raise NotWritten(headless.session_id, str(error)) from error

    def released(self, headless: Headless) -> None:
        """A plugin ended this process: its FIFO and row go. Harmless when repeated."""
        self.agents.released(headless.session_id, headless.pid, headless.start_time)

    def config_dir(self, headless: Headless) -> Path:
        """Where this headless's Claude Code keeps its files."""
        return headless.config_dir or files_of(None)

    # --- sessions

    def begin(self, cwd: Path, arguments: Sequence[str] = ()) -> Session:
        """Keep a new session that starts in `cwd`; no process is started yet. Raises `ClaudeError` when there is no `claude`."""
        config = os.environ.get("CLAUDE_CONFIG_DIR")
        session = Session(
            session_id=str(uuid.uuid4()),
            cwd=cwd.absolute(),
            claude=self._program(),
            arguments=tuple(arguments),
            config_dir=Path(config).absolute() if config else None,
            created_at=time.time(),
        )
        self.store.sessions.add(session)
        return session

    def session(self, given: str) -> Session:
        """The session whose id starts with `given`. A full id may also be that of a session begun elsewhere, which is then driven
        here too. Raises `UnknownSession`.
        """
        try:
            return self.store.sessions.find(given)
        except UnknownSession:
            if not is_uuid(given.lower()):
                raise
            return self._adopt(given.lower())

    def _adopt(self, session_id: str) -> Session:
        config = os.environ.get("CLAUDE_CONFIG_DIR")
        config_dir = Path(config).absolute() if config else None
        transcript = find_transcript(config_dir or files_of(None), session_id)
        cwd = None if transcript is None else _cwd_in(transcript)
        if cwd is None:
            raise UnknownSession(session_id)
        session = Session(session_id=session_id, cwd=cwd, claude=self._program(), config_dir=config_dir, created_at=time.time())
        self.store.sessions.add(session)
        return session

    def _program(self, of_session: str = "claude") -> str:
        return programs.found(self._claude or of_session)

    # --- messages

    def send(self, session_id: str, text: str) -> Message:
        """Keep a text for a session and take what waits there as far as it goes now; returns the message as it then stands.

        The text is on the disk before anything else happens, and stays until its delivery is proven.
        """
        message = self.store.outbox.add(session_id, text)
        self.push(session_id)
        return self.store.outbox.get(message.message_id) or message

    def push(self, session_id: str, *, lock_seconds: float = LOCK_SECONDS) -> bool:
        """As `drive`, and what had failed is tried again."""
        self.store.outbox.retry(session_id)
        return self.drive(session_id, lock_seconds=lock_seconds)

    def overrule(self, shown: Message, *more: Message, lock_seconds: float = LOCK_SECONDS) -> bool:
        """As `drive`, but what a person was told the cost of (`Hold.cost`) and wants all the same is done: the session's first message
        does not wait for what it waited for, held or given to a process, when it was `shown`, and at `more` showings of the same one.
        Whatever else it has to wait for it waits for.
        """
        return self._locked(partial(self._delivery.drive, overruled=(shown, *more)), shown.session_id, lock_seconds)

    def drive(self, session_id: str, *, lock_seconds: float = LOCK_SECONDS) -> bool:
        """Settle what was written in a session and write what may be; False when another process was at it all the while."""
        return self._locked(self._delivery.drive, session_id, lock_seconds)

    def drop(self, given: str, *, lock_seconds: float = LOCK_SECONDS) -> Message:
        """Give up the kept message whose id starts with `given`; returns it. Raises `UnknownMessage` when there is none, or a process
        has it, and `SessionLockTimeout` when another process was at its session all the while.
        """
        message = self.store.outbox.waiting(given)
        with self.session_lock(message.session_id, lock_seconds):
            return self.store.outbox.drop(message)

    def active(self) -> set[str]:
        """The sessions whose first message may go on at any time: it is not given up, and not held but for the end of a turn."""
        first: dict[str, Message] = {}
        for message in self.store.outbox.open():
            first.setdefault(message.session_id, message)
        return {session_id for session_id, message in first.items() if message.may_go_on}

    def _locked(self, act: Callable[[str, float], None], session_id: str, lock_seconds: float) -> bool:
        try:
            act(session_id, lock_seconds)
        except SessionLockTimeout:
            return False
        return True

    # --- terminals and time

    def launch_terminal(self, session: Session) -> tuple[list[str], dict[str, str]]:
        """Tell plugins that a terminal is about to start on a session; returns its command line and its environment.

        Raises, before plugins hear of it, `ClaudeError` when the program or the session's directory is gone, and `HostError` when the
        session has no transcript that a terminal could load.
        """
        program = self._program(session.claude)
        if not session.cwd.is_dir():
            raise ClaudeError(f"{session.cwd} is gone, so session {session.session_id} cannot be opened: restore that directory")
        # Claude Code writes the transcript after it printed the first answer.
        patience = 0.0 if self.headless_for(session.session_id) is None else TRANSCRIPT_SECONDS
        if not seen_within(lambda: transcript_of(session) is not None, patience):
            raise HostError(f"session {session.session_id} has no turn yet that a terminal could load: begin it with `ccc-host send`")
        launch = TerminalLaunch(session_id=session.session_id, headless=self.headless_for(session.session_id), cwd=session.cwd)
        self.manager.on_terminal_launch(self, launch)
        self.store.journal.note("terminal", session.session_id)
        return [program, "--resume", session.session_id], environment(os.environ, session)

    def tick(self, tick: Tick) -> None:
        """One beat: the dead are cleared away, plugins get their tick, and what is held is asked about again.

        An error in one session is logged, and the others are gone on with.
        """
        with guarded("looking after the headless processes", tell=self.tell_failure):
            self.recover()
        self.manager.on_tick(self, tick)
        with guarded("looking into the outbox", tell=self.tell_failure):
            waiting = dict.fromkeys(message.session_id for message in self.store.outbox.open())
            self._delivery.forget_all_but(waiting)
            for session_id in waiting:
                self.take_on(session_id)

    def take_on(self, session_id: str) -> None:
        """As `drive` of a session that no other process is at; an error is logged and goes no further."""
        with guarded("delivery", session_id, self.tell_failure):
            self.drive(session_id, lock_seconds=0.0)

    def recover(self) -> None:
        """Find the heads again that this state directory knows, and forget those whose process is gone.

        An error with one head is logged, and the others are gone on with.
        """
        for head in self.store.heads.all_live():
            if head.pid is None or presence_of(head) == "gone":
                with guarded("clearing away a headless", head.session_id, self.tell_failure):
                    self._locked(self._look_after, head.session_id, 0.0)
        if time.monotonic() - self._forgot >= FORGET_SECONDS:
            self._forgot = time.monotonic()
            self.agents.forget_old()

    def _look_after(self, session_id: str, lock_seconds: float) -> None:
        with self.session_lock(session_id, lock_seconds):
            self.agents.live(session_id)


def _cwd_in(transcript: Path) -> Path | None:
    """The directory a session was started in, by its own records."""
    for line in JsonlFollower(transcript).lines():
        for record in parse(line):
            cwd = record.data.get("cwd")
            if isinstance(cwd, str) and Path(cwd).is_absolute():
                return Path(cwd)
    return None
