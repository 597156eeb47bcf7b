"""From the outbox into a process: one message of a session at a time, in order, and done with only on proof.

One at a time, because Claude Code (2.1.119 and later) takes inputs that wait in it together into one record, under the id of one of them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from typing import Final

from ccc_hookspecs.host.agents import Agents, last_words
from ccc_hookspecs.host.errors import ClaudeError
from ccc_hookspecs.host.heard import Heard
from ccc_hookspecs.host.holding import SENDER, Holding
from ccc_hookspecs.host.records import Head, Message, Session
from ccc_hookspecs.host.releases import KEEPS_MID_TURN, NAMES_MESSAGES, is_from
from ccc_hookspecs.host.settling import Settling, session_transcript_size
from ccc_hookspecs.host.sight import cost_of_ending, in_sight
from ccc_hookspecs.host.store import Store
from ccc_hookspecs.host.stream import turn_under_way
from ccc_hookspecs.host.terminals import Terminal, stranger_on, terminal_on
from ccc_hookspecs.host.tmux import Pane, TmuxError, typable
from ccc_hookspecs.host.writing import Refused, Writer
from ccc_hookspecs.manager import PluginManager
from ccc_hookspecs.outcomes import Respawned
from ccc_hookspecs.signals import emit, headless_respawned
from ccc_hookspecs.specs import Host
from ccc_hookspecs.values import Decision, Hold, Injection, Respawn

log = logging.getLogger(__name__)

_STRANGER: Final = "a process that this host did not start drives the session"
_TWO_WRITERS: Final = "two processes will write the session, and each will leave out the turns of the other"
_TAKEN_OVER: Final = "the open terminal will not know of this turn, and its own next turn will leave it out"
_JAMMED: Final = "the process holds half of an earlier line, which was not finished"
_IN_A_TURN: Final = "a turn is under way, and this release of Claude Code keeps no record of such a text in the middle of one"
_FED_SECONDS: Final = 30.0
"""How long the result of an input that is no message is waited for; one that the process knew already has none."""

_UNSEEN: Final = (
    "the log of the process is gone, and nothing else would tell that it took a slash command or a text in the middle of a turn"
)


class Delivery:
    """Drives the messages of one session on. Every private method is called with the session's lock held.

    `checkpoint` is called with the name of each step before it is taken.
    """

    def __init__(self, host: Host, store: Store, agents: Agents, manager: PluginManager, checkpoint: Callable[[str], None]) -> None:
        self._host, self._store, self._agents, self._manager = host, store, agents, manager
        self._checkpoint = checkpoint
        self._settling = Settling(store)
        self._writer = Writer(store, checkpoint)
        self._heard = Heard()
        self._holding = Holding(store, self._heard)

    def drive(self, session_id: str, lock_seconds: float, overruled: tuple[Message, ...] = ()) -> None:
        """Settle what was written and write what may be. Raises `SessionLockTimeout` when another process is at it for too long.

        `overruled`: messages as they were shown to a person, who wants them not to wait for what they waited for then.
        """
        with self._host.session_lock(session_id, lock_seconds), self._holding.overruling(overruled):
            while self._step(session_id):
                pass

    def forget_all_but(self, session_ids: Collection[str]) -> None:
        """These are the sessions that have open messages. Any thread may say so at any time."""
        self._settling.forget_all_but(session_ids)

    def _step(self, session_id: str) -> bool:
        """Take the first message that is not done with one step on; True when there may be another step."""
        first = self._store.outbox.first_of(session_id)
        if first is None or first.state == "failed":
            return False
        session = self._store.sessions.get(session_id)
        if first.state != "written":
            return self._advance(session, first)
        head = self._agents.live(session_id)
        return self._settling.settle(first).state != "written" or self._give_up_on(first, head)

    def _give_up_on(self, message: Message, head: Head | None) -> bool:
        """Whether a person gave up on the process that was given it and does not take it, and it may go elsewhere now."""
        if not self._holding.given_up_on(message):
            return False
        if message.terminal is not None:
            return self._store.outbox.requeue(message, "the terminal did not take it", counts=False).state == "queued"
        return head is not None and self._agents.end(head, "it was given a message and does not take it")

    def _advance(self, session: Session, message: Message) -> bool:
        # One that was given to a process before may have arrived after all.
        if self._settling.proven(message) is not None:
            return True
        head, terminal = self._agents.live(session.session_id), terminal_on(session)
        if terminal is not None and not self._holding.waived(message, _wait_for(terminal.pid, "it has the session open", _TAKEN_OVER)):
            return self._give_to_terminal(session, message, terminal)
        if head is not None:
            return self._inject(session, message, head)
        stranger = stranger_on(session)
        if stranger is not None and not self._holding.waived(message, hold := _wait_for(stranger, _STRANGER, _TWO_WRITERS)):
            return self._holding.hold(message, hold)
        return self._start(session, message)

    # --- into a headless

    def _inject(self, session: Session, message: Message, head: Head, *, started: bool = False) -> bool:
        """`started`: the head was started for this message a moment ago."""
        if (waits := self._waits_for(message, head)) is not None:
            return waits
        if not in_sight(head):
            return self._inject_unjudged(message, head)
        decision = self._ask(message, head)
        if isinstance(decision, Respawn):
            return self._respawn(session, message, head, decision, again=started)
        if isinstance(decision, Hold):
            return self._holding.hold(message, decision, own=False)
        # A plugin may have given it history meanwhile.
        waits = self._waits_for(message, self._store.heads.get(head.id) or head)
        return self._write(message, head, decision.catch_up) if waits is None else waits

    def _waits_for(self, message: Message, head: Head) -> bool | None:
        """What became of a message that this head can or should not take now; None when it may be written."""
        if head.jammed:
            return self._unfit(message, head, _JAMMED, "half a line in its FIFO")
        if self._leaves_no_trace(message, head):
            if not head.log.exists():
                return self._unfit(message, head, _UNSEEN, "its log is gone")
            if self._turn_under_way(head):
                return self._behind_the_turn(message, head)
        return None

    def _inject_unjudged(self, message: Message, head: Head) -> bool:
        """The head is of another pid namespace, as of a container on the same state directory: no plugin could look at its process."""
        reason = f"process {head.pid} was started in another pid namespace, as in a container, and can be judged there alone"
        cost = "overruling gives it the text unjudged: the answer may leave out turns of others"
        hold = Hold(reason=reason, signs=(f"process {head.pid}",), lingering=True, cost=cost)
        return self._write(message, head) if self._holding.waived(message, hold) else self._holding.hold(message, hold)

    def _leaves_no_trace(self, message: Message, head: Head) -> bool:
        """Whether nothing but the log would tell that this text arrived, were it given in the middle of a turn; so it may be as long as the
        head has not said of which release it is.
        """
        command = message.is_command and (not is_from(head.release, NAMES_MESSAGES) or not head.log.exists())
        return command or not is_from(head.release, KEEPS_MID_TURN)

    def _turn_under_way(self, head: Head) -> bool:
        last, fed = self._store.outbox.last_taken(head.id), self._store.heads.fed_at(head.id, time.time() - _FED_SECONDS)
        given = [offset for offset in (None if last is None else last.log_offset, fed) if offset is not None]
        return turn_under_way(head.log, max(given, default=None))

    def _behind_the_turn(self, message: Message, head: Head) -> bool:
        """It waits for the end of a turn in which it would leave no trace; a person may end the process with that turn."""
        hold = Hold(reason=_IN_A_TURN, signs=(f"process {head.pid}",), cost=cost_of_ending(head))
        return self._agents.end(head, "its turn does not end") if self._holding.waived(message, hold) else self._holding.hold(message, hold)

    def _unfit(self, message: Message, head: Head, reason: str, sign: str) -> bool:
        """The head cannot take the message any more; only a person may end it before it ends by itself."""
        hold = Hold(reason=reason, signs=(sign,), lingering=True, cost=cost_of_ending(head))
        return self._agents.end(head, sign) if self._holding.waived(message, hold) else self._holding.hold(message, hold)

    def _ask(self, message: Message, head: Head) -> Decision:
        self._checkpoint("ask")
        self._heard.forget()
        injection = Injection(
            session_id=message.session_id,
            text=message.text,
            message_id=message.message_id,
            headless=self._store.heads.headless(head),
            overrule=self._holding.waived_to_plugins(message),
        )
        return self._manager.pre_inject(self._host, injection)

    def _respawn(self, session: Session, message: Message, head: Head, decision: Respawn, *, again: bool) -> bool:
        mechanism = (self._heard.retired_by(head.pid) if head.pid is not None else None) or SENDER
        if self._agents.live(session.session_id) is not None:
            return self._holding.hold(message, Hold(reason=f"a fresh process was asked for, but process {head.pid} lives"), own=False)
        if again:
            hold = Hold(reason=f"the process that was started for it was retired too: {decision.reason}")
            return self._holding.hold(message, hold, own=False)
        self._checkpoint("respawn")
        retired = self._store.heads.headless(head)
        fresh = self._spawn(session, message)
        if fresh is None:
            return False
        event = Respawned(
            headless=self._store.heads.headless(fresh),
            retired=retired,
            reason=decision.reason,
            message_id=message.message_id,
        )
        emit(headless_respawned, mechanism, event)
        return self._settling.proven(message) is not None or self._inject(session, message, fresh, started=True)

    def _start(self, session: Session, message: Message) -> bool:
        fresh = self._spawn(session, message)
        return fresh is not None and self._inject(session, message, fresh, started=True)

    def _spawn(self, session: Session, message: Message) -> Head | None:
        if message.rests:
            return None
        self._checkpoint("spawn")
        try:
            head = self._agents.spawn(session)
        except ClaudeError as error:
            self._settling.unstarted(message, str(error))
            return None
        if message.unstarted_since is not None:
            self._store.outbox.started(message)
        return head

    def _write(self, message: Message, head: Head, catch_up: str | None = None) -> bool:
        try:
            return self._writer.write(message, head, catch_up)
        except Refused as error:
            return self._refused(message, head, str(error))

    def _refused(self, message: Message, head: Head, error: str) -> bool:
        """It did not go in as a whole: it is tried again, with a fresh process once this one is gone."""
        log.info("session %s: process %s took no input: %s", message.session_id, head.pid, error, extra={"ccc_session": message.session_id})
        if self._agents.live(message.session_id) is None:
            return self._settling.owed(message, last_words(head.log) or "the process ended without taking it").state == "queued"
        message = self._store.outbox.requeue(message, error, counts=False, reached=False)
        return self._unfit(message, head, f"process {head.pid} takes no input: {error}", "its FIFO takes nothing")

    # --- into a terminal

    def _give_to_terminal(self, session: Session, message: Message, terminal: Terminal) -> bool:
        """Give the message to the terminal that has the session, or wait until that can take it or is gone."""
        self._heard.forget()
        reason, pane = terminal.objection(message.text), terminal.typable_pane()
        if reason is None and pane is not None:
            return self._type(session, message, terminal, pane)
        reason = reason or "a terminal outside tmux, or not in its foreground, has the session open"
        return self._holding.hold(message, _wait_for(terminal.pid, reason, _TAKEN_OVER))

    def _type(self, session: Session, message: Message, terminal: Terminal, pane: Pane) -> bool:
        self._checkpoint("intend")
        offset = session_transcript_size(session)
        message = self._store.outbox.intend_typed(message, terminal.key, transcript_offset=offset)
        self._checkpoint("write")
        try:
            pane.type(typable(message.text))
        except TmuxError as error:
            message = self._store.outbox.requeue(message, str(error), counts=False)
            return self._holding.hold(message, _wait_for(terminal.pid, str(error), _TAKEN_OVER))
        self._store.outbox.wrote(message)
        return True


def _wait_for(pid: int, reason: str, cost: str) -> Hold:
    """To wait for the end of another process, which may never come."""
    return Hold(reason=reason, signs=(f"process {pid}",), lingering=True, cost=cost)
