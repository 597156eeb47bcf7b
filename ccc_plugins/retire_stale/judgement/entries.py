"""What one transcript record means for attribution and for branches. Pure: a decoded record in, an `Entry` out.

The shapes were read off Claude Code 2.0.42 to 2.1.332; a record of an unknown shape becomes an entry of kind `other`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["prompt", "answer", "boundary", "note", "shell", "queued", "echo", "other"]
"""`prompt`: a text given to the model. `answer`: the model's. `boundary`: a compaction.
`note`: a summary or an interruption. `shell`: a command that a person ran for the model to see, or its output.
`queued`: a text accepted in the middle of a turn. `echo`: a command that Claude Code handles itself, or what came of it.
`other`: everything else that is not conversation."""

Writer: TypeAlias = Literal["typed", "sdk", "unknown"]

CONVERSATION: frozenset[Kind] = frozenset({"prompt", "answer", "boundary", "note", "shell"})
_SYSTEM_KINDS: Mapping[str, Kind] = {"compact_boundary": "boundary", "local_command": "echo"}
_TREE_TYPES = frozenset({"user", "assistant", "attachment", "system"})
_NOTICE = "<task-notification>"
_ECHOES = ("<command-name>", "<local-command-", "Caveat: The messages below")
_UNKNOWN_COMMAND = re.compile(r"Unknown (?:slash command|skill|command): \S+\s*")
_INTERRUPTED = "[Request interrupted by user"
_SHELL = "<bash-"
_CATCH_UP = re.compile(r"<ccc-catch-up turns=\"([0-9a-fA-F \-]*)\">")


@dataclass(frozen=True, slots=True)
class Entry:
    """One transcript record.

    `offset`: its byte position. `parent`: `parentUuid`, or for a compaction its `logicalParentUuid`. `timestamp`: seconds since
    the epoch, or None. `in_tree`: it may be a leaf that `--resume` follows. `gives_back`: the prompts that a catch-up in it repeats; None
    without one. `made_up`: Claude Code said it itself in the model's name, such as that no response was requested. `parent_is_logical`:
    `--resume` reads nothing above it. `segment`: of a compaction that keeps a part of the conversation, the ids of that part's first
    record, of the record that it is read behind, and of its last.
    """

    offset: int
    type: str
    kind: Kind
    uuid: str | None = None
    parent: str | None = None
    message_id: str | None = None
    entrypoint: str | None = None
    writer: Writer = "unknown"
    timestamp: float | None = None
    release: str | None = None
    in_tree: bool = False
    gives_back: tuple[str, ...] | None = None
    made_up: bool = False
    parent_is_logical: bool = False
    segment: tuple[str, str, str] | None = None

    @property
    def is_conversation(self) -> bool:
        return self.kind in CONVERSATION and not self.made_up

    @property
    def physical_parent(self) -> str | None:
        """`parentUuid`: the record that `--resume` reads above it."""
        return None if self.parent_is_logical else self.parent


def entry_of(record: Mapping[str, Any], offset: int) -> Entry:
    """The entry of a record that stands at `offset`. Never raises, whatever the record's fields hold."""
    kind = _kind(record)
    uuid = _text(record.get("uuid"))
    main = not record.get("isSidechain")
    parent = _text(record.get("parentUuid"))
    logical = _text(record.get("logicalParentUuid")) if kind == "boundary" and parent is None else None
    message = record.get("message")
    return Entry(
        offset=offset,
        type=str(record.get("type")),
        kind=kind if main and uuid is not None else "other",
        uuid=uuid,
        parent=parent or logical,
        message_id=_text(message.get("id")) if isinstance(message, Mapping) else None,
        entrypoint=_text(record.get("entrypoint")),
        writer=writer_of(record.get("entrypoint")),
        timestamp=seconds(record.get("timestamp")),
        release=_text(record.get("version")),
        in_tree=main and uuid is not None and str(record.get("type")) in _TREE_TYPES,
        made_up=isinstance(message, Mapping) and message.get("model") == "<synthetic>",
        gives_back=_gives_back(record) if main and record.get("type") in ("user", "attachment") else None,
        parent_is_logical=logical is not None,
        segment=_segment(record) if kind == "boundary" else None,
    )


def seconds(stamp: object) -> float | None:
    """Seconds since the epoch of an ISO 8601 text with a zone, or None."""
    if not isinstance(stamp, str):
        return None
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo is not None else None


def writer_of(entrypoint: object) -> Writer:
    """Whether a person typed at this entry point; releases up to 2.1.61 name none."""
    if isinstance(entrypoint, str):
        return "sdk" if entrypoint.startswith("sdk") else "typed"
    return "unknown"


def texts_of(record: Mapping[str, Any]) -> tuple[str, ...]:
    """The text blocks of a record's message, or the text of one that was accepted in the middle of a turn."""
    attachment = record.get("attachment")
    if isinstance(attachment, Mapping):
        return _texts(attachment.get("prompt"))
    message = record.get("message")
    return _texts(message.get("content")) if isinstance(message, Mapping) else ()


def is_notice(text: str) -> bool:
    """Whether a text is what Claude Code tells the model of a background task."""
    return text.lstrip().startswith(_NOTICE)


def _kind(record: Mapping[str, Any]) -> Kind:
    match record.get("type"):
        case "assistant":
            return "answer"
        case "user":
            return _user_kind(record)
        case "system":
            return _SYSTEM_KINDS.get(str(record.get("subtype")), "other")
        case "attachment":
            attachment = record.get("attachment")
            return "queued" if isinstance(attachment, Mapping) and attachment.get("type") == "queued_command" else "other"
        case _:
            return "other"


def _user_kind(record: Mapping[str, Any]) -> Kind:
    if record.get("isCompactSummary"):
        return "note"
    if record.get("isMeta") or _is_task_notice(record) or _has_tool_result(record):
        return "other"
    first = next((text for text in texts_of(record) if _CATCH_UP.match(text) is None), "").lstrip()
    if is_notice(first):
        return "other"
    if first.startswith(_ECHOES) or _UNKNOWN_COMMAND.fullmatch(first):
        return "echo"
    if first.startswith(_SHELL):
        return "shell"
    return "note" if first.startswith(_INTERRUPTED) else "prompt"


def _is_task_notice(record: Mapping[str, Any]) -> bool:
    origin = record.get("origin")
    return isinstance(origin, Mapping) and origin.get("kind") == "task-notification"


def _has_tool_result(record: Mapping[str, Any]) -> bool:
    message = record.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    return isinstance(content, list) and any(isinstance(b, Mapping) and b.get("type") == "tool_result" for b in content)


def _segment(record: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """An id that is missing is an empty text: there is no such record."""
    metadata = record.get("compactMetadata")
    segment = metadata.get("preservedSegment") if isinstance(metadata, Mapping) else None
    if not isinstance(segment, Mapping) or not segment:
        return None
    head, anchor, tail = (_text(segment.get(name)) or "" for name in ("headUuid", "anchorUuid", "tailUuid"))
    return head, anchor, tail


def _gives_back(record: Mapping[str, Any]) -> tuple[str, ...] | None:
    """A catch-up stands in front of the person's own text; where that was a custom slash command, in the meta record of its expansion."""
    match = next((_CATCH_UP.match(text) for text in texts_of(record)[:1]), None)
    return None if match is None else tuple(match.group(1).split())


def _texts(content: object) -> tuple[str, ...]:
    if isinstance(content, str):
        return (content,)
    if not isinstance(content, list):
        return ()
    blocks = (b.get("text") for b in content if isinstance(b, Mapping) and b.get("type") == "text")
    return tuple(text for text in blocks if isinstance(text, str))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
