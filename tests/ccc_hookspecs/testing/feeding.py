"""How the tests of healing feed a simulated headless, and what they read of it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from ccc_hookspecs.testing.harness import Record, SimulatedHeadless, Simulator

TAKES = ("2.1.119", "2.1.168", "2.1.216", "2.1.275", "2.1.332")
every_release = pytest.mark.parametrize("release", TAKES)
STATES = {"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"}


def begun(simulator: Simulator, release: str, **environ: str) -> SimulatedHeadless:
    """A headless that took one turn."""
    simulator.release = release
    head = simulator.headless(environ=environ)
    head.ask("first")
    return head


def elsewhere(simulator: Simulator, head: SimulatedHeadless, text: str = "from elsewhere") -> list[Record]:
    """Let another process take a turn; returns the messages that it wrote."""
    before = len(head.records())
    simulator.one_shot(head.session_id, text)
    return [record for record in head.records()[before:] if record["type"] in {"user", "assistant"}]


def user(content: Any, **fields: Any) -> Record:
    return {"type": "user", "uuid": str(uuid.uuid4()), "message": {"role": "user", "content": content}, **fields}


def answer(text: str) -> Record:
    message = {"id": "msg_0", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": text}]}
    return {"type": "assistant", "uuid": str(uuid.uuid4()), "message": message}


def written(head: SimulatedHeadless, since: int) -> list[str]:
    """What was appended: an operation of the queue, the id of a message that stands there, or the type of another record."""
    ids = {"user", "assistant"}
    return [str(record["uuid"] if record["type"] in ids else record.get("operation", record["type"])) for record in head.records()[since:]]


def parents(head: SimulatedHeadless) -> dict[str, str | None]:
    """The parent of each record by its id, of the last copy."""
    return {record["uuid"]: record["parentUuid"] for record in head.records() if "uuid" in record}


def leaf(head: SimulatedHeadless) -> str:
    return str([record for record in head.records() if "uuid" in record][-1]["uuid"])


def told(head: SimulatedHeadless, since: int) -> list[str]:
    """What it printed: the kind of each event, and its state when it has one."""
    return [str(event.get("state") or event.get("subtype") or event["type"]) for event in head.events()[since:]]
