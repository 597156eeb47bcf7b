"""What a headless lacks of what everybody said, by a made tree and what it is known to have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from ccc_plugins.retire_stale.judgement.branches import Tree
from ccc_plugins.retire_stale.judgement.copies import copy_id
from ccc_plugins.retire_stale.judgement.entries import entry_of
from ccc_plugins.retire_stale.judgement.history import Lack, Memory, lack, takes_history, whole_branch

RELEASE = "2.1.332"
IDS = {name: f"{number:08d}-0000-4000-8000-000000000000" for number, name in enumerate("ABCDEFGHIJKLMNOP")}
NAMES = {uuid: name for name, uuid in IDS.items()}


def record(name: str, parent: str | None, kind: str = "u", **fields: Any) -> dict[str, Any]:
    """A record of a made transcript: `u` a typed prompt, `U` one through the sdk, `a` an answer of the same writer as its parent's."""
    entrypoint = "cli" if kind.islower() else "sdk-cli"
    message = {"role": "user", "content": name} if kind in "uU" else {"role": "assistant", "id": f"m{name}", "content": [{"type": "text"}]}
    base = {"type": "user" if kind in "uU" else "assistant", "uuid": IDS[name], "parentUuid": IDS.get(parent or ""), "message": message}
    return {**base, "version": RELEASE, "entrypoint": entrypoint, **fields}


def tree(records: Iterable[dict[str, Any]], *last_prompts: str) -> Tree:
    entries = [entry_of(one, 10 * number) for number, one in enumerate(records)]
    return Tree.of(entries, [IDS[name] for name in last_prompts])


FORK = [
    record("A", None, "U"),
    record("B", "A", "A"),
    record("C", "B", "u"),
    record("D", "C", "a"),
    record("E", "B", "U"),
    record("F", "E", "A"),
]
"""A headless (A B, E F) and a terminal (C D) that did not know of each other."""


def headless(left_over: str = "CD", **changes: Any) -> Memory:
    """The one that wrote A B E F."""
    memory = {
        "loaded_to": 0,
        "loaded": frozenset(),
        "begins_at": 0,
        "leaf": IDS["F"],
        "left_over": {IDS[n] for n in left_over}.__contains__,
    }
    return Memory(**{**memory, **changes})


def names(found: Lack) -> str:
    return "".join(NAMES[entry.uuid or ""] for entry in found.entries)


def test_a_stale_process_lacks_the_other_branch_in_its_order() -> None:
    """A fresh one would lack a branch too, so the tree is forked."""
    found = lack(tree(FORK), RELEASE, headless())
    assert (names(found), found.turns, found.copies, found.forked) == ("CD", (IDS["C"],), frozenset(), True)
    assert found.obstacle is None


def test_what_was_given_and_written_is_known() -> None:
    """Half a healing goes on with the rest."""
    healed = [*FORK, record("C", "F", "U")]
    found = lack(tree(healed), RELEASE, headless(left_over="D", given={IDS["C"]}, leaf=IDS["C"]))
    assert names(found) == "D"
    whole = lack(tree([*healed, record("D", "C", "A")]), RELEASE, headless(left_over="", given={IDS["C"], IDS["D"]}, leaf=IDS["D"]))
    assert (names(whole), whole.forked) == ("", False)


def test_what_it_may_have_loaded_is_not_given() -> None:
    """Where foreign records stand before the first own one nobody knows whether it has them."""
    assert lack(tree(FORK), RELEASE, headless(begins_at=30)).obstacle is not None
    assert lack(tree(FORK), RELEASE, headless(begins_at=None)).obstacle is not None
    assert lack(tree(FORK), RELEASE, headless(begins_at=20)).obstacle is None


def test_what_it_loaded_the_file_with_is_given_as_a_copy() -> None:
    """A process that was started on the forked file, and read one branch of it."""
    made = tree(FORK)
    read = whole_branch(made, IDS["F"])
    started = Memory(loaded_to=60, loaded=read, left_over=lambda _: False)
    found = lack(made, RELEASE, started)
    assert (names(found), found.copies, found.seen) == ("CD", frozenset({IDS["C"], IDS["D"]}), False)
    copies = [{**record("C", "F", "U"), "uuid": copy_id(IDS["C"])}, {**record("D", "F", "A"), "uuid": copy_id(IDS["D"])}]
    copies[1]["parentUuid"] = copies[0]["uuid"]
    given = frozenset(one["uuid"] for one in copies)
    after = Memory(loaded_to=60, loaded=read, left_over=lambda _: False, given=given, leaf=copies[1]["uuid"])
    again = lack(tree([*FORK, *copies]), RELEASE, after)
    assert (names(again), again.forked, again.seen) == ("", False, True)
    # Whoever is started later reads the copies.
    later = Memory(loaded_to=80, loaded=whole_branch(tree([*FORK, *copies]), copies[1]["uuid"]), left_over=lambda _: False)
    assert names(lack(tree([*FORK, *copies]), RELEASE, later)) == ""


def test_a_person_who_went_back_is_not_overridden() -> None:
    """What the headless knows, and a rewind left behind, cannot be taken from it."""
    rewound = [record("A", None, "U"), record("B", "A", "A"), record("C", "B", "U"), record("D", "C", "A"), record("E", "B", "u")]
    found = lack(tree([*rewound, record("F", "E", "a")]), RELEASE, headless(left_over="EF", leaf=IDS["D"]))
    assert found.obstacle is None
    before = [record("A", None, "u"), record("B", "A", "a"), record("C", "B", "U"), record("D", "C", "A"), record("E", "D", "u")]
    typed = Tree.of(
        [entry_of(one, 10 * n) for n, one in enumerate([*before, record("F", "E", "a"), record("G", "D", "u"), record("H", "G", "a")])],
        [IDS["H"]],
        rewinds=[65],
    )
    memory = headless(left_over="GH", leaf=IDS["F"], begins_at=20)
    assert lack(typed, RELEASE, memory).obstacle == "a person went back behind what it knows"


def test_the_end_that_a_last_prompt_names_is_told() -> None:
    """Only where it is another writer's news, and not what the headless has."""
    ended = [*FORK[:4], {**record("G", "D", "a"), "type": "system", "subtype": "turn_duration"}]
    assert lack(tree(ended, "G"), RELEASE, headless(left_over="CDG", leaf=IDS["B"])).end == IDS["G"]
    assert lack(tree(ended, "G"), RELEASE, headless(left_over="CD", leaf=IDS["B"])).end is None
    assert lack(tree(ended), RELEASE, headless(left_over="CDG", leaf=IDS["B"])).end is None


def test_a_compaction_that_it_does_not_know_is_told_and_not_given() -> None:
    """What it sums up is given in full, where that is news too."""
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": IDS["E"], "parentUuid": None, "logicalParentUuid": IDS["D"]}
    compacted = [*FORK[:4], {**boundary, "version": RELEASE, "entrypoint": "cli"}, record("F", "E", "u"), record("G", "F", "a")]
    found = lack(tree(compacted), RELEASE, headless(left_over="CDEFG", leaf=IDS["B"]))
    assert (names(found), found.compacted) == ("CDFG", True)
    assert not lack(tree(FORK), RELEASE, headless()).compacted


def test_calls_of_parallel_tools_belong_to_their_branch() -> None:
    """They stand beside the line, with their results, and another answer does not."""
    call = {"message": {"role": "assistant", "id": "mX", "content": [{"type": "tool_use", "id": "t"}]}}
    result = {"message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}}
    records = [
        record("A", None),
        record("B", "A", "a", **call),
        record("C", "B", "a", **call),
        record("D", "B", "u", **result),
        record("E", "C", "u", **result),
        record("F", "E", "a"),
        record("G", "A", "a"),
    ]
    found = whole_branch(tree(records), IDS["F"])
    assert "".join(sorted(NAMES[uuid] for uuid in found)) == "ABCDEF"


@pytest.mark.parametrize(
    ("release", "takes"), [("2.0.42", False), ("2.1.61", False), ("2.1.119", True), ("2.1.332", True), (None, False), ("?", False)]
)
def test_only_a_release_that_is_known_to_takes_history(release: str | None, takes: bool) -> None:
    assert takes_history(release) == takes


def test_what_claude_code_says_in_the_models_name_is_not_lacking() -> None:
    """Nor what it lets a person ask for that."""
    made_up = {"message": {"role": "assistant", "id": "m", "model": "<synthetic>", "content": [{"type": "text"}]}}
    records = [record("A", None, "U"), record("B", "A", "u", isMeta=True), record("C", "B", "a", **made_up), record("D", "C", "u")]
    found = lack(tree([*records, record("E", "D", "a")]), RELEASE, headless(left_over="BCDE", leaf=IDS["A"]))
    assert names(found) == "DE"
