"""Which records `--resume` reads: the leaf that a release would choose, the branch up to it, and what it remembers of that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from ccc_hookspecs.testing.simulator.releases import Release

Record: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a process knows right after `--resume`.

    `leaf`: the `uuid` its next record hangs on. `memory`: the user texts of the branch, oldest first. `known`: every
    `uuid` in the file, also of other branches. `open_turn`: no answer follows the branch's last user record.
    `mode`: the file has a `mode` record.
    """

    leaf: str | None
    memory: tuple[str, ...]
    known: frozenset[str]
    open_turn: bool
    mode: bool


def load(path: Path, release: Release) -> Loaded:
    """What `--resume` of this release reads from this transcript. Raises FileNotFoundError when there is none."""
    tree = Tree(list(read(path)), release)
    branch = tree.walk(tree.leaf())
    memory = tuple(text for record in branch for text in texts(record))
    return Loaded(
        leaf=str(branch[-1]["uuid"]) if branch else None,
        memory=memory,
        known=frozenset(tree.known()),
        open_turn=_is_open(branch),
        mode=any(record.get("type") == "mode" for record in tree.records),
    )


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


class Tree:
    """The records of one transcript as a release sees them. Every rule was measured with transcripts made for it."""

    def __init__(self, records: list[Record], release: Release) -> None:
        self.records = records
        self.release = release
        self.chained = [record for record in records if isinstance(record.get("uuid"), str) and not self._is_aside(record)]
        self._by_uuid = {record["uuid"]: record for record in self.chained}
        self._before = {record["uuid"]: before["uuid"] for before, record in pairwise(self.chained)}

    def leaf(self) -> str | None:
        """The `uuid` of the record that ends the branch which `--resume` reads; None in a transcript without records."""
        if not self.chained:
            return None
        if self.release.branch_rule == "latest_timestamp":
            # Of several with the same stamp the first is read, as `max` finds it.
            return str(max(self.chained, key=lambda record: str(record.get("timestamp", "")))["uuid"])
        last = str(self.chained[-1]["uuid"])
        return (self._named(last) or last) if self.release.branch_rule == "last_prompt" else last

    def _named(self, last: str) -> str | None:
        """The record that the last `last-prompt` names, however early it stands, unless the file's last record continues it."""
        prompts = [record for record in self.records if record.get("type") == "last-prompt"]
        named = [record["leafUuid"] for record in prompts if record.get("leafUuid") in self._by_uuid]
        if not named or any(record["uuid"] == named[-1] for record in self.walk(last)):
            return None
        return str(named[-1])

    def walk(self, leaf: str | None) -> list[Record]:
        """The records from the root to the leaf; one seen before ends the walk."""
        branch: list[Record] = []
        seen: set[str] = set()
        while leaf is not None and leaf not in seen:
            seen.add(leaf)
            branch.append(self._by_uuid[leaf])
            leaf = self._parent(self._by_uuid[leaf])
        return branch[::-1]

    def _parent(self, record: Record) -> str | None:
        """The parent; for one that was never written the record before it in the file, from 2.1.119 on, else None."""
        parent = record.get("parentUuid")
        if parent is None or parent in self._by_uuid:
            return parent
        return self._before.get(record["uuid"]) if self.release.has("mends_broken_chain") else None

    def known(self) -> Iterator[str]:
        """The ids of inputs that are taken for seen: those of records, and so not of what joined a turn or was merged into another."""
        yield from self._by_uuid

    def _is_aside(self, record: Record) -> bool:
        return bool(record.get("isSidechain")) or (record.get("type") == "progress" and not self.release.has("progress"))


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


def _is_open(branch: list[Record]) -> bool:
    for record in reversed(branch):
        if record.get("type") in {"user", "assistant"}:
            return bool(record["type"] == "user")
    return False
