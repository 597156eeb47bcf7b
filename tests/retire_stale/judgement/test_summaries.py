"""What a compaction takes from the branch that `--resume` reads, and what is lacking then: measured transcripts, recordings, made ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccc_hookspecs.testing.simulator import MEASURED, branch
from ccc_hookspecs.testing.simulator.releases import parse
from ccc_plugins.retire_stale.evidence.case_dir import judge_case
from ccc_plugins.retire_stale.judgement.branches import Tree, lacking, resumed_leaf
from ccc_plugins.retire_stale.judgement.entries import entry_of, texts_of
from tests.ccc_hookspecs.testing.test_branch import CASES, COMPACTED, FED, FORK, FROM_HERE, UP_TO_HERE, made

FAULTS = Path(__file__).resolve().parent.parent / "faults"
STAMPS = ("2.1.61",)
PLACE = ("2.1.119",)
NAMES = ("2.1.168", "2.1.332")
ALL = (*STAMPS, *PLACE, *NAMES)
IDS = "ABCDEFGH"


def tree_of(records: list[dict[str, Any]], release: str, typed: str = "CDSTVEK") -> Tree:
    """The records as this release wrote them, those with one of the `typed` ids at a terminal."""
    written = [{**r, "version": release, "entrypoint": "cli" if str(r.get("uuid")) in typed else "sdk-cli"} for r in records]
    leaves = [str(r["leafUuid"]) for r in records if r["type"] == "last-prompt"]
    return Tree.of((entry_of(r, place) for place, r in enumerate(written)), leaves)


@pytest.mark.parametrize("name", ["compacted-in-terminal", "summarized-from-here"])
def test_a_recorded_compaction_is_judged_right(name: str) -> None:
    """What the real program read afterwards is not lacking, and what it did not read is."""
    judged, expect = judge_case(FAULTS / name), json.loads((FAULTS / name / "case.json").read_bytes())["expect"]
    records = [json.loads(line) for line in (FAULTS / name / "transcript.jsonl").read_bytes().splitlines()]
    texts = {r["uuid"]: " ".join(texts_of(r)) for r in records if r.get("type") == "user"}
    assert [texts[uuid] for uuid in judged.lost] == expect["lost"]


@pytest.mark.parametrize(("records", "release", "memory"), [case for case in CASES if case.id != "progress at the end [2.1.61]"])
def test_the_branch_is_the_one_that_the_release_read(records: str, release: str, memory: list[str]) -> None:
    """In every transcript that was put before the real program, but for progress, which is no leaf to us: see `test_measured_leaves`."""
    tree = tree_of(made(records), release)
    read = [e for e in tree.path(resumed_leaf(tree, release)) if e.type == "user" and e.kind in ("prompt", "note")]
    assert [e.uuid for e in reversed(read)] == memory


Y_UNSEEN = "u A -, a B A, u F B, a G F, u T G, a V T, u Y G, a Z Y, b C B A:C:B, c S C, u E S, a K E"
"""Summarized from F on in a terminal that took the turn T, beside which a headless hung Y."""

LACKING: list[tuple[str, tuple[str, ...], list[str]]] = [
    (COMPACTED, ALL, []),
    (COMPACTED + ", lp B", NAMES, ["T"]),
    (COMPACTED + ", lp B", STAMPS + PLACE, []),
    (COMPACTED + ", c S B, u T S, a V T, u Z V, a W Z, lp W", ALL, []),
    (COMPACTED + ", u Y B, a Z Y", ALL, ["T"]),
    ("u A -, a B A, u Y B, a Z Y, b C B, c S C, u T S, a V T", ALL, ["Y"]),
    ("u A -, a B A, u E B, a K E, b C K, c S C, u T S, a V T, c S B, u T S, a V T", ALL, []),
    ("u A -, a B A, b C B", ALL, []),
    ("u A -, a B A, b C B, c S C", ALL, []),
    ("u A -, a B A, u F B, a G F, b C B A:C:B", PLACE + NAMES, []),
    ("u A -, a B A, u F B, a G F, b C B A:C:B, c S C", PLACE + NAMES, []),
    ("u A -, a B A, u F B, a G F, b C G F:S:G, c S C", PLACE + NAMES, []),
    (FROM_HERE, PLACE + NAMES, []),
    (FROM_HERE + ", lp I", PLACE + NAMES, []),
    (FROM_HERE + ", lp B", PLACE + NAMES, []),
    (FROM_HERE + ", u P I, a Q P", STAMPS, ["T"]),
    (FROM_HERE + ", u P I, a Q P", PLACE, []),
    (FROM_HERE + ", u P I, a Q P", NAMES, ["F", "H", "T"]),
    (FROM_HERE + ", u P I, a Q P, lp V", NAMES, ["P"]),
    (FROM_HERE + ", u P B, a Q P", ALL, ["F", "H", "T"]),
    (FROM_HERE + ", c S I, u T S, a V T, u Z V, a W Z, lp W", PLACE + NAMES, []),
    (FROM_HERE + ", b D V, c E D, u K E, a L K, lp V", PLACE + NAMES, []),
    ("u A -, a B A, u F B, a G F, b C B A:C:B, c S C, u T S, a V T, b D V S:D:V, c E D, u K E, a L K", PLACE + NAMES, []),
    ("u A -, a B A, b D B, c E D, u F E, a G F, u H G, a I H, b C G E:C:G, c S C, u T S, a V T", PLACE + NAMES, []),
    ("u A -, a B A, u F B, a G F, b C B GONE:C:B, c S C, u T S, a V T", PLACE + NAMES, []),
    ("u A -, a B A, u F B, a G F, b C B GONE:C:B, c S C, u T S, a V T, lp G", NAMES, ["T"]),
    (Y_UNSEEN, PLACE + NAMES, ["Y"]),
    (UP_TO_HERE, ALL, []),
    (UP_TO_HERE + ", lp G", ALL, []),
]


@pytest.mark.parametrize(
    ("records", "release", "lost"),
    [pytest.param(records, release, lost, id=f"{records} [{release}]") for records, releases, lost in LACKING for release in releases],
)
def test_what_was_summed_up_is_not_lacking(records: str, release: str, lost: list[str]) -> None:
    """As long as the summary is on the branch; what its writer did not know is lacking all the same."""
    tree = tree_of(made(records), release)
    assert [e.uuid for e in lacking(tree, resumed_leaf(tree, release)) if tree.asks(e)] == lost


def test_a_record_that_was_written_again_counts_where_its_last_copy_stands() -> None:
    """Its first position is known too."""
    tree = tree_of(made(FORK + ", u X1 Y2, a X2 X1"), "2.1.332")
    assert list(tree.nodes) == ["A", "B", "Y1", "Y2", "X1", "X2"]
    assert [tree.first_offsets[uuid] for uuid in tree.nodes] == [0, 1, 4, 5, 2, 3]
    assert [tree.nodes[uuid].offset for uuid in tree.nodes] == [0, 1, 4, 5, 6, 7]
    assert lacking(tree, "X2") == ()
    assert resumed_leaf(tree_of(made(FED + ", u X1 B"), "2.1.119"), "2.1.119") == "X1"


def test_what_was_dropped_can_be_followed_still() -> None:
    """A headless stands there, though nobody reads it; it is no child of a record that is read."""
    tree = tree_of(made(FROM_HERE), "2.1.332")
    assert tree.dropped == {"F", "G", "H", "I"}
    assert [e.uuid for e in tree.path("I")][:5] == ["I", "H", "G", "F", "B"]
    assert tree.children["B"] == ["S"]
    assert tree.children["F"] == ["G"]


@st.composite
def transcripts(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Records in any order and repeated, with forks, boundaries, segments and names of leaves. No record is its own ancestor."""
    ranks = draw(st.permutations(IDS))
    return list(_records(draw, ranks))


def _records(draw: st.DrawFn, ranks: list[str]) -> Iterator[dict[str, Any]]:
    for uuid in draw(st.lists(st.sampled_from(IDS), max_size=14)):
        above = st.sampled_from(ranks[: ranks.index(uuid)] or ["GONE"])
        if draw(st.integers(0, 4)) == 0:
            yield {"type": "last-prompt", "leafUuid": draw(st.sampled_from([*IDS, "GONE"]))}
        stamp = f"2026-11-30T10:00:{draw(st.integers(0, 9)):02d}.000Z"
        record = {"uuid": uuid, "timestamp": stamp, "isSidechain": draw(st.integers(0, 9)) == 0}
        if draw(st.integers(0, 3)) > 0:
            parent = draw(st.none() | above | above | st.just("GONE"))
            yield {**record, "type": draw(st.sampled_from(["user", "assistant", "attachment"])), "parentUuid": parent}
            continue
        ids = st.sampled_from([*IDS, uuid, "GONE"])
        segment = draw(st.none() | st.fixed_dictionaries(dict.fromkeys(("headUuid", "anchorUuid", "tailUuid"), ids)))
        yield {
            **record,
            "type": "system",
            "subtype": "compact_boundary",
            "parentUuid": None,
            "logicalParentUuid": draw(above),
            "compactMetadata": {} if segment is None else {"preservedSegment": segment},
        }


@given(transcripts(), st.sampled_from(MEASURED))
def test_any_transcript_is_read_as_the_simulator_reads_it(records: list[dict[str, Any]], release: str) -> None:
    """Both say the same leaf and the same branch, each by rules of its own."""
    simulated, tree = branch.Tree(records, parse(release)), tree_of(records, release)
    leaf = resumed_leaf(tree, release)
    assert leaf == simulated.leaf()
    assert [e.uuid for e in tree.path(leaf)] == [record["uuid"] for record in reversed(simulated.walk(leaf))]
    lost = [e.uuid for e in lacking(tree, leaf)]
    assert not set(lost) & {e.uuid for e in tree.path(leaf)}
    assert len(lost) == len(set(lost))
