"""Is a headless idle: only on proof. Pure: facts in, a verdict with its signs out.

Any sign of work wins over any sign of idleness, and what cannot be known counts as neither. The signs are short texts in a
fixed vocabulary; none holds conversation text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ccc_hookspecs.outcomes import IdlenessVerdict
from ccc_plugins.retire_stale.judgement.stream import Stream

Log: TypeAlias = Literal["readable", "missing", "unreadable", "replaced", "not known"]

_IDLE_STATUS = "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnacknowledgedInput:
    """An input that was written and of which nothing shows that it was finished. `age`: seconds since, or None."""

    message_id: str
    age: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdlenessFacts:
    """What is known of the work of one headless at one moment; None is *unknown* throughout.

    `now`: seconds since the epoch. `woke_at`: when the machine last woke from a sleep. `log`: the state of the stdout log that `stream`
    was read from. `unacknowledged`: inputs still owed an acknowledgement; None when the host does not know what was sent. `asked`:
    whether anything was ever sent. `unread`: bytes in the FIFO. `tools`: running tool processes, each described. `children`: how many
    live children of any kind. `registry_status`: of its record in the live-session registry. `registered`: whether it has one. `queued`:
    inputs the transcript shows enqueued and not taken. `unanswered`: the last input that was taken shows no outcome. `noticed`: tasks
    whose end the transcript tells; it counts where the log tells none. `quiet`: seconds since the log was last written to. `subagents`: a
    subagent's file grew since the last look. `silent`: the transcript goes on, the log does not, and nobody else is alive on the session.
    `computing`: it used more than a trace of CPU between two looks.
    """

    now: float
    log: Log
    stream: Stream
    unacknowledged: tuple[UnacknowledgedInput, ...] | None
    asked: bool
    unread: int | None
    tools: tuple[str, ...] | None
    children: int | None
    registry_status: str | None = None
    registered: bool | None = None
    queued: int = 0
    unanswered: bool = False
    noticed: Set[str] = frozenset()
    quiet: float | None = None
    subagents: bool = False
    silent: bool = False
    computing: bool | None = None
    woke_at: float | None = None


@dataclass(frozen=True, slots=True)
class Idleness:
    """The verdict and every sign that made it.

    `lingering`: what keeps it busy is only work that may never end by itself. `between_turns`: no turn runs in it, whatever runs beside.
    """

    verdict: IdlenessVerdict
    signs: tuple[str, ...]
    lingering: bool = False
    between_turns: bool = False


def judge_idleness(facts: IdlenessFacts) -> Idleness:
    """Busy on any sign of work, unknown on any gap in the proof, idle otherwise."""
    working, doubtful, beside = tuple(_work(facts)), tuple(_doubtful(facts)), tuple(_beside(facts))
    gaps = tuple(_gaps(facts))
    nothing_given = _nothing_given(facts)
    if working or doubtful or beside:
        between_turns = nothing_given or not (working or doubtful or gaps)
        return Idleness("busy", working + beside + doubtful, lingering=not working, between_turns=between_turns)
    if nothing_given and _is_ready(facts):
        return Idleness("idle", ("nothing was ever asked of it", "no children", "FIFO empty"), between_turns=True)
    if gaps:
        return Idleness("unknown", gaps, between_turns=nothing_given)
    return Idleness("idle", tuple(_rest(facts)), between_turns=True)


def sign_kind(sign: str) -> str:
    """A sign without what counts up or down in it, so that two looks at the same thing compare equal."""
    return _AGE.sub("", sign)


_AGE = re.compile(r" for \d+ s(?: more)?$|^\d+ ")


def _work(facts: IdlenessFacts) -> Iterator[str]:
    """Signs of work that will end."""
    stream = facts.stream
    for owed in facts.unacknowledged or ():
        if owed.message_id in stream.commands:
            continue
        yield f"input {owed.message_id[:4]} unacknowledged" + (f" for {owed.age:.0f} s" if owed.age is not None else "")
    for uuid, state in stream.commands.items():
        yield f"input {uuid[:4]} {state}"
    if facts.unread:
        yield f"{facts.unread} bytes unread in the FIFO"
    if stream.turn is not None:
        yield f"turn open: {stream.turn}"
    elif stream.state not in (None, _IDLE_STATUS) and not _runs_beside(stream):
        yield f"session state {stream.state}"
    elif (stream.begun or stream.hooks) and not stream.ended:
        yield "start-up not finished"
    if stream.background.ended and stream.turn is None and (facts.quiet is None or abs(facts.quiet) < _NOTICE_COMES):
        yield "a background task ended, its notice is to come"
    if facts.children and not stream.ended:
        yield f"start-up not finished: {facts.children} child processes"
    for key, subtype in stream.requests.items():
        yield f"question {key[:4]} ({subtype}) waiting for an answer"
    if facts.registry_status not in (None, _IDLE_STATUS):
        yield f"registry says {facts.registry_status}"
    if facts.subagents:
        yield "a subagent's transcript grows"
    if facts.computing:
        yield "CPU in use"


def _runs_beside(stream: Stream) -> bool:
    """Up to 2.1.168 the state stays `running` behind a turn that is over, as long as a background task goes on."""
    return stream.state == "running" and stream.ended and bool(stream.background.open)


def _beside(facts: IdlenessFacts) -> Iterator[str]:
    """Signs of work beside the turns that may never end by itself, after the turn that began it."""
    for key, kind in facts.stream.background.open.items():
        if facts.stream.background.reported or key not in facts.noticed:
            yield f"background task {key[:4]} ({kind}) open"
    for tool in facts.tools or ():
        yield f"running tool: {tool}"
    for alarm in facts.stream.alarms.values():
        if alarm.due is None:
            yield f"{alarm.kind} {alarm.key[:8]} armed"
        elif max(alarm.due, facts.woke_at or 0.0) + _ALARM_GRACE > facts.now:
            yield f"{alarm.kind} armed for {max(0.0, alarm.due - facts.now):.0f} s more"


def _doubtful(facts: IdlenessFacts) -> Iterator[str]:
    """Signs of a turn that may never have begun, and then never ends."""
    if facts.queued > 0:
        yield f"{facts.queued} inputs enqueued in the transcript and not taken"
    if facts.unanswered and facts.stream.turn is None:
        yield "an input taken, nothing printed since"


_NOTICE_COMES = 10.0
"""Seconds within which the end of a background task begins a turn: measured 10 to 70 ms. By a clock that was set back it is long ago."""
_ALARM_GRACE = 120.0
"""Seconds after its time until a wake-up that began no turn counts as passed: it waits for the next full minute, of a machine that slept
over its time for the first one after."""


def _nothing_given(facts: IdlenessFacts) -> bool:
    """A process that was never given anything, and that never began anything."""
    nothing_said = not facts.stream.begun and not facts.stream.ended and facts.log == "readable"
    return nothing_said and facts.unacknowledged == () and not facts.asked and facts.unread == 0


def _is_ready(facts: IdlenessFacts) -> bool:
    """One that is past its registration and runs nothing: if it was given nothing, ending it loses nothing."""
    return facts.children == 0 and facts.tools == () and facts.registered is True


def _gaps(facts: IdlenessFacts) -> Iterator[str]:
    """What would have to be known to call it idle, and is not."""
    if facts.log != "readable":
        yield f"stdout log {facts.log}"
    if facts.silent:
        yield "the transcript goes on and the stdout log does not, with nobody else on the session"
    if facts.unacknowledged is None:
        yield "the inputs sent to it are not known"
    if facts.unread is None:
        yield "the FIFO cannot be looked into"
    if facts.tools is None or facts.children is None:
        yield "its child processes cannot be seen"
    if facts.log == "readable" and not facts.stream.ended:
        yield "start-up not finished"


def _rest(facts: IdlenessFacts) -> Iterator[str]:
    """The signs of rest, for the record."""
    yield "session state idle" if facts.stream.state == _IDLE_STATUS else "last turn closed"
    yield "FIFO empty"
    yield "no tool running"
    if facts.registry_status == _IDLE_STATUS:
        yield "registry says idle"
    if facts.stream.finished:
        yield "every input finished"
