"""Which records `--resume` reads: the leaf that a release would choose, the branch up to it, and what it remembers of that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ccc_hookspecs.testing.simulator.releases import BranchRule

Record: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a process knows right after `--resume`.

    `leaf`: the `uuid` its next record hangs on. `memory`: the user texts of the branch, oldest first. `known`: every
    `uuid` in the file, also of other branches. `open_turn`: the branch ends in a prompt without an answer.
    """

    leaf: str | None
    memory: tuple[str, ...]
    known: frozenset[str]
    open_turn: bool


def load(path: Path, rule: BranchRule) -> Loaded:
    """What `--resume` reads from this transcript. Raises FileNotFoundError when there is none."""
    records = list(read(path))
    by_uuid = {record["uuid"]: record for record in records if isinstance(record.get("uuid"), str)}
    leaf = choose_leaf(records, rule)
    branch = list(walk(by_uuid, leaf))
    known = frozenset(by_uuid) | frozenset(_sources(records))
    return Loaded(leaf, tuple(text for record in branch for text in texts(record)), known, _is_open(branch))


def read(path: Path) -> Iterator[Record]:
    """The records of a transcript, in the file's order; lines that are not a JSON object are skipped."""
    with path.open("rb") as file:
        for line in file:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                yield record


def choose_leaf(records: list[Record], rule: BranchRule) -> str | None:
    """The `uuid` of the record at the end of the branch that `--resume` reads, None in a transcript without records."""
    chained = [record for record in records if isinstance(record.get("uuid"), str) and not _is_aside(record)]
    if not chained:
        return None
    if rule == "latest_timestamp":
        return str(max(enumerate(chained), key=lambda pair: (str(pair[1].get("timestamp", "")), pair[0]))[1]["uuid"])
    last = str(chained[-1]["uuid"])
    return _named_by_last_prompt(records, chained, last) or last if rule == "last_prompt" else last


def _named_by_last_prompt(records: list[Record], chained: list[Record], last: str) -> str | None:
    """The record that the last `last-prompt` names, unless the file's last record continues it.

    Measured on 2.1.332: a named record on another branch wins, however early its `last-prompt` stands.
    """
    by_uuid = {record["uuid"]: record for record in chained}
    named = [record["leafUuid"] for record in records if record.get("type") == "last-prompt" and record.get("leafUuid") in by_uuid]
    if not named or any(record["uuid"] == named[-1] for record in walk(by_uuid, last)):
        return None
    return str(named[-1])


def walk(by_uuid: dict[str, Record], leaf: str | None) -> Iterator[Record]:
    """The records from the root to the leaf; a parent that was never written, or one seen before, ends the walk."""
    branch: list[Record] = []
    seen: set[str] = set()
    while leaf is not None and leaf in by_uuid and leaf not in seen:
        seen.add(leaf)
        branch.append(by_uuid[leaf])
        leaf = by_uuid[leaf].get("parentUuid")
    return reversed(branch)


def texts(record: Record) -> tuple[str, ...]:
    """The user texts that this record adds to memory; none for a tool's result or the echo of a local command."""
    attachment = record.get("attachment")
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
        return content_texts(attachment.get("prompt"))
    content = record.get("message", {}).get("content")
    if record.get("type") != "user" or (record.get("isMeta") and isinstance(content, str)):
        return ()
    return tuple(text for text in content_texts(content) if not is_echo(text))


def is_echo(text: str) -> bool:
    """True for what Claude Code writes about local commands and background tasks, which nobody typed."""
    return text.startswith(("<command-", "<local-command-", "<task-notification", "Caveat:", "[Request interrupted"))


def content_texts(content: object) -> tuple[str, ...]:
    """The texts of a message's content, be it a string or a list of blocks."""
    if isinstance(content, str):
        return (content,)
    if not isinstance(content, list):
        return ()
    return tuple(block["text"] for block in content if isinstance(block, dict) and block.get("type") == "text")


def _sources(records: list[Record]) -> Iterator[str]:
    for record in records:
        attachment = record.get("attachment")
        if isinstance(attachment, dict) and isinstance(attachment.get("source_uuid"), str):
            yield attachment["source_uuid"]


def _is_aside(record: Record) -> bool:
    return bool(record.get("isSidechain")) or record.get("type") == "progress"


def _is_open(branch: list[Record]) -> bool:
    for record in reversed(branch):
        if record.get("type") == "assistant":
            return False
        if texts(record):
            return True
    return False
