"""Files of one made session, of any size: a transcript and a headless's stdout log, in the shapes that Claude Code 2.1.332 writes.

A turn is a prompt, some tool calls with their results (most of a few KB, some of 200 KB, each twice as in real records), thinking
and an answer; the log holds partial messages too (`--include-partial-messages`), as many as it takes to reach the size asked for.
The texts are this Python's own standard library. The same seed makes the same files.
"""

from __future__ import annotations

import argparse as _argparse_text
import json
import random
import typing as _typing_text
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

VERSION = "2.1.332"
_USAGE = {"input_tokens": 10, "cache_creation_input_tokens": 811, "cache_read_input_tokens": 90210, "output_tokens": 410}
_TOOLS = [f"Tool{number}" for number in range(60)]
_CWD = "/home/user/project"


@dataclass(frozen=True, slots=True)
class Made:
    """What was made. `history`: bytes of the transcript that stood there before the headless loaded it. `sent`: (id, seconds)."""

    session: str
    transcript: Path
    log: Path
    spawned_at: float
    history: int
    sent: list[tuple[str, float]]


def make(session: Session, transcript: Path, log: Path, size: int, *, own_share: float) -> Made:
    """Make both files, each of about `size` bytes; `own_share` of the transcript is the headless's own, the rest is from before."""
    with transcript.open("wb") as records, log.open("wb") as events:
        while records.tell() < size * (1 - own_share):
            session.turn(records, None, entrypoint="cli")
        history, spawned_at, first = records.tell(), session.clock, len(session.sent)
        own = max(1.0, size * own_share)
        while events.tell() < size or records.tell() < size:
            behind = events.tell() / size < (records.tell() - history) / own
            session.turn(records, events, partial=4 if behind else 0)
    return Made(session.id, transcript, log, spawned_at, history, session.sent[first:])


@dataclass(slots=True)
class Session:
    """Writes turn after turn. `clock`: seconds since the epoch, moving on with each record. `parent`: the last record's `uuid`."""

    chance: random.Random
    clock: float = 1_796_038_500.0
    parent: str | None = None
    sent: list[tuple[str, float]] = field(default_factory=list)
    id: str = ""
    _text: str = ""

    def __post_init__(self) -> None:
        self.id = self.id or self._uuid()
        self._text = "".join(Path(str(module.__file__)).read_text() for module in (_argparse_text, _typing_text))

    def turn(self, records: BinaryIO, events: BinaryIO | None, *, partial: int = 0, entrypoint: str = "sdk-cli") -> None:
        """One turn. Without `events` it is another process's. `partial`: characters a partial message holds, 0 for none."""
        out = _Out(records, events, partial)
        prompt = self._prompt(out, entrypoint)
        for _ in range(self.chance.randint(0, 8)):
            self._tool_call(out, entrypoint)
        self._answer(out, {"type": "thinking", "thinking": self._words(900), "signature": self._words(200)}, entrypoint)
        self._answer(out, {"type": "text", "text": self._words(1500)}, entrypoint)
        out.record({"type": "last-prompt", "lastPrompt": "go on", "leafUuid": self.parent, "sessionId": self.id})
        out.event(
            {"duration_api_ms": 34, "session_id": self.id, "subtype": "success", "type": "result", "usage": _USAGE, "uuid": self._uuid()}
        )
        self._lifecycle(out, prompt, "completed")

    def _prompt(self, out: _Out, entrypoint: str) -> str:
        prompt = self._uuid()
        self.sent.append((prompt, self.clock))
        for operation in ("enqueue", "dequeue"):
            out.record({"type": "queue-operation", "operation": operation, "timestamp": self._stamp(), "sessionId": self.id})
        self._lifecycle(out, prompt, "queued")
        self._lifecycle(out, prompt, "started")
        named = {"session_id": self.id, "uuid": self._uuid(), "user_message_uuids": [prompt]}
        out.event({"type": "system", "subtype": "init", "cwd": _CWD, "tools": _TOOLS, "slash_commands": _TOOLS, **named})
        message = {"role": "user", "content": [{"type": "text", "text": self._words(300)}]}
        self._record(out, {"promptId": self._uuid(), "type": "user", "message": message}, {"promptSource": "sdk"}, entrypoint, uuid=prompt)
        for kind in ("environment", "skill_listing", "date"):
            self._record(out, {"attachment": {"type": kind, "content": self._words(600)}, "type": "attachment"}, {}, entrypoint)
        return prompt

    def _lifecycle(self, out: _Out, prompt: str, state: str) -> None:
        out.event({"type": "command_lifecycle", "command_uuid": prompt, "state": state, "uuid": self._uuid(), "session_id": self.id})

    def _tool_call(self, out: _Out, entrypoint: str) -> None:
        call, background = f"toolu_{self.chance.getrandbits(96):024x}", self.chance.random() < 0.02
        given = {"command": self._words(200), "description": "x"} | ({"run_in_background": True} if background else {})
        out.record({"type": "api-request", "sessionId": self.id, "timestamp": self._stamp(), "params": {"text": self._words(900)}})
        asked = self._answer(out, {"type": "tool_use", "id": call, "name": "Bash", "input": given}, entrypoint)
        if background:
            self._background(out, call)
        text = self._words(int(min(200_000, self.chance.lognormvariate(8.0, 1.3))))
        self._tool_result(out, {"tool_use_id": call, "type": "tool_result", "content": text, "is_error": False}, text, asked, entrypoint)

    def _background(self, out: _Out, call: str) -> None:
        task = {"type": "system", "task_id": call[-9:], "tool_use_id": call, "session_id": self.id, "uuid": self._uuid()}
        out.event(task | {"subtype": "task_started", "task_type": "local_bash"})
        out.event(task | {"subtype": "task_notification", "status": "completed", "summary": self._words(80)})

    def _tool_result(self, out: _Out, block: dict[str, Any], text: str, asked: str, entrypoint: str) -> None:
        message = {"role": "user", "content": [block]}
        result = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
        after = {"toolUseResult": result, "sandboxed": False, "sourceToolAssistantUUID": asked}
        uuid = self._record(out, {"promptId": self._uuid(), "type": "user", "message": message}, after, entrypoint)
        event = {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": self.id, "uuid": uuid}
        out.event(event | {"timestamp": self._stamp(), "tool_use_result": result, "tool_result_meta": [{"id": block["tool_use_id"]}]})

    def _answer(self, out: _Out, block: dict[str, Any], entrypoint: str) -> str:
        """One assistant record, and its events; its `uuid`."""
        head = {"id": f"msg_{self.chance.getrandbits(96):024x}", "type": "message", "role": "assistant", "model": "claude-opus-5-5"}
        self._partials(out, head, block)
        message = head | {"content": [block], "stop_reason": None, "usage": _USAGE, "context_management": None}
        uuid = self._record(out, {"message": message, "requestId": head["id"], "type": "assistant"}, {}, entrypoint)
        event = {"type": "assistant", "message": message, "parent_tool_use_id": None, "session_id": self.id, "uuid": uuid}
        out.event(event | {"timestamp": self._stamp()})
        return uuid

    def _partials(self, out: _Out, head: dict[str, Any], block: dict[str, Any]) -> None:
        if not out.partial:
            return
        text = json.dumps(block["input"]) if "input" in block else str(block.get("text") or block.get("thinking"))
        self._partial(out, head, {"type": "message_start", "message": head | {"content": [], "usage": _USAGE}})
        for start in range(0, len(text), out.partial):
            delta = {"type": "text_delta", "text": text[start : start + out.partial]}
            self._partial(out, head, {"type": "content_block_delta", "index": 0, "delta": delta})
        self._partial(out, head, {"type": "message_stop"})

    def _partial(self, out: _Out, head: dict[str, Any], event: dict[str, Any]) -> None:
        named = {"session_id": self.id, "parent_tool_use_id": None, "uuid": self._uuid(), "api_message_id": head["id"]}
        out.event({"type": "stream_event", "event": event, **named})

    def _record(self, out: _Out, body: dict[str, Any], after: dict[str, Any], entrypoint: str, *, uuid: str | None = None) -> str:
        uuid = uuid or self._uuid()
        record = {"parentUuid": self.parent, "isSidechain": False, **body, "uuid": uuid, "timestamp": self._stamp(), **after}
        where = {"cwd": _CWD, "sessionId": self.id, "version": VERSION, "gitBranch": "main"}
        out.record(record | {"userType": "external", "entrypoint": entrypoint, **where})
        self.parent = uuid
        return uuid

    def _uuid(self) -> str:
        digits = f"{self.chance.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def _words(self, length: int) -> str:
        start = self.chance.randrange(max(1, len(self._text) - length))
        return self._text[start : start + length]

    def _stamp(self) -> str:
        self.clock += 0.01
        return datetime.fromtimestamp(self.clock, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class _Out:
    records: BinaryIO
    events: BinaryIO | None
    partial: int

    def record(self, record: dict[str, Any]) -> None:
        self.records.write(_line(record))

    def event(self, event: dict[str, Any]) -> None:
        if self.events is not None:
            self.events.write(_line(event))


def _line(data: dict[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def spaced(lines: bytes) -> Iterator[bytes]:
    """The same lines as a writer with spaces after separators would have them."""
    for line in lines.splitlines():
        yield json.dumps(json.loads(line), ensure_ascii=False).encode() + b"\n"
