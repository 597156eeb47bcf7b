"""Which branch `--resume` reads, measured on eight releases: the real program resumed made transcripts and recited what it had read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ccc_plugins.retire_stale.judgement.branches import Tree, resumed_leaf
from ccc_plugins.retire_stale.judgement.entries import entry_of

BY_TIME = ("2.0.42", "2.1.6", "2.1.61")
BY_PLACE = ("2.1.119",)
BY_NAME = ("2.1.168", "2.1.216", "2.1.275", "2.1.332")
ALL = BY_TIME + BY_PLACE + BY_NAME


class Made:
    """A transcript in the making. A turn is a prompt of one or two letters, `A`, and its answer, `Aa`; ids are the names themselves."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.last_prompts: list[str] = []

    def record(self, name: str, parent: str | None, kind: str, at: int | None = None, **fields: object) -> None:
        stamp = at if at is not None else len(self.records) + 1
        message = {"role": kind, "content": [{"type": "text", "text": name}]}
        record = {"type": kind, "uuid": name, "parentUuid": parent, "timestamp": f"2026-11-30T10:00:{stamp:02d}.000Z", "message": message}
        self.records.append({**record, "isSidechain": False, **fields})

    def turn(self, name: str, parent: str | None, at: int | None = None) -> None:
        self.record(name, parent, "user", at)
        self.record(name + "a", name, "assistant", None if at is None else at + 1)

    def name_leaf(self, leaf: str) -> None:
        self.last_prompts.append(leaf)

    def read_by(self, release: str) -> list[str]:
        tree = Tree.of((entry_of({**r, "version": release}, i) for i, r in enumerate(self.records)), self.last_prompts)
        path = reversed(list(tree.path(resumed_leaf(tree, release))))
        return [e.uuid for e in path if e.uuid is not None and e.kind == "prompt"]


def fork(made: Made) -> None:
    made.turn("A", None)
    made.turn("B", "Aa")
    made.turn("C", "Aa")


def named_first_branch(made: Made) -> None:
    fork(made)
    made.name_leaf("Ba")


def named_ancestor_of_the_last(made: Made) -> None:
    made.turn("A", None)
    made.turn("B", "Aa")
    made.turn("C", "Ba")
    made.name_leaf("Aa")


def named_inner_record(made: Made) -> None:
    made.turn("A", None)
    made.turn("B", "Aa")
    made.turn("B2", "Ba")
    made.turn("C", "Aa")
    made.name_leaf("Ba")


def named_where_both_branch_off(made: Made) -> None:
    fork(made)
    made.name_leaf("Aa")


def named_a_prompt(made: Made) -> None:
    fork(made)
    made.name_leaf("B")


def named_twice(made: Made) -> None:
    fork(made)
    made.name_leaf("Ba")
    made.name_leaf("Ca")


def named_nothing_known(made: Made) -> None:
    fork(made)
    made.name_leaf("00000000-0000-0000-0000-000000000000")


def named_then_the_other_branch_grew(made: Made) -> None:
    fork(made)
    made.record("D", "Ca", "user")
    made.name_leaf("Ba")


def later_stamp_in_the_earlier_branch(made: Made) -> None:
    made.turn("A", None, 10)
    made.turn("B", "Aa", 40)
    made.turn("C", "Aa", 20)


def equal_stamps(made: Made) -> None:
    made.turn("A", None, 10)
    made.turn("B", "Aa", 20)
    made.turn("C", "Aa", 20)


def a_parent_never_written(made: Made) -> None:
    made.turn("A", None)
    made.turn("B", "nowhere")


def an_attachment_last(made: Made) -> None:
    fork(made)
    made.record("att", "Ba", "attachment", attachment={"type": "date"})


def a_meta_record_last(made: Made) -> None:
    fork(made)
    made.record("m", "Ba", "user", isMeta=True)


def a_side_chain_last(made: Made) -> None:
    fork(made)
    made.record("side", "Ba", "user", isSidechain=True)


def progress_last(made: Made) -> None:
    fork(made)
    made.record("prog", "Ba", "progress")


def a_second_root(made: Made) -> None:
    made.turn("A", None)
    made.turn("B", "Aa")
    made.turn("C", None)


MEASURED: list[tuple[Callable[[Made], None], tuple[str, ...], list[str]]] = [
    (fork, ALL, ["A", "C"]),
    (named_first_branch, BY_TIME + BY_PLACE, ["A", "C"]),
    (named_first_branch, BY_NAME, ["A", "B"]),
    (named_ancestor_of_the_last, ALL, ["A", "B", "C"]),
    (named_inner_record, BY_TIME + BY_PLACE, ["A", "C"]),
    (named_inner_record, BY_NAME, ["A", "B"]),
    (named_where_both_branch_off, ALL, ["A", "C"]),
    (named_a_prompt, BY_TIME + BY_PLACE, ["A", "C"]),
    (named_a_prompt, BY_NAME, ["A", "B"]),
    (named_twice, ALL, ["A", "C"]),
    (named_nothing_known, ALL, ["A", "C"]),
    (named_then_the_other_branch_grew, BY_TIME + BY_PLACE, ["A", "C", "D"]),
    (named_then_the_other_branch_grew, BY_NAME, ["A", "B"]),
    (later_stamp_in_the_earlier_branch, BY_TIME, ["A", "B"]),
    (later_stamp_in_the_earlier_branch, BY_PLACE + BY_NAME, ["A", "C"]),
    (equal_stamps, BY_TIME, ["A", "B"]),
    (equal_stamps, BY_PLACE + BY_NAME, ["A", "C"]),
    (a_parent_never_written, BY_TIME, ["B"]),
    (a_parent_never_written, BY_PLACE + BY_NAME, ["A", "B"]),
    (an_attachment_last, ALL, ["A", "B"]),
    (a_meta_record_last, ALL, ["A", "B"]),
    (a_side_chain_last, ALL, ["A", "C"]),
    # 2.1.61 alone counts a progress record too (["A", "B"] there): its tools report progress below the record of their own turn.
    (progress_last, tuple(r for r in ALL if r != "2.1.61"), ["A", "C"]),
    (a_second_root, ALL, ["C"]),
]


@pytest.mark.parametrize(
    ("make", "release", "read"),
    [pytest.param(make, release, read, id=f"{make.__name__}-{release}") for make, releases, read in MEASURED for release in releases],
)
def test_the_branch_that_resume_reads_is_the_measured_one(make: Callable[[Made], None], release: str, read: list[str]) -> None:
    """The leaf rule of each release gives what the real program of that release recited."""
    made = Made()
    make(made)
    assert made.read_by(release) == read
