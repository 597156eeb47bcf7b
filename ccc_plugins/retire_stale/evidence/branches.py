"""The branches at the end of a transcript, and the texts of turns that a fresh `--resume` would lack."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

from ccc_hookspecs.claude.jsonl import JsonlFollower, line_at, parse
from ccc_plugins.retire_stale.judgement.branches import Tree, lacking, resumed_leaf
from ccc_plugins.retire_stale.judgement.entries import Entry, entry_of, texts_of

TAIL = 64 << 20
"""Bytes at the end of a transcript in which forks are looked for. What a fork further back left out is long out of reach."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One lacking turn: the person's texts and the model's, each in order. `uuid`: its prompt's; its answer's when only that is lacking."""

    uuid: str
    asked: tuple[str, ...]
    answered: tuple[str, ...]


def read_tree(path: Path, end: int | None = None) -> Tree:
    """The transcript's last `TAIL` bytes as a tree; an empty one when the file cannot be read.

    `end`: as it was when it was so many bytes long; records that begin there or behind it do not count.
    """
    entries: list[Entry] = []
    last_prompts: list[str] = []
    typed: set[str] = set()
    rewinds: list[int] = []
    lines = JsonlFollower(path, start=_tail_start(path, end)).lines()
    for line in takewhile(lambda line: end is None or line.offset < end, lines):
        for record in parse(line):
            if end is not None and record.offset >= end:
                break
            match record.data:
                case {"type": "last-prompt", "leafUuid": str(leaf), **rest}:
                    last_prompts.append(leaf)
                    rewinds += [record.offset] if rest.get("explicit") is True else []
                case {"type": "file-history-snapshot", "messageId": str(message)}:
                    typed.add(message)
                case data:
                    entries.append(entry_of(data, record.offset))
    return Tree.of(entries, last_prompts, frozenset(typed), rewinds)


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
    line = line_at(path, entry.offset)
    for record in parse(line) if line is not None else ():
        if record.data.get("uuid") == entry.uuid:
            return texts_of(record.data)
    return ()


def _tail_start(path: Path, end: int | None) -> int:
    """The beginning of the first line that lies whole in the last `TAIL` bytes before `end`."""
    try:
        size = os.stat(path).st_size
    except OSError:
        return 0
    size = size if end is None else min(size, end)
    if size <= TAIL:
        return 0
    line = line_at(path, size - TAIL)
    return line.end if line is not None else size - TAIL
