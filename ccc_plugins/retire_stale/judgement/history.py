"""What a headless lacks, as records to give to it: pure, from the tree of its transcript and what it is known to have.

A running Claude Code (2.1.119 and later) takes history on its input (measured): it appends each record below its own leaf, under the
`uuid` that it is given, and keeps it in memory. What it loaded at its start it takes no second time, even from a branch that it did
not read; such a record is given under another id, made from its own, so that it is known for a copy wherever it is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from typing import Final

from ccc_plugins.retire_stale.judgement.branches import Tree, lacking, release_numbers, resumed_leaf, told_by
from ccc_plugins.retire_stale.judgement.copies import is_copied
from ccc_plugins.retire_stale.judgement.entries import Entry

SINCE: Final = (2, 1, 119)
"""The first release that is known to take history; releases before 2.1.62 end at it, or answer it."""


def takes_history(release: str | None) -> bool:
    """Whether a process of this release takes history; not known is no."""
    return (release_numbers(release) or (0,)) >= SINCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What one headless knows of its session's transcript.

    `loaded_to`: the byte position up to which the file stood there when it was loaded. `loaded`: the ids of the records before it that
    were read. `left_over`: whether a record behind it is unknown to the headless. `given`: ids of records that it was given as history
    and has written. `begins_at`: the position of its own first record, None before it wrote one: what stands before may have been
    loaded too. `leaf`: the last record that it knows, None before it wrote one.
    """

    loaded_to: int
    loaded: Set[str]
    left_over: Callable[[str], bool]
    given: Set[str] = frozenset()
    begins_at: int | None = None
    leaf: str | None = None


@dataclass(frozen=True, slots=True)
class Lack:
    """What a headless lacks. `entries`: the records to give, in order. `copies`: those of them that are given under `copy_id`.

    `turns`: the prompts among them. `leaf`: the last record that it knows, or before it wrote one that from which it is expected to read.
    `seen`: it wrote one. `forked`: a fresh `--resume` would lack turns too. `end`: where a fresh `--resume` begins to read, when a
    `last-prompt` names that and the headless does not have it: what it says next would not be read. `release`: the one that wrote last to
    the transcript. `compacted`: there is a compaction that it does not know. `obstacle`: why it cannot be made whole by giving it
    records, or None.
    """

    entries: tuple[Entry, ...] = ()
    copies: frozenset[str] = frozenset()
    turns: tuple[str, ...] = ()
    leaf: str | None = None
    seen: bool = False
    forked: bool = False
    end: str | None = None
    release: str | None = None
    compacted: bool = False
    obstacle: str | None = None


def lack(tree: Tree, release: str | None, memory: Memory) -> Lack:
    """What the headless lacks of what everybody said: of the branch that a fresh `--resume` reads, and of what that lacks itself."""
    leaf = resumed_leaf(tree, release)
    lost = lacking(tree, leaf)
    branch = whole_branch(tree, leaf)
    wanted = branch | {record for entry in lost for record in _turn(tree, entry)}
    missing = [e for uuid, e in tree.nodes.items() if uuid in wanted and _may_be_told(tree, e) and not _is_known(tree, memory, e)]
    missing.sort(key=lambda entry: tree.first_offsets[entry.uuid or ""])
    copies = frozenset(e.uuid or "" for e in missing if tree.first_offsets[e.uuid or ""] < memory.loaded_to)
    turns = tuple(e.uuid or "" for e in missing if tree.asks(e))
    return Lack(
        entries=tuple(missing),
        copies=copies,
        turns=turns,
        leaf=memory.leaf or leaf,
        seen=memory.leaf is not None,
        forked=bool(lost),
        release=tree.release,
        compacted=any(tree.nodes[uuid].kind == "boundary" and not _is_known(tree, memory, tree.nodes[uuid]) for uuid in wanted),
        end=leaf if leaf is not None and leaf in tree.last_prompts and _is_unknown_news(tree, memory, leaf) else None,
        obstacle=_obstacle(tree, memory, missing, copies, wanted),
    )


def whole_branch(tree: Tree, leaf: str | None) -> Set[str]:
    """The ids of what a process knows that reads up from a leaf: also of what a summary tells in short, and of the calls of parallel tools
    and their results, which stand beside the line."""
    line = told_by(tree, leaf)
    found = set(line)
    messages = {entry.message_id for entry in line.values() if entry.kind == "answer" and entry.message_id is not None}
    stack = [below for top in line for below in tree.continued.get(top, ())]
    while stack:
        entry = tree.nodes[stack.pop()]
        if entry.uuid is not None and entry.uuid not in found and _is_beside(tree, entry, messages):
            found.add(entry.uuid)
            stack.extend(tree.continued.get(entry.uuid, ()))
    return found


def _is_beside(tree: Tree, entry: Entry, messages: Set[str]) -> bool:
    """Whether a record beside a branch belongs to a message on it, or is the result of a call in one, or hangs below such."""
    if entry.kind == "answer":
        return entry.message_id in messages
    return entry.kind == "other" and not tree.asks(entry)


def _turn(tree: Tree, first: Entry) -> Iterator[str]:
    """The records of a turn, from its prompt, or a late answer to one, to where the next is asked."""
    stack, seen = [first.uuid or ""], set[str]()
    while stack:
        uuid = stack.pop()
        if uuid in seen:
            continue
        seen.add(uuid)
        yield uuid
        stack.extend(below for below in tree.continued.get(uuid, ()) if not tree.asks(tree.nodes[below]))


def _may_be_told(tree: Tree, entry: Entry) -> bool:
    """Not what Claude Code says in the model's name, nor what it lets the person ask for that."""
    if entry.made_up or (entry.kind == "other" and any(tree.nodes[below].made_up for below in tree.continued.get(entry.uuid, ()))):
        return False
    return entry.type in ("user", "assistant") or entry.kind == "queued"


def _is_unknown_news(tree: Tree, memory: Memory, uuid: str) -> bool:
    return tree.first_offsets[uuid] >= memory.loaded_to and not _is_known(tree, memory, tree.nodes[uuid])


def _is_known(tree: Tree, memory: Memory, entry: Entry) -> bool:
    uuid = entry.uuid or ""
    if uuid in memory.given or is_copied(uuid, memory.given):
        return True
    if tree.first_offsets[uuid] < memory.loaded_to:
        return uuid in memory.loaded
    return not memory.left_over(uuid)


def _obstacle(tree: Tree, memory: Memory, missing: list[Entry], copies: Set[str], wanted: Set[str]) -> str | None:
    begins_at = memory.begins_at
    for entry in missing:
        if entry.uuid not in copies and (begins_at is None or tree.first_offsets[entry.uuid or ""] < begins_at):
            return "it may have loaded a part of it"
    known = [e.uuid or "" for e in tree.path(memory.leaf) if tree.asks(e)]
    left_behind = [uuid for uuid in known if uuid not in wanted and not is_copied(uuid, wanted)]
    return "a person went back behind what it knows" if left_behind else None
