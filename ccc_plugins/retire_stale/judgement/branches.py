"""Which branch of a forked transcript `--resume` reads, and which turns it then lacks.

Two processes that did not know of each other hang their turns on the same parent, and a fresh process reads one branch
only. Which one was measured on eight releases with made transcripts (the newest `last-prompt` counts wherever it stands,
also before the records of the other branch):

* up to 2.1.61: the one that holds the record with the latest timestamp, of several the first;
* 2.1.119: the one that holds the last record;
* 2.1.168 and later: the same, unless the newest `last-prompt` names a record that is not an ancestor of it: then that one.

A compaction is a root: what stands before it is no ancestor of what follows. One that keeps a segment of the conversation (2.1.119 and
later) drops everything else before it, and the segment is read behind it or behind its summary.

A turn that a person left behind on purpose, by a rewind, an edit or a retry, is not lacking: it was known to the process
that went on without it. Nor is one that a summary on the branch sums up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import takewhile

from ccc_plugins.retire_stale.judgement.copies import is_copied
from ccc_plugins.retire_stale.judgement.entries import Entry, Kind, Writer

PROMPTS: frozenset[Kind] = frozenset({"prompt", "queued", "shell"})
_NO_RECORD = "00000000-0000-0000-0000-000000000000"
_LATEST_TIMESTAMP_UNTIL = (2, 1, 61)
_LAST_RECORD_UNTIL = (2, 1, 119)
_BRIDGES_SINCE = (2, 1, 119)
_KEEPS_SEGMENTS_SINCE = (2, 1, 119)
_CLIMBS_SINCE = (2, 1, 168)
_MARKS_REWINDS_SINCE = (2, 1, 332)
_NEWEST = (2, 1, 332)
"""What a release that is not known counts as."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A transcript, or its tail, as a tree.

    `nodes`: the entries by `uuid`, in the order in which they stand. A record that was written again counts where its last copy stands, and
    is by whoever wrote the first; `first_offsets` has the positions of the first copies. `last_prompts`: the `leafUuid`s of the
    `last-prompt` records, oldest first. `typed`: the prompts that a person typed, known from the file-history snapshots that only a
    terminal writes; it tells writers apart on releases that note no entry point. `rewinds`: the positions of the explicit `last-prompt`
    records that a rewind writes (2.1.332), wherever it leads.

    `parents` and `children`: as `--resume` reads them. Where a parent was never written, from 2.1.119 on it is the record that stands
    before. `dropped`: the records that a compaction in part leaves out; they are no children of records that are read.
    `origins` and `continued`: parents and children as they were first written, so that a compaction stands below what it sums up.
    `summaries`: of each record that was written right below a compaction, that compaction.
    """

    nodes: Mapping[str, Entry]
    first_offsets: Mapping[str, int] = field(default_factory=dict)
    last_prompts: Sequence[str] = ()
    typed: frozenset[str] = frozenset()
    rewinds: Sequence[int] = ()
    parents: Mapping[str, str | None] = field(default_factory=dict)
    children: Mapping[str | None, Sequence[str]] = field(default_factory=dict)
    dropped: Set[str] = frozenset()
    origins: Mapping[str, str | None] = field(default_factory=dict)
    continued: Mapping[str | None, Sequence[str]] = field(default_factory=dict)
    summaries: Mapping[str, str] = field(default_factory=dict)

    @property
    def release(self) -> str | None:
        """The release that wrote the last record that names one."""
        return _release(self.nodes)

    @classmethod
    def of(
        cls,
        entries: Iterable[Entry],
        last_prompts: Sequence[str] = (),
        typed: frozenset[str] = frozenset(),
        rewinds: Sequence[int] = (),
    ) -> Tree:
        nodes: dict[str, Entry] = {}
        first: dict[str, Entry] = {}
        written: list[tuple[str, str | None]] = []
        for entry in entries:
            if entry.uuid is not None and entry.in_tree:
                original = first.setdefault(entry.uuid, entry)
                nodes.pop(entry.uuid, None)
                nodes[entry.uuid] = entry if entry.writer == original.writer else replace(entry, writer=original.writer)
                written.append((entry.uuid, entry.physical_parent))
        numbers = release_numbers(_release(nodes)) or _NEWEST
        dropped, moved = _summed_up_in_part(nodes) if numbers >= _KEEPS_SEGMENTS_SINCE else ({}, {})
        parents, origins = _parents(nodes, dropped, moved, numbers), _origins(first, numbers)
        children = _children((u, p) for u, p in parents.items() if u not in dropped or p not in nodes or p in dropped)
        return cls(
            nodes=nodes,
            first_offsets={uuid: entry.offset for uuid, entry in first.items()},
            last_prompts=last_prompts,
            typed=typed,
            rewinds=rewinds,
            parents=parents,
            children=children,
            dropped=dropped.keys(),
            origins=origins,
            continued=children if origins == parents and not dropped else _children(origins.items()),
            summaries={u: p for u, p in reversed(written) if p is not None and p in nodes and nodes[p].kind == "boundary"},
        )

    def path(self, leaf: str | None) -> Iterator[Entry]:
        """From a leaf up to the root, or to where the chain breaks, as `--resume` reads it. A loop in it ends it."""
        return self._up(leaf, self.parents)

    def above(self, leaf: str | None) -> Iterator[Entry]:
        """The same, but on from a compaction to what it sums up."""
        return self._up(leaf, self.origins)

    def _up(self, leaf: str | None, parents: Mapping[str, str | None]) -> Iterator[Entry]:
        seen: set[str] = set()
        while leaf is not None and leaf in self.nodes and leaf not in seen:
            seen.add(leaf)
            yield self.nodes[leaf]
            leaf = parents[leaf]

    def below(self, top: str, apart_from: Set[str] = frozenset()) -> Iterator[Entry]:
        """A record and everything that was written below it, also behind a compaction, in no order; but not `apart_from`, and what is
        below that."""
        stack, seen = [top], set(apart_from)
        while stack:
            uuid = stack.pop()
            if uuid not in seen:
                seen.add(uuid)
                yield self.nodes[uuid]
                stack.extend(self.continued.get(uuid, ()))

    def first_offset(self, entry: Entry) -> int:
        """Where its first copy stands."""
        return self.first_offsets.get(entry.uuid or "", entry.offset)

    def asks(self, entry: Entry) -> bool:
        """Whether a person gives something to the model there: also by a command of one's own, which the model answers."""
        return entry.kind in PROMPTS or (entry.kind == "echo" and self.answered(entry))

    def answered(self, entry: Entry) -> bool:
        """Whether the model answered right below a record."""
        return next(self.answers(entry.uuid), None) is not None

    def answers(self, top: str | None) -> Iterator[Entry]:
        """The answers below a record, down to what is given to the model next. A loop in the tree ends it."""
        stack, seen = list(self.continued.get(top, ())), {top}
        while stack:
            entry = self.nodes[stack.pop()]
            if entry.kind in PROMPTS or entry.kind == "echo" or entry.uuid in seen:
                continue
            seen.add(entry.uuid)
            if entry.kind == "answer" and not entry.made_up:
                yield entry
            stack.extend(self.continued.get(entry.uuid, ()))

    def writer(self, entry: Entry) -> Writer:
        if entry.writer != "unknown" or not self.typed:
            return entry.writer
        prompt = next((e for e in self.above(entry.uuid) if e.kind == "prompt"), None)
        return "typed" if prompt is not None and prompt.uuid in self.typed else "sdk"


def _release(nodes: Mapping[str, Entry]) -> str | None:
    return next((entry.release for entry in reversed(list(nodes.values())) if entry.release is not None), None)


def _children(parents: Iterable[tuple[str, str | None]]) -> dict[str | None, list[str]]:
    children: dict[str | None, list[str]] = {}
    for uuid, parent in parents:
        children.setdefault(parent, []).append(uuid)
    return children


def _origins(nodes: Mapping[str, Entry], release: tuple[int, ...]) -> dict[str, str | None]:
    bridges = release >= _BRIDGES_SINCE
    origins: dict[str, str | None] = {}
    before: str | None = None
    for uuid, entry in nodes.items():
        broken = bridges and before is not None and entry.parent is not None and entry.parent not in nodes
        origins[uuid] = before if broken else entry.parent
        before = uuid
    return origins


def _parents(
    nodes: Mapping[str, Entry], dropped: Mapping[str, Entry], moved: Mapping[str, str], release: tuple[int, ...]
) -> dict[str, str | None]:
    bridges, climbs = release >= _BRIDGES_SINCE, release >= _CLIMBS_SINCE
    parents: dict[str, str | None] = {}
    before: str | None = None
    for uuid, entry in nodes.items():
        if uuid in dropped:
            parents[uuid] = entry.physical_parent
            continue
        parent = moved.get(uuid, entry.physical_parent)
        if parent is not None and (parent in dropped or parent not in nodes):
            above = _above_dropped(nodes, dropped, parent) if climbs else None
            parent = above or (before if bridges else None) or (parent if parent not in dropped else None)
        parents[uuid] = parent
        before = uuid
    return parents


def _above_dropped(nodes: Mapping[str, Entry], dropped: Mapping[str, Entry], uuid: str | None) -> str | None:
    """The next record above a dropped one that is not dropped."""
    seen: set[str] = set()
    while uuid is not None and uuid in dropped and uuid not in seen:
        seen.add(uuid)
        uuid = dropped[uuid].physical_parent
    return uuid if uuid in nodes and uuid not in dropped else None


def _summed_up_in_part(nodes: Mapping[str, Entry]) -> tuple[Mapping[str, Entry], Mapping[str, str]]:
    """What is dropped, and the parents that are others now, once a compaction kept a segment: all but what the last compaction keeps.

    The segment hangs on its anchor, and what hung on the anchor hangs on the segment. Nothing is dropped where the segment is broken.
    """
    boundaries = [entry for entry in nodes.values() if entry.kind == "boundary"]
    if not any(entry.segment for entry in boundaries):
        return {}, {}
    last = boundaries[-1]
    kept: set[str] = set()
    moved: dict[str, str] = {}
    if last.segment is not None:
        head, anchor, tail = last.segment
        kept = _segment(nodes, head, tail)
        if not kept:
            return {}, {}
        moved = {uuid: tail for uuid, entry in nodes.items() if entry.physical_parent == anchor} | {head: anchor}
    before = takewhile(lambda item: item[1] is not last, nodes.items())
    return {uuid: entry for uuid, entry in before if uuid not in kept}, moved


def _segment(nodes: Mapping[str, Entry], head: str, tail: str) -> set[str]:
    """The ids from a segment's last record up to its first; none when the way is broken."""
    ids: set[str] = set()
    uuid: str | None = tail
    while uuid is not None and uuid in nodes and uuid not in ids:
        ids.add(uuid)
        if uuid == head:
            return ids
        uuid = nodes[uuid].physical_parent
    return set()


def release_numbers(release: str | None) -> tuple[int, ...] | None:
    """`2.1.119` as numbers that compare, or None when the text is not of that form."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", release or "")
    return tuple(int(part) for part in match.groups()) if match else None


def resumed_leaf(tree: Tree, release: str | None) -> str | None:
    """The record up from which a `--resume` by this release reads; None in an empty tree. An unknown release counts as the newest."""
    read = [entry for uuid, entry in tree.nodes.items() if uuid not in tree.dropped]
    if not read:
        return None
    numbers = release_numbers(release)
    if numbers is not None and numbers <= _LATEST_TIMESTAMP_UNTIL:
        return max(read, key=lambda e: (e.timestamp or 0.0, -e.offset)).uuid
    last = read[-1].uuid
    if numbers is not None and numbers <= _LAST_RECORD_UNTIL:
        return last
    named = _named(tree)
    return last if named is None or any(e.uuid == named for e in tree.path(last)) else named


def _named(tree: Tree) -> str | None:
    """The record that the newest `last-prompt` names, of those that name one that is read. A rewind takes back what was named before."""
    since_rewind = takewhile(lambda leaf: leaf != _NO_RECORD, reversed(tree.last_prompts))
    return next((leaf for leaf in since_rewind if leaf in tree.nodes and leaf not in tree.dropped), None)


def lacking(tree: Tree, leaf: str | None) -> tuple[Entry, ...]:
    """What the branch up from `leaf` lacks, in the order in which it stands in the file: prompts, and answers to prompts that it has.

    A terminal that opens in the middle of a turn loads the prompt without its answer. Such an answer is there by its first record.
    Not what was left behind on purpose, not what a summary on the branch sums up, and not what a catch-up on it gives back already.
    """
    branch = {entry.uuid: entry for entry in tree.path(leaf) if entry.uuid is not None}
    told = told_by(tree, leaf)
    messages = {entry.message_id for entry in told.values() if entry.message_id is not None}
    given_back = {uuid for entry in told.values() for uuid in entry.gives_back or ()}
    found: dict[str | None, Entry] = {}
    for parent in [*told, *_roots(tree, told)]:
        siblings = tree.continued.get(parent, ())
        kept = next((uuid for among in (branch, told) for uuid in siblings if uuid in among), None)
        for other in siblings:
            lost = [] if other in told else [*_late_answer(tree, other, told.keys(), messages), *_prompts(tree, other, told.keys())]
            if lost and _unaware(tree, kept, other):
                found |= {e.uuid: e for e in lost}
    missing = [e for uuid, e in found.items() if uuid not in given_back and not is_copied(uuid or "", told.keys())]
    return tuple(sorted(missing, key=lambda e: e.offset))


def told_by(tree: Tree, leaf: str | None) -> dict[str, Entry]:
    """The records of the branch up from `leaf`, and those that the summaries among them sum up."""
    branch = {entry.uuid: entry for entry in tree.path(leaf) if entry.uuid is not None}
    told = dict(branch)
    summed_up: set[str | None] = set()
    stack = list(branch)
    while stack:
        uuid = stack.pop()
        boundary = tree.summaries.get(uuid, leaf if uuid == leaf else None)
        for last in _leaves_before(tree, boundary):
            for entry in takewhile(lambda e: e.uuid not in summed_up, tree.above(last)):
                summed_up.add(entry.uuid)
                if entry.uuid is not None and entry.uuid not in told:
                    told[entry.uuid] = entry
                    stack.append(entry.uuid)
    return told


def _leaves_before(tree: Tree, uuid: str | None) -> Iterator[str | None]:
    """A compaction, and the leaf of what it sums up where that is not above it; nothing for another record."""
    if uuid is None or (boundary := tree.nodes[uuid]).kind != "boundary":
        return
    yield uuid
    if boundary.segment is not None and boundary.segment[1] == uuid:
        yield _last_summed_up(tree, boundary.segment[2], uuid)


def _last_summed_up(tree: Tree, tail: str, boundary: str) -> str | None:
    """Where the conversation stood when the part of it behind `tail` was summed up: the compaction does not say it.

    That was done at a terminal. Of several branches it had the one on which somebody typed last.
    """
    if tail not in tree.nodes:
        return None
    behind = [e for e in tree.below(tail, {boundary}) if tree.first_offsets[e.uuid or ""] < tree.first_offsets[boundary]]
    typed = [e for e in behind if e.uuid != tail and tree.writer(e) == "typed"]
    if typed:
        below_typed = {e.uuid for e in tree.below(max(typed, key=lambda e: e.offset).uuid or "", {boundary})}
        behind = [e for e in behind if e.uuid in below_typed]
    return max(behind, key=lambda e: e.offset).uuid if behind else None


def _prompts(tree: Tree, top: str, told: Set[str]) -> Iterator[Entry]:
    return (e for e in tree.below(top, apart_from=told) if tree.asks(e))


def _late_answer(tree: Tree, top: str, told: Set[str], messages: Set[str]) -> list[Entry]:
    """The first answer at or below `top` to the prompt above it. Of a message that is on the branch too, a part is no answer of its own:
    that is how the calls of parallel tools stand."""
    first = tree.nodes[top]
    if tree.asks(first):
        return []
    answers = [*([first] if first.kind == "answer" and not first.made_up else []), *tree.answers(top)]
    return sorted((e for e in answers if e.message_id not in messages and e.uuid not in told), key=lambda e: e.offset)[:1]


def _roots(tree: Tree, told: Iterable[str]) -> Iterator[str | None]:
    """The parent under which a first record stands, when that is no record: other branches may begin there too."""
    if any(tree.origins[uuid] is None for uuid in told):
        yield None


def _unaware(tree: Tree, kept: str | None, other: str) -> bool:
    """Whether the two branches at a fork were written by processes that did not know of each other's.

    The later of the two decides: its writer left the earlier one behind on purpose when it had it in memory. Only a person
    at a terminal can do that. A headless hangs its turn on the last record that it knows, and so does a terminal
    whose person does nothing but type. From 2.1.332 on a rewind is noted; before, what was typed on the earlier branch counts as
    known to the person, though it may have been in another terminal. What is read up to the fork only was left behind by nobody.
    """
    if kept is None:
        return True
    begun = _begin(tree, other)
    earlier, later = sorted((_begin(tree, kept), begun), key=tree.first_offset)
    if earlier.uuid is None or tree.writer(later) != "typed":
        return _parts_ways(tree, earlier, later, other)
    if later is begun:
        # What a person went on with is lacking where the branch that was left behind is read all the same.
        return True
    before = [e for e in tree.below(earlier.uuid) if tree.first_offset(e) < tree.first_offset(later)]
    known = _was_rewound(tree, before, later) or (
        any(tree.writer(e) == "typed" and not e.made_up for e in before) and not _is_another_terminal(tree, before, later)
    )
    return any(e.is_conversation for e in before) and not known


def _begin(tree: Tree, top: str) -> Entry:
    """Where a branch begins that somebody goes on with: attachments of the prompt above may stand before, written with that."""
    stack, seen, found = [top], set[str](), list[Entry]()
    while stack:
        uuid = stack.pop()
        if tree.nodes[uuid].kind != "other":
            found.append(tree.nodes[uuid])
        elif uuid not in seen:
            seen.add(uuid)
            stack.extend(tree.continued.get(uuid, ()))
    return min(found, key=tree.first_offset, default=tree.nodes[top])


def _is_another_terminal(tree: Tree, before: Sequence[Entry], later: Entry) -> bool:
    """Whether what was typed before was typed in a terminal that did not go on here, where every rewind is marked.

    A prompt that was taken back before its answer, and an answer that was tried again, are no turn of their own.
    """
    marks = (release_numbers(later.release) or ()) >= _MARKS_REWINDS_SINCE
    return marks and any(tree.asks(e) and tree.answered(e) for e in before)


def _was_rewound(tree: Tree, before: Sequence[Entry], later: Entry) -> bool:
    """Whether a rewind was noted between what was left behind and the first answer on the branch that was begun then."""
    last = max(map(tree.first_offset, before), default=tree.first_offset(later))
    answers = [tree.first_offset(e) for e in tree.below(later.uuid or "") if e.kind == "answer"]
    return any(last < position < min(answers, default=position + 1) for position in tree.rewinds)


def _parts_ways(tree: Tree, earlier: Entry, later: Entry, other: str) -> bool:
    """Whether a fork that no person made is one of two conversations, not the parallel tools or the retries inside one turn."""
    return (
        tree.writer(earlier) != tree.writer(later)
        or any(tree.asks(e) for e in tree.below(other))
        or all(_goes_on(tree, top) for top in (earlier, later))
    )


def _goes_on(tree: Tree, top: Entry) -> bool:
    """Whether somebody asked or answered something there."""
    return any(e.kind in PROMPTS or e.kind == "answer" for e in tree.below(top.uuid or ""))
