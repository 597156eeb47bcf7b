"""Where a message stands, in words for people."""

from __future__ import annotations

from ccc_hookspecs.host.records import Message
from ccc_hookspecs.host.terminals import Terminal


def standing(message: Message) -> str:
    """Where a message stands, and what may be done about it."""
    hold = message.hold
    match message.state:
        case "held" if hold is not None:
            waits = f", waits for: {', '.join(hold.signs)}" if hold.signs else ""
            return f"held: {hold.reason}{waits}; `ccc-host serve` asks again, `ccc-host send --now` overrules it"
        case "queued" | "held":
            tried = f" ({message.error})" if message.error else ""
            return f"kept{tried}; `ccc-host serve` or the next `ccc-host send` delivers it"
        case "written" if message.is_stuck:
            return stuck(message)
        case "written":
            return "given to the terminal" if message.terminal is not None else "given to Claude"
        case "failed":
            return f"not delivered: {message.error}; `ccc-host send` without a text tries again, `ccc-host drop` gives it up"
    return "delivered"


def stuck(message: Message) -> str:
    """The same of one that a process has had for long without taking it (`Message.is_stuck`)."""
    if message.terminal is None:
        return "given to Claude, which has not taken it yet; `ccc-host send --now` gives up on that process"
    unseen = "" if Terminal.of_key(message.terminal).in_sight else ", and may be gone: it runs in another pid namespace, as in a container"
    return f"typed into the terminal, which has not taken it{unseen}; `ccc-host send --now` gives it again"


def in_the_way(message: Message, first: Message | None) -> str | None:
    """That a message waits behind the first of its session, when that one does not go on by itself; None when it does, or is this one."""
    if first is None or first.seq >= message.seq or (first.may_go_on and not first.is_stuck):
        return None
    return f"kept behind message {first.message_id}: {standing(first)}"
