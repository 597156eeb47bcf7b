"""What the simulator writes and prints, against recordings of the real program: field by field, release by release."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.ccc_hookspecs.testing.reading import Record, comparable, fields, kind
from tests.ccc_hookspecs.testing.situations import SITUATIONS, Played, play

pytestmark = pytest.mark.slow

CORPUS = Path(__file__).parents[2] / "corpus"
RELEASES = sorted(path.name for path in CORPUS.iterdir() if path.is_dir())

NEVER_COMPACTED = {("2.1.6", "lone-after-compact"), ("2.1.168", "terminal-compacted"), ("2.1.216", "terminal-compacted")}
"""Recordings in which `/compact` did not go through."""
RECORDED_AS = {("2.1.6", "lone-after-compact"): "lone-background-done"}
"""The recording that goes as far as the situation goes."""

NOT_SIMULATED = frozenset(
    {
        "attachment task_reminder",
        "attachment todo_reminder",
        "attachment total_tokens_reminder",
        "user text meta",
    }
)
"""Kinds that the situations played here do not bring about in every release that wrote them."""

Plays = dict[tuple[str, str], Future[Played]]


@pytest.fixture(scope="module")
def plays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plays]:
    """Every situation of every release, played side by side, as most of it is waiting."""
    root = tmp_path_factory.mktemp("plays")
    with ThreadPoolExecutor(6) as pool:
        yield {(release, name): pool.submit(play, name, release, root) for name in SITUATIONS for release in RELEASES}


def recorded(release: str, name: str, file: str) -> list[Record]:
    path = CORPUS / release / name / file
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.startswith("{")]


def every_situation() -> list[tuple[str, str]]:
    pairs = [(release, name) for release in RELEASES for name in SITUATIONS]
    return [pair for pair in pairs if pair not in NEVER_COMPACTED or pair in RECORDED_AS]


@pytest.mark.parametrize(("release", "name"), every_situation())
def test_the_transcript_is_as_recorded(plays: Plays, release: str, name: str) -> None:
    """The same records in the same order, hanging on each other in the same way, with the same fields."""
    wanted = recorded(release, RECORDED_AS.get((release, name), name), "transcript.jsonl")
    assert comparable(plays[release, name].result().records) == comparable(wanted)


@pytest.mark.parametrize(("release", "name"), every_situation())
def test_stdout_is_as_recorded(plays: Plays, release: str, name: str) -> None:
    """The same events in the same order, with the same fields, ids where the same ids were."""
    wanted = recorded(release, RECORDED_AS.get((release, name), name), "stdout.log")
    assert comparable(plays[release, name].result().events) == comparable(wanted)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("file", ["transcript.jsonl", "stdout.log"])
def test_every_kind_has_the_recorded_fields(plays: Plays, release: str, file: str) -> None:
    """No record or event, trailers included, has fields that no recorded one of its kind has."""
    known = {(kind(record), fields(record)) for path in (CORPUS / release).iterdir() for record in recorded(release, path.name, file)}
    written = {(kind(record), fields(record)) for record in everything(plays, release, file)}
    assert written <= known


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("file", ["transcript.jsonl", "stdout.log"])
def test_every_recorded_kind_is_simulated(plays: Plays, release: str, file: str) -> None:
    """Each kind of record and event in the recordings of these situations comes about here too."""
    wanted = {kind(record) for name in SITUATIONS for record in recorded(release, name, file)}
    assert wanted - {kind(record) for record in everything(plays, release, file)} <= NOT_SIMULATED


def everything(plays: Plays, release: str, file: str) -> list[Record]:
    played = [plays[release, name].result() for name in SITUATIONS if (release, name) in every_situation()]
    return [record for one in played for record in (one.records if file == "transcript.jsonl" else one.events)]
