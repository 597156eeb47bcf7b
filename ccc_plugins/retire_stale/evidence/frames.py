"""History as a headless takes it on its input: lines made of what stands in the transcript."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ccc_hookspecs.claude.text import well_formed
from ccc_plugins.retire_stale.evidence.branches import record_at
from ccc_plugins.retire_stale.judgement.copies import copy_id
from ccc_plugins.retire_stale.judgement.entries import is_notice, texts_of
from ccc_plugins.retire_stale.judgement.history import Lack

_WORD_JOINER = "\u2060"
"""Nobody sees it, and a text that begins with it is no command."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One line for a headless's FIFO.

    `message_id`: its `uuid`, and that of the record that the headless writes. `of`: the record that it is made of; None when it is made of
    none, and none is written. `acknowledged`: the process says when it has taken it.
    """

    line: bytes = field(repr=False)
    message_id: str
    of: str | None
    acknowledged: bool


def frames_of(path: Path, session_id: str, lack: Lack, tasks: Set[str] = frozenset()) -> tuple[Frame, ...]:
    """The lines that give a headless what it lacks, in order; not what it can do without, or knows better.

    `tasks`: its own background tasks that are open: what another process says of their end is not true. A call that nobody will ever
    answer is left out, as a fresh process leaves it out. The end of the branch is given as an answer that says nothing, when it says
    nothing itself: no request to the model has it in it, and what the headless says next hangs below it.
    """
    records = [record for entry in lack.entries if (record := record_at(path, entry)) is not None]
    told = [record for record in records if _is_told(record, tasks)]
    results = {str(block.get("tool_use_id")) for record in told for block in _blocks(record, "tool_result")}
    frames = [_frame(r, session_id, lack.copies) for r in told if {str(b.get("id")) for b in _blocks(r, "tool_use")} <= results]
    if lack.end is not None and all(frame.of != lack.end for frame in frames):
        frames.append(Frame(_line("assistant", lack.end, session_id, _silence()), lack.end, lack.end, False))
    return tuple(frames)


def closing_frame(session_id: str) -> Frame:
    """An input that says nothing and leaves no record: with it the process writes the answers that it was given last, and says so."""
    message_id = str(uuid.uuid4())
    return Frame(_line("user", message_id, session_id, {"role": "user", "content": []}), message_id, None, True)


def _is_told(record: Mapping[str, Any], tasks: Set[str]) -> bool:
    if record.get("isCompactSummary") or record.get("isVisibleInTranscriptOnly"):
        return False
    message = _message(record)
    if message is None or message.get("model") == "<synthetic>":
        return False
    return not (tasks and record.get("type") == "user" and any(is_notice(text) and _names(text, tasks) for text in texts_of(record)))


def _names(text: str, tasks: Set[str]) -> bool:
    return any(f"<task-id>{task}</task-id>" in text for task in tasks)


def _message(record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What is said in a record; None when nothing is. A text that was accepted in the middle of a turn is said like any other."""
    attachment = record.get("attachment")
    if isinstance(attachment, Mapping):
        prompt = attachment.get("prompt")
        return {"role": "user", "content": prompt} if attachment.get("type") == "queued_command" and prompt else None
    message = record.get("message")
    return message if isinstance(message, Mapping) and record.get("type") in ("user", "assistant") else None


def _blocks(record: Mapping[str, Any], kind: str) -> Iterable[Mapping[str, Any]]:
    content = (_message(record) or {}).get("content")
    return [b for b in content if isinstance(b, Mapping) and b.get("type") == kind] if isinstance(content, list) else ()


def _frame(record: Mapping[str, Any], session_id: str, copies: Set[str]) -> Frame:
    of, message = str(record["uuid"]), dict(_message(record) or {})
    kind = "assistant" if record.get("type") == "assistant" else "user"
    message_id = copy_id(of) if of in copies else of
    if kind == "user":
        message["content"] = _defused(message.get("content"))
    elif of in copies and isinstance(message.get("id"), str):
        # Of two messages of one id, a later reader may take the one for a part of the other.
        message["id"] = f"msg_{copy_id(message['id']).replace('-', '')}"
    return Frame(_line(kind, message_id, session_id, message), message_id, of, kind == "user")


def _defused(content: Any) -> Any:
    """Content that is not run as a command: Claude Code looks at a text, or at the last block of a list (measured)."""
    if isinstance(content, str):
        return _WORD_JOINER + content if content.startswith("/") else content
    last = content[-1] if isinstance(content, Sequence) and content else None
    if not isinstance(last, Mapping) or last.get("type") != "text" or not str(last.get("text")).startswith("/"):
        return content
    return [*content[:-1], {**last, "text": _WORD_JOINER + str(last["text"])}]


def _silence() -> dict[str, Any]:
    said = {"content": [{"type": "text", "text": ""}], "stop_reason": "end_turn", "stop_sequence": None}
    usage = {"input_tokens": 0, "output_tokens": 0}
    return {"id": f"msg_{uuid.uuid4().hex}", "type": "message", "role": "assistant", "model": "<synthetic>", **said, "usage": usage}


def _line(kind: str, message_id: str, session_id: str, message: Mapping[str, Any]) -> bytes:
    """ASCII only, and without half a surrogate pair: releases up to 2.1.168 get no answer any more once they have one in memory."""
    frame: dict[str, Any] = {"type": kind, "uuid": message_id, "session_id": session_id, "parent_tool_use_id": None}
    if kind == "user":
        frame["shouldQuery"] = False
    sound = json.loads(well_formed(json.dumps({**frame, "message": message}, ensure_ascii=False)))
    return json.dumps(sound, separators=(",", ":")).encode("ascii") + b"\n"
