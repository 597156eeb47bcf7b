"""Sending a text from the command line, and seeing it through."""

from __future__ import annotations

import math
import time
from typing import Any, Final

from ccc_hookspecs.errors import SessionLockTimeout
from ccc_hookspecs.host.errors import ExitCode
from ccc_hookspecs.host.host import LOCK_SECONDS, EmbeddedHost
from ccc_hookspecs.host.output import Output
from ccc_hookspecs.host.records import Message
from ccc_hookspecs.host.sight import cost_of_ending
from ccc_hookspecs.host.stopping import Stop
from ccc_hookspecs.host.waiting import Ending, Outcome, Wait
from ccc_hookspecs.host.words import in_the_way, standing

PUSH_SECONDS: Final = 2.0
"""How long a command waits for a session that another process is at, before it goes on waiting interruptibly."""

_MOST_HOLDS: Final = 5
"""How many holds, one behind the other, one command overrules."""

_EXITS: Final[dict[Ending, ExitCode]] = {
    "answered": ExitCode.OK,
    "typed": ExitCode.OK,
    "failed": ExitCode.CLAUDE,
    "blocked": ExitCode.CLAUDE,
    "unstarted": ExitCode.CLAUDE,
    "locked": ExitCode.LOCKED,
    "unseen": ExitCode.FAILED,
    "unanswered": ExitCode.CLAUDE,
    "turn_failed": ExitCode.TURN_FAILED,
    "interrupted": ExitCode.INTERRUPTED,
    "dropped": ExitCode.FAILED,
}


def see_through(host: EmbeddedHost, output: Output, message: Message, stop: Stop) -> ExitCode:
    """Wait for a message and its answer, and say what comes; returns the exit code."""
    with output.progress():
        outcome = Wait(host, message, stop, output.answer, output.status).run()
    if output.as_json:
        blocking = None if outcome.blocking is None else shown(outcome.blocking)
        told = {"ending": outcome.ending, "answer": outcome.answer, "turn_error": outcome.error, "blocked_by": blocking}
        output.value({**shown(outcome.message), **told})
    elif (words := _words(outcome)) is not None:
        output.error(words) if _EXITS[outcome.ending] not in (ExitCode.OK, ExitCode.INTERRUPTED) else output.note(words)
    return _EXITS[outcome.ending]


def leave(host: EmbeddedHost, output: Output, message: Message) -> ExitCode:
    """Do not wait: say where the message stands; returns the exit code."""
    if output.as_json:
        output.value(shown(message))
    else:
        first = host.store.outbox.first_of(message.session_id)
        output.note(f"message {message.message_id}: {in_the_way(message, first) or standing(message)}")
    return ExitCode.CLAUDE if message.state == "failed" else ExitCode.OK


def overrule(host: EmbeddedHost, output: Output, session_id: str, stop: Stop) -> None:
    """Say what the session's first message waits for and what it costs not to wait, and have it not wait; what it waits for then is said
    and overruled in its turn. Does nothing when it waits for nothing yet. Raises `SessionLockTimeout`.
    """
    shown: list[Message] = []
    for _ in range(_MOST_HOLDS):
        first = host.store.outbox.first_of(session_id)
        if first is None or any(first.message_id != one.message_id or _waits_for(first) == _waits_for(one) for one in shown):
            return
        if not _tell_cost(host, output, first):
            return
        shown.append(first)
        end = time.monotonic() + LOCK_SECONDS
        while not host.overrule(*shown, lock_seconds=PUSH_SECONDS):
            if stop.is_set():
                return
            if time.monotonic() >= end:
                raise SessionLockTimeout(session_id, LOCK_SECONDS)


def _waits_for(message: Message) -> tuple[object, ...]:
    return message.state, message.hold, message.written_at


def _tell_cost(host: EmbeddedHost, output: Output, first: Message) -> bool:
    if first.state == "held" and first.hold is not None:
        output.note(f"held: {first.hold.reason}")
        output.note(f"overruled; the cost: {first.hold.cost or 'what it waits for is not waited for'}")
        return True
    if not first.is_stuck:
        return False
    since = f"{first.seconds_given:.0f} s ago" if math.isfinite(first.seconds_given) else "a while ago"
    if first.terminal is not None:
        output.note(f"message {first.message_id} was typed into the terminal {since} and is not taken")
        output.note("overruled; the cost: it is given again, and will be there twice if the terminal takes it after all")
    else:
        output.note(f"a process was given message {first.message_id} {since} and does not take it")
        head = None if first.head_id is None else host.store.heads.get(first.head_id)
        output.note(f"overruled; the cost: {'that process is ended' if head is None else cost_of_ending(head)}")
    return True


def shown(message: Message) -> dict[str, Any]:
    """A message as JSON, without its text."""
    hold = message.hold
    return {
        "session_id": message.session_id,
        "message_id": message.message_id,
        "state": message.state,
        "attempts": message.attempts,
        "held_since": message.held_since,
        "hold": None if hold is None else {"reason": hold.reason, "signs": hold.signs, "lingering": hold.lingering, "cost": hold.cost},
        "error": message.error,
        "stuck": message.is_stuck,
        "proof": message.proof,
    }


def _words(outcome: Outcome) -> str | None:
    message = outcome.message
    match outcome.ending:
        case "typed":
            return f"typed into the terminal that has session {message.session_id} open; the answer comes there"
        case "failed":
            return f"message {message.message_id}: {standing(message)}"
        case "unstarted" if outcome.blocking is not None and outcome.blocking.message_id == message.message_id:
            return f"message {message.message_id}: {standing(outcome.blocking)}"
        case "blocked" | "unstarted" if outcome.blocking is not None:
            return f"message {message.message_id} is kept behind message {outcome.blocking.message_id}: {standing(outcome.blocking)}"
        case "locked":
            return f"another process was at session {message.session_id} all the while; message {message.message_id}: {standing(message)}"
        case "unseen":
            return f"message {message.message_id} was delivered, but the log of the process is gone; its answer comes in the transcript"
        case "unanswered":
            return f"Claude took message {message.message_id} and ended before it answered; `ccc-host send` starts it again"
        case "turn_failed":
            return f"the turn failed: {outcome.error}"
        case "interrupted" if message.state == "delivered":
            return f"message {message.message_id} was delivered; its answer comes in session {message.session_id}"
        case "interrupted":
            return f"message {message.message_id}: {standing(message)}"
        case "dropped":
            return f"message {message.message_id} was dropped by another command"
    return None
