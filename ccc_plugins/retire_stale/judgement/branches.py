"""Which branch of a forked transcript `--resume` reads, and which turns it then lacks.

Two processes that did not know of each other hang their turns on the same parent, and a fresh process reads one branch
only. Which one was measured on eight releases with made transcripts (the newest `last-prompt` counts wherever it stands,
also before the records of the other branch):

* up to 2.1.61: the one that holds the record with the latest timestamp, of several the first;
* 2.1.119: the one that holds the last record;
* 2.1.168 and later: the same, unless the newest `last-prompt` names a record that is not an ancestor of it: then that one.

A turn that a person left behind on purpose, by a rewind, an edit or a retry, is not lacking: it was known to the process
that went on without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from ccc_plugins.retire_stale.judgement.entries import Entry, Kind, Writer

PROMPTS: frozenset[Kind] = frozenset({"prompt", "queued", "shell"})
_LATEST_TIMESTAMP_UNTIL = (2, 1, 61)
_LAST_RECORD_UNTIL = (2, 1, 119)
_BRIDGES_SINCE = (2, 1, 119)
_MARKS_REWINDS_SINCE = (2, 1, 332)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A transcript, or its tail, as a tree.

    `nodes`: the entries by `uuid`, in the order in which they stand (of a repeated `uuid` the first). `last_prompts`: the `leafUuid`s
    of the `last-prompt` records, oldest first. `typed`: the prompts that a person typed, known from the file-history snapshots that
    only a terminal writes; it tells writers apart on releases that note no entry point. `rewinds`: the positions of the explicit
    `last-prompt` records that a rewind writes (2.1.332), wherever it leads. `parents`: of each record; where a parent was never
    written, from 2.1.119 on the record that stands before.
    """

    nodes: Mapping[str, Entry]
    last_prompts: Sequence[str] = ()
    typed: frozenset[str] = frozenset()
    rewinds: Sequence[int] = ()
    parents: Mapping[str, str | None] = field(default_factory=dict)
    children: Mapping[str | None, Sequence[str]] = field(default_factory=dict)

    @property
    def release(self) -> str | None:
        """The release that wrote the last record that names one."""
        return next((entry.release for entry in reversed(list(self.nodes.values())) if entry.release is not None), None)

    @classmethod
    def of(
        cls,
        entries: Iterable[Entry],
        last_prompts: Sequence[str] = (),
        typed: frozenset[str] = frozenset(),
        rewinds: Sequence[int] = (),
    ) -> Tree:
        nodes: dict[str, Entry] = {}
        for entry in entries:
            if entry.uuid is not None and entry.in_tree:
                nodes.setdefault(entry.uuid, entry)
        parents = _parents(nodes)
        children: dict[str | None, list[str]] = {}
        for uuid, parent in parents.items():
            children.setdefault(parent, []).append(uuid)
        return cls(nodes=nodes, last_prompts=last_prompts, typed=typed, rewinds=rewinds, parents=parents, children=children)

    def path(self, leaf: str | None) -> Iterator[Entry]:
        """From a leaf up to the root, or to where the chain breaks. A loop in it ends it."""
        seen: set[str] = set()
        while leaf is not None and leaf in self.nodes and leaf not in seen:
            seen.add(leaf)
            yield self.nodes[leaf]
            leaf = self.parents[leaf]

    def below(self, top: str) -> Iterator[Entry]:
        """A record and everything that hangs below it, in no order."""
        stack, seen = [top], set()
        while stack:
            uuid = stack.pop()
            if uuid not in seen:
                seen.add(uuid)
                yield self.nodes[uuid]
                stack.extend(self.children.get(uuid, ()))

    def asks(self, entry: Entry) -> bool:
        """Whether a person gives something to the model there: also by a command of one's own, which the model answers."""
        return entry.kind in PROMPTS or (entry.kind == "echo" and self.answered(entry))

    def answered(self, entry: Entry) -> bool:
        """Whether the model answered right below a record."""
        return next(self.answers(entry.uuid), None) is not None

    def answers(self, top: str | None) -> Iterator[Entry]:
        """The answers below a record, down to what is given to the model next."""
        stack = list(self.children.get(top, ()))
        while stack:
            entry = self.nodes[stack.pop()]
            if entry.kind in PROMPTS or entry.kind == "echo":
                continue
            if entry.kind == "answer" and not entry.made_up:
                yield entry
            stack.extend(self.children.get(entry.uuid, ()))

    def writer(self, entry: Entry) -> Writer:
        if entry.writer != "unknown" or not self.typed:
            return entry.writer
        prompt = next((e for e in self.path(entry.uuid) if e.kind == "prompt"), None)
        return "typed" if prompt is not None and prompt.uuid in self.typed else "sdk"


def _parents(nodes: Mapping[str, Entry]) -> dict[str, str | None]:
    release = next((entry.release for entry in reversed(list(nodes.values())) if entry.release is not None), None)
    bridges = (release_numbers(release) or _BRIDGES_SINCE) >= _BRIDGES_SINCE
    parents: dict[str, str | None] = {}
    before: str | None = None
    for uuid, entry in nodes.items():
        broken = bridges and before is not None and entry.parent is not None and entry.parent not in nodes
        parents[uuid] = before if broken else entry.parent
        before = uuid
    return parents


def release_numbers(release: str | None) -> tuple[int, ...] | None:
    """`2.1.119` as numbers that compare, or None when the text is not of that form."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", release or "")
    return tuple(int(part) for part in match.groups()) if match else None


def resumed_leaf(tree: Tree, release: str | None) -> str | None:
    """The record up from which a `--resume` by this release reads; None in an empty tree. An unknown release counts as the newest."""
    if not tree.nodes:
        return None
    numbers = release_numbers(release)
    if numbers is not None and numbers <= _LATEST_TIMESTAMP_UNTIL:
        return max(tree.nodes.values(), key=lambda e: (e.timestamp or 0.0, -e.offset)).uuid
    last = next(reversed(list(tree.nodes)))
    if numbers is not None and numbers <= _LAST_RECORD_UNTIL:
        return last
    named = next((leaf for leaf in reversed(tree.last_prompts) if leaf in tree.nodes), None)
    if named is None or tree.last_prompts[-1] != named or any(e.uuid == named for e in tree.path(last)):
        return last
    return named


def lacking(tree: Tree, leaf: str | None) -> tuple[Entry, ...]:
    """What the branch up from `leaf` lacks, in the order in which it stands in the file: prompts, and answers to prompts that it has.

    A terminal that opens in the middle of a turn loads the prompt without its answer. Such an answer is there by its first record.
    Not what was left behind on purpose, and not what a catch-up on the branch gives back already.
    """
    branch = list(tree.path(leaf))
    on_branch = {entry.uuid for entry in branch}
    messages = {entry.message_id for entry in branch if entry.message_id is not None}
    given_back = {uuid for entry in branch for uuid in entry.gives_back}
    found: list[Entry] = []
    for parent in [*(e.uuid for e in branch), *_roots(tree, branch)]:
        siblings = tree.children.get(parent, ())
        kept = next((uuid for uuid in siblings if uuid in on_branch), None)
        for other in siblings:
            lost = [] if other in on_branch else [*_late_answer(tree, other, messages), *_prompts(tree, other)]
            if lost and _unaware(tree, kept, other):
                found += lost
    return tuple(sorted((e for e in found if e.uuid not in given_back), key=lambda e: e.offset))


def _prompts(tree: Tree, top: str) -> Iterator[Entry]:
    return (e for e in tree.below(top) if tree.asks(e))


def _late_answer(tree: Tree, top: str, messages: Set[str]) -> list[Entry]:
    """The first answer at or below `top` to the prompt above it. Of a message that is on the branch too, a part is no answer of its own:
    that is how the calls of parallel tools stand."""
    first = tree.nodes[top]
    if tree.asks(first):
        return []
    answers = [*([first] if first.kind == "answer" and not first.made_up else []), *tree.answers(top)]
    return sorted((e for e in answers if e.message_id not in messages), key=lambda e: e.offset)[:1]


def _roots(tree: Tree, branch: Sequence[Entry]) -> Iterator[str | None]:
    """The parent under which the branch's first record stands, when that is no record: other branches may begin there too."""
    if branch and tree.parents[branch[-1].uuid or ""] is None:
        yield None


def _unaware(tree: Tree, kept: str | None, other: str) -> bool:
    """Whether the two branches at a fork were written by processes that did not know of each other's.

    The later of the two decides: its writer left the earlier one behind on purpose when it had it in memory. Only a person
    at a terminal can do that. A headless hangs its turn on the last record that it knows, and so does a terminal
    whose person does nothing but type. From 2.1.332 on a rewind is noted; before, what was typed on the earlier branch counts as
    known to the person, though it may have been in another terminal.
    """
    if kept is None:
        return False
    earlier, later = sorted((tree.nodes[kept], tree.nodes[other]), key=lambda e: e.offset)
    if earlier.uuid is None or tree.writer(later) != "typed":
        return _parts_ways(tree, earlier, later)
    before = [e for e in tree.below(earlier.uuid) if e.offset < later.offset]
    known = _was_rewound(tree, before, later) or (
        any(tree.writer(e) == "typed" for e in before) and not _is_another_terminal(tree, before, later)
    )
    # What a person went on with is lacking where the branch that was left behind is read all the same.
    return any(e.is_conversation for e in before) and (not known or other == later.uuid)


def _is_another_terminal(tree: Tree, before: Sequence[Entry], later: Entry) -> bool:
    """Whether what was typed before was typed in a terminal that did not go on here, where every rewind is marked.

    A prompt that was taken back before its answer, and an answer that was tried again, are no turn of their own.
    """
    marks = (release_numbers(later.release) or ()) >= _MARKS_REWINDS_SINCE
    return marks and any(tree.asks(e) and tree.answered(e) for e in before)


def _was_rewound(tree: Tree, before: Sequence[Entry], later: Entry) -> bool:
    """Whether a rewind was noted between what was left behind and the first answer on the branch that was begun then."""
    last = max((e.offset for e in before), default=later.offset)
    answers = [e.offset for e in tree.below(later.uuid or "") if e.kind == "answer"]
    return any(last < position < min(answers, default=position + 1) for position in tree.rewinds)


def _parts_ways(tree: Tree, earlier: Entry, later: Entry) -> bool:
    """Whether a fork that no person made is one of two conversations, not the parallel tools or the retries inside one turn."""
    return tree.writer(earlier) != tree.writer(later) or all(_goes_on(tree, top) for top in (earlier, later))


def _goes_on(tree: Tree, top: Entry) -> bool:
    """Whether somebody asked or answered something there."""
    return any(e.kind in PROMPTS or e.kind == "answer" for e in tree.below(top.uuid or ""))
