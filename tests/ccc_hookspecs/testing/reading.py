"""How two sets of records are compared: what each says, without what differs from run to run of the real program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

Record: TypeAlias = dict[str, Any]

_FIELDS = """
    type subtype uuid parentUuid logicalParentUuid sessionId session_id timestamp isSidechain isMeta isCompactSummary
    isVisibleInTranscriptOnly isApiErrorMessage promptId promptSource turnOrigin entrypoint version userType operation leafUuid
    messageId command_uuid state user_message_uuid user_message_uuids parent_tool_use_id tool_use_id task_id status
    terminal_reason is_error is_backgrounded patch task_type num_turns duration_ms origin level compactMetadata summary tasks
    message attachment cwd
"""
RECORDED = frozenset(_FIELDS.split())
"""The fields that the recordings kept; a `system` record's `content` too."""

TRAILERS = frozenset({"last-prompt", "atis-latch", "mode", "permission-mode", "cost-state", "summary", "file-history-snapshot"})
"""Records without `uuid` that come by size and time, so that no two runs have them at the same places."""

_REQUESTS = frozenset({"api-request", "api-request-blob", "api-request-shape"})
_REMINDERS = frozenset({"task_reminder", "todo_reminder"})
_VALUES = ("entrypoint", "promptSource", "turnOrigin", "isMeta", "state", "status", "terminal_reason", "is_error", "isApiErrorMessage")
_IDS = ("parentUuid", "logicalParentUuid", "command_uuid", "user_message_uuid", "promptId", "tool_use_id", "task_id", "parent_tool_use_id")


def kind(record: Record) -> str:
    """What a record or an event is: its type, and within that what tells it from others."""
    inner = record.get("subtype") or record.get("operation") or (record.get("attachment") or {}).get("type") or record.get("state") or ""
    message = record.get("message")
    if record.get("type") in {"user", "assistant"} and isinstance(message, dict):
        content = message.get("content")
        inner = "string" if isinstance(content, str) else content[0]["type"] if content else ""
        inner += " meta" if record.get("isMeta") else ""
    return f"{record.get('type')} {inner}".strip()


def fields(record: Record) -> frozenset[str]:
    """The names of the fields it has, of those that the recordings kept."""
    kept = RECORDED | {"content"} if record.get("type") == "system" else RECORDED
    return frozenset(record) & kept


def comparable(records: Iterable[Record]) -> list[tuple[Any, ...]]:
    """One tuple a record, in order: its kind, fields, telling values and its ids by order of appearance."""
    names: dict[str, int] = {}
    return [_told(record, names) for record in _ordered(_kept(records))]


def _told(record: Record, names: dict[str, int]) -> tuple[Any, ...]:
    message = record.get("message") or {}
    ids = [record.get("uuid"), *(record.get(name) for name in _IDS), message.get("id"), *record.get("user_message_uuids", ())]
    numbers = tuple(None if one is None else names.setdefault(one, len(names)) for one in ids)
    values = tuple(record.get(name) for name in _VALUES)
    turns = record.get("num_turns") if record.get("terminal_reason") or record.get("is_error") else None
    return (kind(record), tuple(sorted(fields(record))), values, turns, message.get("model"), numbers)


def _kept(records: Iterable[Record]) -> list[Record]:
    """Without trailers, requests, reminders, progress, and what a terminal's `/exit` may leave."""
    found = list(records)
    left_by_exit = _left_by_exit(found)
    kept: list[Record] = []
    bridges: dict[str, Any] = {}
    for index, record in enumerate(found):
        if record.get("type") in TRAILERS | _REQUESTS:
            continue
        if "parentUuid" in record:
            record = record | {"parentUuid": bridges.get(record["parentUuid"], record["parentUuid"])}
        if index in left_by_exit or _is_incidental(record):
            bridges[record["uuid"]] = record["parentUuid"]
        else:
            kept.append(record)
    return kept


def _is_incidental(record: Record) -> bool:
    return record.get("type") == "progress" or (record.get("attachment") or {}).get("type") in _REMINDERS


def _left_by_exit(records: list[Record]) -> set[int]:
    """Where the echo of `/exit` stands, and the answer by no model that a later process puts after it."""
    echoes = [index for index, record in enumerate(records) if _text(record).startswith("<command-name>/exit")]
    places = {index + step for index in echoes for step in (-1, 0, 1)}
    uuids = {records[index].get("uuid") for index in places}
    answers = {
        index for index, record in enumerate(records) if record.get("parentUuid") in uuids and record.get("isApiErrorMessage") is False
    }
    return places | answers


def _text(record: Record) -> str:
    content = (record.get("message") or {}).get("content")
    return content if isinstance(content, str) else ""


def _ordered(records: list[Record]) -> list[Record]:
    """With a fixed order where the real program has none: a removal from the queue beside its attachment, results of parallel tools."""
    for index in range(len(records) - 1):
        one, other = records[index], records[index + 1]
        if kind(one) == "attachment queued_command" and kind(other) == "queue-operation remove":
            records[index], records[index + 1] = other, one
        if kind(one) == "user tool_result" == kind(other) and "parentUuid" in one:
            records[index], records[index + 1] = (record | {"parentUuid": "parallel"} for record in (one, other))
    return records
