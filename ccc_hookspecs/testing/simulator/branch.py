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
    `mode`: the file has a `mode` record. `length`: the branch's records. `last_prompt`: the text that the last `last-prompt` tells.
    """

    leaf: str | None
    memory: tuple[str, ...]
    known: frozenset[str]
    open_turn: bool
    mode: bool
    length: int
    last_prompt: str


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
        length=len(branch),
        last_prompt=next((str(one.get("lastPrompt", "")) for one in reversed(tree.records) if one.get("type") == "last-prompt"), ""),
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
        chained = [record for record in records if isinstance(record.get("uuid"), str) and not self._is_aside(record)]
        self._by_uuid = {record["uuid"]: record for record in chained}
        # Of several copies, as a fed record is one, the last counts, in its place.
        self.chained = [record for record in chained if self._by_uuid[record["uuid"]] is record]
        self._dropped: dict[str, Record] = {}
        self._moved: dict[str, str] = {}
        if release.has("preserved_segment"):
            self._summarize_in_part()
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
        """The parent; for one that is not there, from 2.1.119 on, a record before it, else None.

        That is the next kept one above a dropped parent, from 2.1.168 on, and else the one that stands before it in the file.
        """
        parent = self._moved.get(record["uuid"], record.get("parentUuid"))
        if parent is None or parent in self._by_uuid:
            return parent
        above = self._above_dropped(parent) if self.release.has("mends_by_dropped_parents") else None
        return above or (self._before.get(record["uuid"]) if self.release.has("mends_broken_chain") else None)

    def _above_dropped(self, uuid: str | None) -> str | None:
        while uuid in self._dropped:
            uuid = self._dropped[uuid].get("parentUuid")
        return uuid if uuid in self._by_uuid else None

    # --- a part of the conversation summarized --------------------------------------------------------------------------

    def _summarize_in_part(self) -> None:
        """Where a boundary preserves a segment, drop everything else before the last boundary, and hang the segment in behind it."""
        places = [place for place, record in enumerate(self.chained) if record.get("subtype") == "compact_boundary"]
        if not any(_segment(self.chained[place]) for place in places):
            return
        segment = _segment(self.chained[places[-1]])
        kept = self._between(segment.get("headUuid"), segment.get("tailUuid")) if segment else []
        if segment and not kept:
            return
        if segment:
            self._hang_in(segment)
        before = self.chained[: places[-1]]
        self._dropped = {record["uuid"]: record for record in before if record["uuid"] not in kept}
        self.chained = [record for record in self.chained if record["uuid"] not in self._dropped]
        self._by_uuid = {record["uuid"]: record for record in self.chained}

    def _between(self, head: str | None, tail: str | None) -> list[str]:
        """The ids from the tail up to the head; none when the way is broken."""
        ids: list[str] = []
        while tail is not None and tail in self._by_uuid and tail not in ids:
            ids.append(tail)
            if tail == head:
                return ids
            tail = self._by_uuid[tail].get("parentUuid")
        return []

    def _hang_in(self, segment: Record) -> None:
        """The segment's head hangs on the anchor, and what hung on the anchor hangs on its tail."""
        head, anchor, tail = (str(segment.get(name)) for name in ("headUuid", "anchorUuid", "tailUuid"))
        self._moved = {str(record["uuid"]): tail for record in self.chained if record.get("parentUuid") == anchor} | {head: anchor}

    def known(self) -> Iterator[str]:
        """The ids of inputs that are taken for seen: those of records, and so not of what joined a turn or was merged into another."""
        yield from self._by_uuid
        yield from self._dropped

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


def _segment(boundary: Record) -> Record:
    """What a compaction preserved, by the ids of its head, its tail and the record that it is read behind; empty for a whole one."""
    metadata = boundary.get("compactMetadata")
    return (metadata.get("preservedSegment") if isinstance(metadata, dict) else None) or {}


def _is_open(branch: list[Record]) -> bool:
    for record in reversed(branch):
        if record.get("type") in {"user", "assistant"}:
            return bool(record["type"] == "user")
    return False
