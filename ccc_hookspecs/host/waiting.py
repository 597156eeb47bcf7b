"""Waiting for one message: until it is delivered and answered, or until a person has enough of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ccc_hookspecs.host.host import LOCK_SECONDS, EmbeddedHost
from ccc_hookspecs.host.records import Head, Message
from ccc_hookspecs.host.sight import presence_of
from ccc_hookspecs.host.stopping import Stop
from ccc_hookspecs.host.stream import Answer
from ccc_hookspecs.host.words import in_the_way, stuck

Ending: TypeAlias = Literal[
    "answered", "typed", "failed", "blocked", "unstarted", "locked", "unanswered", "unseen", "turn_failed", "interrupted", "dropped"
]
"""How a wait ended. `typed`: a terminal has taken the text, and answers there. `failed`: no process took it, see the message's `error`.
`blocked`: one before it failed, and it waits behind that one. `unstarted`: no process can be started for now. `locked`: another process was
at the session all the while. `unanswered`: the process took it and ended before its answer did. `unseen`: the process took it, and the log
of its answer is gone. `interrupted`: by the person; the message goes its way all the same."""

START_SECONDS: Final = 10.0
"""How long a command waits for a process that cannot be started; the message goes on being tried."""

POLL_SECONDS: Final = 0.05
ASK_AGAIN_SECONDS: Final = 1.0
"""How often what is held is asked about again while somebody waits for it."""

SLOWEST_SECONDS: Final = 0.5
"""How often, at least, a message is looked after that makes no progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`message` as it stood last; `answer`: its text so far; `error`: what the turn failed with.

    `blocking`: the message that failed, or for which no process can be started; it may be this one.
    """

    ending: Ending
    message: Message
    answer: str = ""
    error: str | None = None
    blocking: Message | None = None


class Wait:
    """`stop` ends the wait; `on_text` gets each piece of the answer, `on_status` a line whenever what is waited for changes."""

    def __init__(
        self, host: EmbeddedHost, message: Message, stop: Stop, on_text: Callable[[str], None], on_status: Callable[[str], None]
    ) -> None:
        self._host, self._message, self._stop = host, message, stop
        self._on_text, self._on_status = on_text, on_status
        self._head: Head | None = None
        self._answer: Answer | None = None
        self._asked, self._pause, self._state = time.monotonic(), POLL_SECONDS, ""
        self._locked_since: float | None = None
        self._unstarted_since: float | None = None
        self._first: Message | None = None
        self._status = ""

    def run(self) -> Outcome:
        """Wait, driving the message on meanwhile; returns when there is nothing more to wait for."""
        while True:
            message = self._host.store.outbox.get(self._message.message_id)
            if message is None:
                return self._end("dropped")
            self._message = message
            self._follow()
            if (ending := self._ending()) is not None:
                return self._end(ending)
            self._say(self._what())
            if self._stop.wait(POLL_SECONDS):
                return self._end("interrupted")
            self._drive()

    def _drive(self) -> None:
        """Take it on: at once after it has changed, then ever less often."""
        message = self._message
        if message.state != self._state:
            self._state, self._pause, self._locked_since = message.state, POLL_SECONDS, None
        if message.state == "delivered" or time.monotonic() - self._asked < (ASK_AGAIN_SECONDS if message.state == "held" else self._pause):
            return
        driven = self._host.drive(message.session_id, lock_seconds=0.0)
        self._asked, self._pause = time.monotonic(), min(self._pause * 1.2, SLOWEST_SECONDS)
        self._first = first = self._host.store.outbox.first_of(message.session_id)
        unstarted = first is not None and first.unstarted_since is not None
        self._locked_since = None if driven else self._locked_since or self._asked
        self._unstarted_since = (self._unstarted_since or self._asked) if unstarted else None

    def _follow(self) -> None:
        head_id = self._message.head_id
        if head_id is not None and (self._head is None or self._head.id != head_id):
            self._head = self._host.store.heads.get(head_id)
            self._answer = None if self._head is None else Answer(self._message.message_id, self._head.log, self._message.log_offset)
        if self._answer is not None and not self._answer.done:
            for piece in self._answer.poll(delivered=self._message.state == "delivered"):
                self._on_text(piece)

    def _ending(self) -> Ending | None:
        message, answer = self._message, self._answer
        if message.state == "failed":
            return "failed"
        if message.state != "delivered":
            return self._in_the_way()
        if message.terminal is not None:
            return "typed"
        if answer is None or answer.done:
            return "answered" if answer is None or answer.error is None else "turn_failed"
        if self._head is not None and not self._head.log.exists():
            return "unseen"
        return "unanswered" if self._ended() else None

    def _in_the_way(self) -> Ending | None:
        """What it makes no sense to wait for."""
        if self._first is not None and self._first.state == "failed" and self._first.seq < self._message.seq:
            return "blocked"
        if _lasts(self._unstarted_since, START_SECONDS):
            return "unstarted"
        return "locked" if _lasts(self._locked_since, LOCK_SECONDS) else None

    def _ended(self) -> bool:
        """Whether the process is gone, and everything that it printed was read."""
        head = self._head
        if head is None or presence_of(head) != "gone":
            return False
        self._follow()
        return self._answer is not None and not self._answer.done

    def _end(self, ending: Ending) -> Outcome:
        answer = self._answer
        return Outcome(
            ending=ending,
            message=self._message,
            answer="" if answer is None else "\n".join(answer.parts),
            error=None if answer is None else answer.error,
            blocking=self._first if ending in ("blocked", "unstarted") else None,
        )

    def _what(self) -> str:
        message, answer = self._message, self._answer
        match message.state:
            case "held" if message.hold is not None:
                return f"held: {message.hold.reason}" + (f" ({', '.join(message.hold.signs)})" if message.hold.signs else "")
            case "queued" | "held" if (words := in_the_way(message, self._first)) is not None:
                return words
            case "queued" | "held":
                return "waits for what is under way before it" if message.error is None else f"is tried again: {message.error}"
            case "written" if message.terminal is not None and message.is_stuck:
                return stuck(message)
            case "written" if message.terminal is not None:
                return "typed into the terminal, waiting until it is taken"
            case "written":
                return (
                    "waits in the process for the end of the turn under way" if answer is not None and answer.waits else "given to Claude"
                )
        return "waiting for the answer"

    def _say(self, status: str) -> None:
        if status != self._status:
            self._status = status
            self._on_status(status)


def _lasts(since: float | None, seconds: float) -> bool:
    return since is not None and time.monotonic() - since >= seconds
