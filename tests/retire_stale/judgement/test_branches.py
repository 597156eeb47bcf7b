"""Which turns a branch lacks: what two writers hung side by side, not what one of them left behind on purpose."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccc_plugins.retire_stale.judgement.branches import Tree, lacking, release_numbers, resumed_leaf
from ccc_plugins.retire_stale.judgement.entries import Entry, Kind, Writer
from tests.retire_stale.builders import RELEASES

KINDS: tuple[Kind, ...] = ("prompt", "answer", "boundary", "note", "shell", "queued", "echo", "other")
WRITERS: tuple[Writer, ...] = ("typed", "sdk", "unknown")
IDS = st.integers(0, 9)
EDGES = st.tuples(IDS, st.none() | IDS, st.sampled_from(KINDS), st.sampled_from(WRITERS), st.none() | st.floats(0, 9))


def entry(uuid: str, parent: str | None, kind: Kind = "answer", writer: Writer = "sdk", *, at: float = 0.0, offset: int = 0) -> Entry:
    return Entry(offset=offset, type="x", kind=kind, uuid=uuid, parent=parent, writer=writer, timestamp=at, in_tree=True)


class Forest:
    """Turns in the order in which they stand."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def turn(self, name: str, parent: str | None, writer: Writer) -> str:
        self.add(name, parent, "prompt", writer)
        return self.add(f"{name}-answer", name, "answer", writer)

    def add(self, uuid: str, parent: str | None, kind: Kind, writer: Writer = "sdk") -> str:
        at = len(self.entries)
        self.entries.append(entry(uuid, parent, kind, writer, at=float(at), offset=at))
        return uuid

    def lacks(self, leaf: str, *, rewinds: tuple[int, ...] = ()) -> list[str | None]:
        """The prompts that are lacking, or whatever else is given to the model."""
        return [e.uuid for e in lacking(Tree.of(self.entries, rewinds=rewinds), leaf) if e.kind != "answer"]

    def by(self, release: str) -> Forest:
        """The same, written by that release."""
        self.entries = [replace(e, release=release) for e in self.entries]
        return self


@pytest.fixture
def forest() -> Forest:
    made = Forest()
    made.turn("first", None, "sdk")
    return made


def test_a_rollback_leaves_the_terminals_turn_out(forest: Forest) -> None:
    """Both hang on the same answer, and each branch lacks the other's."""
    theirs = forest.turn("typed", "first-answer", "typed")
    mine = forest.turn("rolled-back", "first-answer", "sdk")
    assert forest.lacks(mine) == ["typed"]
    assert forest.lacks(theirs) == ["rolled-back"]


def test_all_turns_down_the_other_branch_are_lacking(forest: Forest) -> None:
    """In the order in which they stand, a text accepted in the middle of a turn among them."""
    one = forest.turn("one", "first-answer", "typed")
    forest.add("queued", one, "queued", "typed")
    forest.turn("two", "queued", "typed")
    mine = forest.turn("rolled-back", "first-answer", "sdk")
    assert forest.lacks(mine) == ["one", "queued", "two"]


def test_a_straight_line_lacks_nothing(forest: Forest) -> None:
    """Whoever took the turns in it."""
    assert forest.lacks(forest.turn("three", forest.turn("two", "first-answer", "typed"), "sdk")) == []


def test_a_rewind_leaves_its_own_turns_out_on_purpose(forest: Forest) -> None:
    """A person at a terminal went back, or edited a prompt: what was left was known to who left it."""
    forest.turn("before", "first-answer", "typed")
    assert forest.lacks(forest.turn("instead", "first-answer", "typed")) == []


def test_a_second_terminal_is_no_rewind_where_rewinds_are_noted(forest: Forest) -> None:
    """From 2.1.332 on; before, the two look alike, and what was typed counts as known to whoever typed then."""
    forest.turn("in one", "first-answer", "typed")
    leaf = forest.turn("in the other", "first-answer", "typed")
    assert forest.by("2.1.332").lacks(leaf) == ["in one"]
    assert forest.by("2.1.275").lacks(leaf) == []


def test_a_retry_in_a_terminal_is_no_second_terminal(forest: Forest) -> None:
    """An answer that was tried again, and a prompt that was taken back before its answer, leave no whole turn behind."""
    prompt = forest.add("typed", "first-answer", "prompt", "typed")
    forest.add("first try", prompt, "answer", "typed")
    leaf = forest.add("second try", prompt, "answer", "typed")
    assert forest.by("2.1.332").lacks(leaf) == []
    forest.add("draft", leaf, "prompt", "typed")
    assert forest.by("2.1.332").lacks(forest.turn("sent", leaf, "typed")) == []


def test_a_rewind_that_is_noted_leaves_its_turns_out_on_purpose(forest: Forest) -> None:
    """Between the new prompt and its answer."""
    forest.turn("before", "first-answer", "typed")
    prompt = forest.add("instead", "first-answer", "prompt", "typed")
    forest.add("a mark", prompt, "other", "typed")
    leaf = forest.add("answer", prompt, "answer", "typed")
    mark = next(e.offset for e in forest.entries if e.uuid == "a mark")
    assert forest.by("2.1.332").lacks(leaf, rewinds=(mark,)) == []


def test_what_a_person_went_on_with_is_lacking_where_what_was_left_behind_is_read(forest: Forest) -> None:
    """A headless that exits after a rewind names its own last record, and so the branch that the person left."""
    left = forest.turn("before", "first-answer", "typed")
    forest.turn("instead", "first-answer", "typed")
    assert forest.lacks(left) == ["instead"]


@pytest.mark.parametrize("writer", ["typed", "sdk"])
def test_a_turn_beside_a_mere_command_is_lacking(forest: Forest, writer: Writer) -> None:
    """A headless took `/cost` and names what that printed when it exits; another process went on from where both began."""
    command = forest.add("printed", forest.add("/cost", "first-answer", "echo"), "echo")
    forest.turn("other", "first-answer", writer)
    assert forest.lacks(command) == ["other"]


@pytest.mark.parametrize("writer", ["typed", "sdk"])
def test_a_turn_before_a_mere_command_is_lacking(forest: Forest, writer: Writer) -> None:
    """The same where the command came later: the headless did not know of the turn."""
    forest.turn("other", "first-answer", writer)
    assert forest.lacks(forest.add("printed", forest.add("/cost", "first-answer", "echo"), "echo")) == ["other"]


def test_what_hangs_below_the_leaf_is_lacking(forest: Forest) -> None:
    """A `last-prompt` may name a record that somebody went on from, while the file ends on a third branch."""
    mine = forest.turn("mine", "first-answer", "sdk")
    forest.turn("went on", mine, "typed")
    forest.turn("third", "first-answer", "sdk")
    assert forest.lacks(mine) == ["went on", "third"]


def test_an_answer_below_the_leaf_is_lacking(forest: Forest) -> None:
    """Where the prompt itself is named."""
    forest.turn("mine", "first-answer", "sdk")
    assert [e.uuid for e in lacking(Tree.of(forest.entries), "mine")] == ["mine-answer"]


def test_a_name_counts_until_a_rewind_takes_it_back(forest: Forest) -> None:
    """A rewind names no record; one that is not there, or not read, is passed over."""
    before, after = forest.turn("before", "first-answer", "typed"), forest.turn("after", "first-answer", "typed")
    named = {(): after, (before,): before, (before, "gone"): before, (before, "00000000-0000-0000-0000-000000000000"): after}
    for names, leaf in named.items():
        assert resumed_leaf(Tree.of(forest.entries, names), "2.1.332") == leaf


def test_a_shell_command_of_a_person_is_lacking_too(forest: Forest) -> None:
    """It was run for the model to see."""
    shell = forest.add("!ls", "first-answer", "shell", "typed")
    forest.add("its output", shell, "shell", "typed")
    assert forest.lacks(forest.turn("rolled-back", "first-answer", "sdk")) == ["!ls", "its output"]


def test_a_command_of_ones_own_is_lacking_when_the_model_answered_it(forest: Forest) -> None:
    """One that Claude Code handled itself said nothing to the model."""
    handled = forest.add("/model", "first-answer", "echo", "typed")
    own = forest.add("/review", forest.add("what it said", handled, "echo", "typed"), "echo", "typed")
    forest.add("reviewed", forest.add("its text", own, "other", "typed"), "answer", "typed")
    mine = forest.turn("rolled-back", "first-answer", "sdk")
    assert forest.lacks(mine) == ["/review"]
    assert [e.uuid for e in lacking(Tree.of(forest.entries), mine)] == ["/review"]


def test_parallel_tools_and_retries_are_no_branches(forest: Forest) -> None:
    """Inside one turn, calls hang side by side and a retry begins anew."""
    prompt = forest.add("prompt", "first-answer", "prompt")
    one = forest.add("call-1", prompt, "answer")
    two = forest.add("call-2", one, "answer")
    forest.add("result-1", one, "other")
    leaf = forest.add("done", forest.add("result-2", two, "other"), "answer")
    assert forest.lacks(leaf) == []


def test_two_roots_are_two_branches(forest: Forest) -> None:
    """A process that began the session anew beside a headless that did not know of it."""
    mine = forest.turn("anew", None, "sdk")
    assert forest.lacks(mine) == ["first"]


@pytest.mark.parametrize(
    ("release", "numbers"),
    [("2.1.119", (2, 1, 119)), ("2.1.119-beta.1", (2, 1, 119)), ("2.1", None), ("", None), (None, None), ("v2.1.1", None)],
)
def test_releases_compare_as_numbers(release: str | None, numbers: tuple[int, ...] | None) -> None:
    """Of any other form, none are known."""
    assert release_numbers(release) == numbers


@given(st.lists(EDGES, max_size=14), st.lists(st.integers(0, 12), max_size=3), st.sampled_from([*RELEASES, None, "?"]), st.booleans())
def test_no_tree_hangs_or_raises(
    edges: list[tuple[int, int | None, Kind, Writer, float | None]], named: list[int], release: str | None, spliced: bool
) -> None:
    """Loops, orphans, repeated ids, records on one line: there is a leaf in the tree, and nothing on its branch is lacking."""
    entries = [
        Entry(
            offset=0 if spliced else offset,
            type="x",
            kind=kind,
            uuid=str(uuid),
            parent=None if parent is None else str(parent),
            writer=writer,
            timestamp=at,
            in_tree=True,
            parent_is_logical=kind == "boundary" and parent is not None,
            segment=(str(uuid), str(at), str(parent)) if kind == "boundary" and spliced else None,
        )
        for offset, (uuid, parent, kind, writer, at) in enumerate(edges)
    ]
    tree = Tree.of(entries, [str(leaf) for leaf in named])
    leaf = resumed_leaf(tree, release)
    assert (leaf is None) == (not entries)
    branch = {e.uuid for e in tree.path(leaf)}
    lost = [e.uuid for e in lacking(tree, leaf)]
    assert not branch & set(lost)
    assert len(lost) == len(set(lost))
