"""Which branch `--resume` reads, in transcripts that were put before every release to find out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ccc_hookspecs.testing.simulator import MEASURED, branch
from ccc_hookspecs.testing.simulator.releases import parse

STAMPS = ("2.0.42", "2.1.6", "2.1.61")
"""Releases that go by the latest stamp."""
PROMPTS = ("2.1.168", "2.1.216", "2.1.275", "2.1.332")
"""Releases that heed `last-prompt`."""
LATER = ("2.1.119", *PROMPTS)
FORK = "u A -, a B A, u X1 B, a X2 X1, u Y1 B, a Y2 Y1"
COMPACTED = "u A -, a B A, b C B, c S C, u T S, a V T"
FROM_HERE = "u A -, a B A, u F B, a G F, u H G, a I H, b C B A:C:B, c S C, u T S, a V T"
"""Summarized from F on: A and B are kept, and read behind the boundary."""
UP_TO_HERE = "u A -, a B A, u F B, a G F, u H G, a I H, b C I H:S:I, c S C, u T I, a V T"
"""Summarized up to H: H and I are kept, and read behind the summary."""

# One letter says what a record is (u prompt, a answer, t attachment, d turn duration, m echo, p progress, s side chain, c summary),
# then come its name, its parent and, when it is not the record's place, its stamp; `lp` is a `last-prompt` that names a record, `b` a
# compaction boundary with its logical parent and the segment that it preserves, HEAD:ANCHOR:TAIL.
MADE: dict[str, tuple[str, dict[tuple[str, ...], list[str]]]] = {
    "plain fork": (FORK, {MEASURED: ["A", "Y1"]}),
    "the other branch has later stamps": (
        "u A -, a B A, u X1 B 9, a X2 X1 10, u Y1 B 5, a Y2 Y1 6",
        {STAMPS: ["A", "X1"], ("2.1.119", *PROMPTS): ["A", "Y1"]},
    ),
    "equal stamps": (
        "u A - 0, a B A 1, u X1 B 2, a X2 X1 9, u Y1 B 2, a Y2 Y1 9",
        {STAMPS: ["A", "X1"], ("2.1.119", *PROMPTS): ["A", "Y1"]},
    ),
    "an attachment is the latest": (
        "u A -, a B A, u X1 B, a X2 X1, t T X2 50, u Y1 B 10, a Y2 Y1 11",
        {STAMPS: ["A", "X1"], ("2.1.119", *PROMPTS): ["A", "Y1"]},
    ),
    "prompt of the one that forked": (FORK + ", lp B", {MEASURED: ["A", "Y1"]}),
    "prompt of the other branch": (FORK + ", lp X2", {(*STAMPS, "2.1.119"): ["A", "Y1"], PROMPTS: ["A", "X1"]}),
    "prompt of the other branch, before this one": (
        "u A -, a B A, u X1 B, a X2 X1, lp X2, u Y1 B, a Y2 Y1",
        {(*STAMPS, "2.1.119"): ["A", "Y1"], PROMPTS: ["A", "X1"]},
    ),
    "prompt of the other branch, then this one goes on": (
        FORK + ", lp X2, d D Y2",
        {(*STAMPS, "2.1.119"): ["A", "Y1"], PROMPTS: ["A", "X1"]},
    ),
    "prompt within the other branch": (
        "u A -, a B A, u X1 B, a X2 X1, u X3 X2, a X4 X3, u Y1 B, a Y2 Y1, lp X2",
        {(*STAMPS, "2.1.119"): ["A", "Y1"], PROMPTS: ["A", "X1"]},
    ),
    "two prompts": (FORK + ", lp X2, lp Y2", {MEASURED: ["A", "Y1"]}),
    "prompt of nothing": (FORK + ", lp GONE", {MEASURED: ["A", "Y1"]}),
    "prompt of an ancestor": ("u A -, a B A, u X1 B, a X2 X1, lp B", {MEASURED: ["A", "X1"]}),
    "an attachment at the end": (FORK + ", t T X2", {MEASURED: ["A", "X1"]}),
    "a turn's duration at the end": (FORK + ", d D X2", {MEASURED: ["A", "X1"]}),
    "an echo at the end": (FORK + ", m M X2", {MEASURED: ["A", "X1"]}),
    "progress at the end": (
        FORK + ", p P X2",
        {("2.1.61",): ["A", "X1"], ("2.0.42", "2.1.6", "2.1.119", *PROMPTS): ["A", "Y1"]},
    ),
    "a side chain at the end": (FORK + ", s S X2", {MEASURED: ["A", "Y1"]}),
    "a prompt without an answer at the end": ("u A -, a B A, u Y1 B, a Y2 Y1, u X1 B", {MEASURED: ["A", "X1"]}),
    "a parent that was never written": (
        "u A -, a B A, u X1 GONE, a X2 X1",
        {STAMPS: ["X1"], ("2.1.119", *PROMPTS): ["A", "X1"]},
    ),
    "two roots": ("u A -, a B A, u X1 -, a X2 X1", {MEASURED: ["X1"]}),
    "one turn of a fork fed again below the other": (FORK + ", u X1 Y2, a X2 X1", {MEASURED: ["A", "Y1", "X1"]}),
    "the same, then a turn": (FORK + ", u X1 Y2, a X2 X1, u Z1 X2, a Z2 Z1", {MEASURED: ["A", "Y1", "X1", "Z1"]}),
    "only its prompt fed again, the other named before": (FORK + ", lp Y2, u X1 Y2", {MEASURED: ["A", "Y1", "X1"]}),
    "compacted": (COMPACTED, {MEASURED: ["S", "T"]}),
    "compacted, prompt of what stood before": (COMPACTED + ", lp B", {(*STAMPS, "2.1.119"): ["S", "T"], PROMPTS: ["A"]}),
    "compacted, both prompts": (COMPACTED + ", lp V, lp B", {(*STAMPS, "2.1.119"): ["S", "T"], PROMPTS: ["A"]}),
    "compacted, then healed": (
        COMPACTED + ", c S B, u T S, a V T, u Z V, a W Z, lp W",
        {MEASURED: ["A", "S", "T", "Z"]},
    ),
    "summarized from here": (FROM_HERE, {STAMPS: ["S", "T"], LATER: ["A", "S", "T"]}),
    "summarized from here, prompt of what was dropped": (FROM_HERE + ", lp I", {STAMPS: ["S", "T"], LATER: ["A", "S", "T"]}),
    "summarized from here, prompt of what was kept": (FROM_HERE + ", lp B", {STAMPS: ["S", "T"], LATER: ["A", "S", "T"]}),
    "summarized from here, both prompts": (FROM_HERE + ", lp V, lp I", {STAMPS: ["S", "T"], LATER: ["A", "S", "T"]}),
    "summarized from here, a turn below what was dropped": (
        FROM_HERE + ", u P I, a Q P",
        {STAMPS: ["A", "F", "H", "P"], ("2.1.119",): ["A", "S", "T", "P"], PROMPTS: ["A", "P"]},
    ),
    "summarized from here, such a turn, prompt of the summarized": (
        FROM_HERE + ", u P I, a Q P, lp V",
        {STAMPS: ["A", "F", "H", "P"], ("2.1.119",): ["A", "S", "T", "P"], PROMPTS: ["A", "S", "T"]},
    ),
    "summarized from here, a turn below what was kept": (FROM_HERE + ", u P B, a Q P", {MEASURED: ["A", "P"]}),
    "summarized from here, then healed": (
        FROM_HERE + ", c S I, u T S, a V T, u Z V, a W Z, lp W",
        {STAMPS: ["A", "F", "H", "S", "T", "Z"], ("2.1.119",): ["S", "T", "Z"], PROMPTS: ["A", "S", "T", "Z"]},
    ),
    "summarized from here, then compacted, prompt of the summarized": (
        FROM_HERE + ", b D V, c E D, u K E, a L K, lp V",
        {MEASURED: ["E", "K"]},
    ),
    "summarized from here twice": (
        "u A -, a B A, u F B, a G F, b C B A:C:B, c S C, u T S, a V T, b D V S:D:V, c E D, u K E, a L K",
        {STAMPS: ["E", "K"], LATER: ["S", "T", "E", "K"]},
    ),
    "summarized from here after a compaction": (
        "u A -, a B A, b D B, c E D, u F E, a G F, u H G, a I H, b C G E:C:G, c S C, u T S, a V T",
        {STAMPS: ["S", "T"], LATER: ["E", "F", "S", "T"]},
    ),
    "summarized from here, the segment broken": (
        "u A -, a B A, u F B, a G F, b C B GONE:C:B, c S C, u T S, a V T, lp G",
        {(*STAMPS, "2.1.119"): ["S", "T"], PROMPTS: ["A", "F"]},
    ),
    "summarized up to here": (UP_TO_HERE, {STAMPS: ["A", "F", "H", "T"], LATER: ["S", "H", "T"]}),
    "summarized up to here, prompt of what was dropped": (
        UP_TO_HERE + ", lp G",
        {STAMPS: ["A", "F", "H", "T"], LATER: ["S", "H", "T"]},
    ),
}
CASES = [
    pytest.param(records, release, memory, id=f"{name} [{release}]")
    for name, (records, answers) in MADE.items()
    for releases, memory in answers.items()
    for release in releases
]


@pytest.mark.parametrize(("records", "release", "memory"), CASES)
def test_resume_reads_the_branch_that_the_release_read(tmp_path: Path, records: str, release: str, memory: list[str]) -> None:
    """The texts that the simulator loads are those that the real program recited."""
    path = tmp_path / "transcript.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in made(records)))
    assert list(branch.load(path, parse(release)).memory) == memory


FED = "u A -, a B A, u X1 B, a X2 X1"


@pytest.mark.parametrize("release", MEASURED)
@pytest.mark.parametrize(
    ("records", "before", "later"),
    [
        (FED + ", lp X1", "X2", "X2"),
        (FED + ", u X1 B", "X1", "X1"),
        (FED + ", u X1 B, lp X1", "X1", "X1"),
        (FED + ", lp X2, u X1 B", "X1", "X2"),
        (FED + ", u X1 B, a X2 X1, lp X2", "X2", "X2"),
    ],
)
def test_a_record_stands_where_its_last_copy_stands(tmp_path: Path, release: str, records: str, before: str, later: str) -> None:
    """A prompt that was fed again is behind its own answer; a `last-prompt` of that answer (from 2.1.168 on) leads there still."""
    path = tmp_path / "transcript.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in made(records)))
    assert branch.load(path, parse(release)).leaf == (later if release in PROMPTS else before)


def test_every_release_is_asked_about_every_transcript() -> None:
    """No measured release is missing from the table."""
    assert all(sorted(one for releases in answers for one in releases) == sorted(MEASURED) for _, answers in MADE.values())


def test_lines_that_are_no_records_are_skipped(tmp_path: Path) -> None:
    """A transcript with a torn line is read as if the line were not there."""
    path = tmp_path / "transcript.jsonl"
    path.write_text(json.dumps(next(iter(made("u A -")))) + '\n[1]\n{"type":"user","uu')
    assert branch.load(path, parse("2.1.332")).memory == ("A",)


def made(records: str) -> list[dict[str, Any]]:
    return [_made(place, *words.split()) for place, words in enumerate(records.split(", "))]


def _made(place: int, what: str, name: str, parent: str = "-", stamp: str | None = None) -> dict[str, Any]:
    if what == "lp":
        return {"type": "last-prompt", "lastPrompt": "x", "leafUuid": name}
    if what == "b":
        return _boundary(place, name, parent, stamp)
    seconds = place if stamp is None else int(stamp)
    ids = {"uuid": name, "parentUuid": None if parent == "-" else parent}
    return {"isSidechain": what == "s", "timestamp": _stamp(seconds), **ids, **_body(what, name)}


def _boundary(place: int, name: str, logical: str, segment: str | None) -> dict[str, Any]:
    metadata: dict[str, Any] = {"trigger": "manual"}
    if segment is not None:
        metadata["preservedSegment"] = dict(zip(("headUuid", "anchorUuid", "tailUuid"), segment.split(":"), strict=True))
    ids = {"uuid": name, "parentUuid": None, "logicalParentUuid": logical}
    return {"type": "system", "subtype": "compact_boundary", "timestamp": _stamp(place), **ids, "compactMetadata": metadata}


def _stamp(seconds: int) -> str:
    return f"2026-11-30T10:00:{seconds:02d}.000Z"


def _body(what: str, name: str) -> dict[str, Any]:
    match what:
        case "u" | "s":
            return {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": name}]}}
        case "c":
            return {"type": "user", "isCompactSummary": True, "message": {"role": "user", "content": name}}
        case "m":
            return {"type": "user", "isMeta": True, "message": {"role": "user", "content": "<local-command-caveat>"}}
        case "a":
            return {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": name}]}}
    return {"type": {"t": "attachment", "d": "system", "p": "progress"}[what]}
