"""What a headless's stdout event says of its work, read off the bytes of its line: see `skim`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ccc_plugins.retire_stale.evidence.skim import ID, MESSAGE_END, NAME, TAIL, TEXT, member
from ccc_plugins.retire_stale.judgement.stream import Stream

_ASSISTANT = re.compile(rb'\{"type":"assistant","message":\{(?:"(?:model|type|role)":"' + NAME + rb'",)*+"id":"(' + NAME + rb')",')
_RESULT = re.compile(rb'\{"type":"user","message":\{"role":"user","content":\[\{"tool_use_id":"(' + NAME + rb')","type":"tool_result",')
_ORIGIN = rb',"parent_tool_use_id":null,"session_id":"(' + ID + rb')","uuid":"(' + ID + rb')"'
_BEHIND_MESSAGE = re.compile(_ORIGIN)
_MEANT = (b"type", b"uuid", b"message", b"session_id", b"parent_tool_use_id", b"user_message_uuids?")
_AT_END = re.compile(_ORIGIN + rb"(?:," + member(*_MEANT) + rb")*+\}")


def event_at(data: bytes, start: int, stop: int, stream: Stream) -> Mapping[str, Any] | None:
    """As much of the event on the line `data[start:stop]` as `stream` needs of it; None when the line must be decoded."""
    if data.startswith(b'{"type":"user"', start, stop):
        return _tool_result(data, start, stop, stream)
    return _answer(data, start, stop) if data.startswith(b'{"type":"assistant"', start, stop) else None


def _tool_result(data: bytes, start: int, stop: int, stream: Stream) -> Mapping[str, Any] | None:
    """Of the result of one tool call, which call it was: unless the stream has to read it."""
    head = _RESULT.match(data, start, stop)
    at = data.find(MESSAGE_END, head.end(), stop) if head is not None else -1
    origin = _BEHIND_MESSAGE.match(data, at + 2, stop) if at >= 0 else None
    if head is None or origin is None or not data.endswith(b"}", start, stop):
        return None
    if data.rfind(b'"tool_use_id"', head.end(), at) >= 0 or _goes_on(data, origin.end(), stop):
        return None
    call = head[1].decode()
    block = {"type": "tool_result", "tool_use_id": call}
    return None if stream.must_read(call) else _event("user", {"content": [block]}, origin)


def _goes_on(data: bytes, start: int, stop: int) -> bool:
    """Whether something that counts may stand behind the event's own `uuid`."""
    return data.rfind(b'"session_id":', start, stop) >= 0 or data.rfind(b'"user_message_uuid', start, stop) >= 0


def _answer(data: bytes, start: int, stop: int) -> Mapping[str, Any] | None:
    """Of an answer without a tool call, whose it is."""
    head = None if data.rfind(b'"tool_use"', start, stop) >= 0 else _ASSISTANT.match(data, start, stop)
    if head is None:
        return None
    at = data.rfind(b',"parent_tool_use_id":null,', max(head.end(), stop - TAIL), stop)
    origin = _AT_END.fullmatch(data, at, stop) if at >= 0 else None
    if origin is None or _holds_more(data, head.end(), at):
        return None
    return _event("assistant", {"id": head[1].decode()}, origin)


def _holds_more(data: bytes, start: int, stop: int) -> bool:
    """Whether there may be a second event in the rest of an answer."""
    marks = (b'"message":{', b'"session_id":', b'"tool_result"')
    return any(data.rfind(mark, start, stop) >= 0 for mark in marks)


def _event(kind: str, message: dict[str, Any], origin: re.Match[bytes]) -> Mapping[str, Any]:
    return {"type": kind, "message": message, "session_id": origin[1].decode(), "uuid": origin[2].decode()}


def partial_messages(stream: Stream) -> tuple[re.Pattern[bytes], Mapping[str, Any]] | None:
    """A pattern for lines on end of which each is a piece of an answer in this session, and an event that says what they say.

    None before the session is known.
    """
    session = stream.session_ids[-1] if stream.session_ids else ""
    if re.fullmatch(ID.decode(), session) is None:
        return None
    return _pieces(session), {"type": "stream_event", "session_id": session}


@lru_cache(maxsize=64)
def _pieces(session: str) -> re.Pattern[bytes]:
    delta = rb'\{"type":"content_block_delta","index":\d++,"delta":\{"type":"[a-z_]++","[a-z_]++":' + TEXT + rb"\}\}"
    origin = rb',"session_id":"' + session.encode() + rb'","parent_tool_use_id":null,"uuid":"' + ID + rb'"'
    line = (
        rb'\{"type":"stream_event","event":'
        + delta
        + origin
        + rb'(?:,"api_message_id":'
        + TEXT
        + rb")?+(?:,"
        + member(*_MEANT)
        + rb")*+\}\n"
    )
    return re.compile(rb"(?:" + line + rb")++")
