"""From the outbox into a process: one message of a session at a time, in order, and done with only on proof.

One at a time, because Claude Code (2.1.119 and later) takes inputs that wait in it together into one record, under the id of one of them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from ccc_hookspecs.host.agents import Agents, last_words
from ccc_hookspecs.host.errors import ClaudeError
from ccc_hookspecs.host.heard import Heard
from ccc_hookspecs.host.pipe import HalfWritten, NoReader, Pipe, PipeFull, user_line
from ccc_hookspecs.host.records import Head, Message, Session
from ccc_hookspecs.host.releases import KEEPS_BLOCKS, KEEPS_MID_TURN, NAMES_MESSAGES, is_before, is_from, last_writer
from ccc_hookspecs.host.settling import Settling, session_transcript_size, size_of
from ccc_hookspecs.host.spawn import transcript_of
from ccc_hookspecs.host.store import Store
from ccc_hookspecs.host.stream import turn_under_way
from ccc_hookspecs.host.terminals import Terminal, stranger_on, terminal_on
from ccc_hookspecs.host.tmux import TmuxError, typable
from ccc_hookspecs.manager import PluginManager
from ccc_hookspecs.outcomes import HeldInjection, Respawned
from ccc_hookspecs.signals import emit, headless_respawned, injection_held
from ccc_hookspecs.specs import Host
from ccc_hookspecs.values import Decision, Hold, Injection, Respawn

log = logging.getLogger(__name__)

SENDER: Final = "ccc-host"
"""The sender of signals that no mechanism asked for."""

_TWO_WRITERS: Final = "two processes will write the session, and each will leave out the turns of the other"

STUCK_SECONDS: Final = 30.0
"""How long a process may take to take a message before a person may give up on it."""

_TAKEN_OVER: Final = "the open terminal will not know of this turn, and its own next turn will leave it out"


class Delivery:
    """Drives the messages of one session on. Every private method is called with the session's lock held.

    `checkpoint` is called with the name of each step before it is taken.
    """

    def __init__(self, host: Host, store: Store, agents: Agents, manager: PluginManager, checkpoint: Callable[[str], None]) -> None:
        self._host, self._store, self._agents, self._manager = host, store, agents, manager
        self._checkpoint = checkpoint
        self._settling = Settling(store)
        self._heard = Heard()

    def drive(self, session_id: str, lock_seconds: float) -> None:
        """Settle what was written and write what may be. Raises `SessionLockTimeout` when another process is at it for too long."""
        with self._host.session_lock(session_id, lock_seconds):
            while self._step(session_id):
                pass

    def _step(self, session_id: str) -> bool:
        """Take the first message that is not done with one step on; True when there may be another step."""
        messages = self._store.outbox.open_of(session_id)
        if not messages or messages[0].state == "failed":
            return False
        session = self._store.sessions.get(session_id)
        first = messages[0]
        if first.state != "written":
            return self._advance(session, first)
        head = self._agents.live(session_id)
        return self._settling.settle(first).state != "written" or (head is not None and self._stuck(first, head))

    def _stuck(self, message: Message, head: Head) -> bool:
        """A process was given a message and does not take it: whether a person gave up on that process, and it is gone now."""
        stuck = time.time() - (message.written_at or 0.0) >= STUCK_SECONDS
        return message.overruled and stuck and self._agents.end(head, "it was given a message and does not take it")

    def _advance(self, session: Session, message: Message) -> bool:
        # One that was given to a process before may have arrived after all.
        if self._settling.proven(message) is not None:
            return True
        terminal = None if message.overruled else terminal_on(session)
        head = self._agents.live(session.session_id)
        if terminal is not None:
            return self._type(session, message, terminal)
        if head is not None:
            return self._inject(session, message, head)
        stranger = None if message.overruled else stranger_on(session)
        if stranger is not None:
            return self._wait_for(stranger, message, "a process that this host did not start drives the session", _TWO_WRITERS)
        return self._start(session, message)

    # --- into a headless

    def _inject(self, session: Session, message: Message, head: Head) -> bool:
        if head.jammed:
            return self._jammed(message, head)
        if self._leaves_no_trace(message, head) and self._turn_under_way(head):
            return False
        decision = self._ask(message, head)
        if isinstance(decision, Respawn):
            return self._respawn(session, message, head, decision)
        if isinstance(decision, Hold):
            return self._hold(message, decision)
        if decision.catch_up is not None:
            message = self._store.outbox.keep_catch_up(message, decision.catch_up, decision.catch_up_turns)
        return self._write(message, head)

    def _leaves_no_trace(self, message: Message, head: Head) -> bool:
        """Whether nothing would tell that this text arrived, were it given in the middle of a turn."""
        slash = message.is_command and not is_from(head.release, NAMES_MESSAGES)
        return slash or is_before(head.release, KEEPS_MID_TURN)

    def _turn_under_way(self, head: Head) -> bool:
        last = self._store.outbox.last_taken(head.id)
        return turn_under_way(head.log, None if last is None else last.log_offset)

    def _jammed(self, message: Message, head: Head) -> bool:
        """The head can take no message any more; only a person may end it before it ends by itself."""
        if message.overruled:
            return self._agents.end(head, "half a message in its FIFO")
        reason = "the process holds half of an earlier message, which a host that was killed could not finish"
        cost = f"overruling ends process {head.pid} with whatever it does"
        return self._hold(message, Hold(reason=reason, signs=("half a message in its FIFO",), lingering=True, cost=cost))

    def _ask(self, message: Message, head: Head) -> Decision:
        self._checkpoint("ask")
        self._heard.forget()
        injection = Injection(
            session_id=message.session_id,
            text=message.text,
            message_id=message.message_id,
            headless=self._store.heads.headless(head),
            overrule=message.overruled,
        )
        return self._manager.pre_inject(self._host, injection)

    def _respawn(self, session: Session, message: Message, head: Head, decision: Respawn) -> bool:
        mechanism = (self._heard.retired_by(head.pid) if head.pid is not None else None) or SENDER
        if self._agents.live(session.session_id) is not None:
            return self._hold(message, Hold(reason=f"a fresh process was asked for, but process {head.pid} lives"))
        self._checkpoint("respawn")
        message = self._store.outbox.keep_catch_up(message, decision.catch_up, decision.catch_up_turns)
        retired = self._store.heads.headless(head)
        fresh = self._spawn(session, message)
        if fresh is None:
            return False
        event = Respawned(
            headless=self._store.heads.headless(fresh),
            retired=retired,
            reason=decision.reason,
            message_id=message.message_id,
            catch_up_turns=message.catch_up_turns,
        )
        emit(headless_respawned, mechanism, event)
        return self._settling.proven(message) is not None or self._write(message, fresh)

    def _start(self, session: Session, message: Message) -> bool:
        fresh = self._spawn(session, message)
        return fresh is not None and self._inject(session, message, fresh)

    def _spawn(self, session: Session, message: Message) -> Head | None:
        self._checkpoint("spawn")
        try:
            return self._agents.spawn(session)
        except ClaudeError as error:
            self._settling.owed(message, str(error))
            return None

    def _write(self, message: Message, head: Head) -> bool:
        line = user_line(message.message_id, message.text, message.catch_up, one_block=self._takes_blocks_apart(message))
        try:
            pipe = Pipe(head.fifo)
        except (NoReader, OSError) as error:
            return self._refused(message, head, str(error))
        try:
            return self._put(message, head, pipe, line)
        except (NoReader, PipeFull) as error:
            return self._refused(message, head, str(error))
        except HalfWritten as error:
            self._store.journal.note("jammed", message.session_id, pid=head.pid, written=error.written)
            return False
        finally:
            pipe.close()

    def _takes_blocks_apart(self, message: Message) -> bool:
        """Whether the session's release would take two blocks apart. A slash command is only one in a block of its own."""
        if message.catch_up is None or message.is_command:
            return False
        release = self._store.heads.last_release(message.session_id)
        if release is None and (transcript := transcript_of(self._store.sessions.get(message.session_id))) is not None:
            release = last_writer(transcript)
        return is_before(release, KEEPS_BLOCKS)

    def _put(self, message: Message, head: Head, pipe: Pipe, line: bytes) -> bool:
        one_piece = pipe.make_room(len(line))
        session = self._store.sessions.get(message.session_id)
        self._checkpoint("intend")
        message = self._store.outbox.intend(message, head, log_offset=size_of(head.log), transcript_offset=session_transcript_size(session))
        if not one_piece:
            self._store.heads.jam(head.id, True)
        self._checkpoint("write")
        pipe.write(line)
        self._checkpoint("wrote")
        if not one_piece:
            self._store.heads.jam(head.id, False)
        self._store.outbox.wrote(message)
        self._checkpoint("written")
        return True

    def _refused(self, message: Message, head: Head, error: str) -> bool:
        """It did not go in as a whole: it is tried again, with a fresh process once this one is gone."""
        log.info("session %s: process %s took no input: %s", message.session_id, head.pid, error, extra={"ccc_session": message.session_id})
        if self._agents.live(message.session_id) is None:
            return self._settling.owed(message, last_words(head.log) or error).state == "queued"
        message = self._store.outbox.requeue(message, error, counts=False, reached=False)
        return self._hold(message, Hold(reason=f"process {head.pid} takes no input: {error}", signs=("its FIFO takes nothing",)))

    # --- waiting

    def _hold(self, message: Message, hold: Hold) -> bool:
        known = message.hold
        message = self._store.outbox.hold(message, hold)
        if known is None or (known.reason, known.signs) != (hold.reason, hold.signs):
            self._announce(message, hold)
        return False

    def _announce(self, message: Message, hold: Hold) -> None:
        log.debug("session %s: %s is held: %s", message.session_id, message.message_id, hold.reason, extra={"ccc_reason": hold.reason})
        self._store.journal.note("held", message.session_id, message_id=message.message_id, reason=hold.reason, signs=list(hold.signs))
        if not self._heard.announced(message.message_id):
            since = message.held_since or message.created_at
            event = HeldInjection(session_id=message.session_id, message_id=message.message_id, hold=hold, since=since)
            emit(injection_held, SENDER, event)

    # --- into a terminal

    def _type(self, session: Session, message: Message, terminal: Terminal) -> bool:
        """Give the message to the terminal that has the session, or wait until that can take it or is gone."""
        self._heard.forget()
        reason, pane = terminal.objection(message.text), terminal.typable_pane()
        if reason is not None or pane is None:
            reason = reason or "a terminal outside tmux, or not in its foreground, has the session open"
            return self._wait_for(terminal.pid, message, reason)
        self._checkpoint("intend")
        offset = session_transcript_size(session)
        message = self._store.outbox.intend_typed(message, terminal.key, transcript_offset=offset)
        self._checkpoint("write")
        try:
            pane.type(typable(message.text))
        except TmuxError as error:
            return self._wait_for(terminal.pid, self._store.outbox.requeue(message, str(error), counts=False), str(error))
        self._store.outbox.wrote(message)
        return True

    def _wait_for(self, pid: int, message: Message, reason: str, cost: str = _TAKEN_OVER) -> bool:
        return self._hold(message, Hold(reason=reason, signs=(f"process {pid}",), lingering=True, cost=cost))
