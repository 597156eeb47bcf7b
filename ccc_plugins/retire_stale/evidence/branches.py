"""The branches at the end of a transcript, and the texts of turns that a fresh `--resume` would lack."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from ccc_hookspecs.claude.jsonl import JsonlFollower, line_at, parse
from ccc_plugins.retire_stale.evidence.skim_record import skimmed
from ccc_plugins.retire_stale.judgement.branches import Tree, lacking, resumed_leaf
from ccc_plugins.retire_stale.judgement.entries import Entry, entry_of, texts_of

_MARKS = (b'{"type":"last-prompt"', b'{"type":"file-history-snapshot"')

TAIL = 64 << 20
"""Bytes at the end of a transcript in which forks are looked for. What a fork further back left out is long out of reach."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One lacking turn: the person's texts and the model's, each in order. `uuid`: its prompt's; its answer's when only that is lacking."""

    uuid: str
    asked: tuple[str, ...]
    answered: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ending:
    """What of the end of a transcript tells its branches: the entries of its records, and marks, each with its position and what it names.

    A mark is a `last-prompt`, that of a `rewind`, or a prompt that was `typed`.
    """

    entries: list[Entry] = field(default_factory=list)
    marks: list[tuple[int, Literal["last-prompt", "rewind", "typed"], str]] = field(default_factory=list)

    def tree(self, end: int | None = None) -> Tree:
        """As a tree. `end`: as it was when it was so many bytes long; records that begin there or behind it do not count."""
        entries = self.entries if end is None else [e for e in self.entries if e.offset < end]
        marks = [mark for mark in self.marks if end is None or mark[0] < end]
        named = [value for _, kind, value in marks if kind == "last-prompt"]
        typed = frozenset(value for _, kind, value in marks if kind == "typed")
        return Tree.of(entries, named, typed, [offset for offset, kind, _ in marks if kind == "rewind"])


def read_ending(path: Path) -> Ending:
    """The last `TAIL` bytes of a transcript; nothing when the file cannot be read."""
    ending = Ending()
    for lines in JsonlFollower(path, start=_tail_start(path)).chunks():
        for found in skimmed(lines, _MARKS):
            if isinstance(found, Entry):
                ending.entries.append(found)
                continue
            match found.data:
                case {"type": "last-prompt", "leafUuid": str(leaf), **rest}:
                    ending.marks.append((found.offset, "last-prompt", leaf))
                    if rest.get("explicit") is True:
                        ending.marks.append((found.offset, "rewind", leaf))
                case {"type": "file-history-snapshot", "messageId": str(message)}:
                    ending.marks.append((found.offset, "typed", message))
                case data:
                    ending.entries.append(entry_of(data, found.offset))
    return ending


def read_tree(path: Path, end: int | None = None) -> Tree:
    """The end of a transcript as a tree, see `read_ending` and `Ending.tree`."""
    return read_ending(path).tree(end)


def lost_prompts(tree: Tree, release: str | None, *, headless_leaf: str | None = None) -> tuple[Entry, ...]:
    """The prompts that a fresh `--resume` by this release would lack, and the late answers, see `lacking`.

    `headless_leaf`: the last record in a live headless's memory. From 2.1.168 on it names that one in a `last-prompt` when it exits.
    """
    if headless_leaf is not None:
        tree = replace(tree, last_prompts=[*tree.last_prompts, headless_leaf])
    return lacking(tree, resumed_leaf(tree, release))


def last_of(tree: Tree, ids: Iterable[str | None]) -> str | None:
    """Of the records with one of these as `uuid` or `message.id`, the one that stands last."""
    wanted = frozenset(i for i in ids if i is not None)
    found = [e for e in tree.nodes.values() if e.uuid in wanted or (e.message_id is not None and e.message_id in wanted)]
    return max(found, key=lambda e: e.offset).uuid if found else None


def turns_of(path: Path, tree: Tree, lost: Sequence[Entry]) -> tuple[Turn, ...]:
    """The texts of what is lacking: of each prompt with the answers to it, and of each late answer with the prompt that it answers."""
    return tuple(turn for entry in lost if (turn := _turn(path, tree, entry)) is not None)


def _turn(path: Path, tree: Tree, entry: Entry) -> Turn | None:
    """None for an answer without a text, such as a mere call of a tool."""
    late = entry.kind == "answer"
    prompt = next((e for e in tree.above(entry.uuid) if tree.asks(e)), None) if late else entry
    answers = sorted([*tree.answers(entry.uuid), *([entry] if late else [])], key=lambda e: e.offset)
    answered = tuple(text for answer in answers for text in _texts_at(path, answer))
    if entry.uuid is None or (late and not answered):
        return None
    return Turn(entry.uuid, () if prompt is None else _texts_at(path, prompt), answered)


def _texts_at(path: Path, entry: Entry) -> tuple[str, ...]:
    record = record_at(path, entry)
    return () if record is None else texts_of(record)


def record_at(path: Path, entry: Entry) -> dict[str, Any] | None:
    """The record that an entry was made of; None when it is not there any more."""
    line = line_at(path, entry.offset)
    records = parse(line) if line is not None else ()
    return next((record.data for record in records if record.data.get("uuid") == entry.uuid), None)


def _tail_start(path: Path) -> int:
    """The beginning of the first line that lies whole in the last `TAIL` bytes."""
    try:
        size = os.stat(path).st_size
    except OSError:
        return 0
    if size <= TAIL:
        return 0
    line = line_at(path, size - TAIL)
    return line.end if line is not None else size - TAIL
