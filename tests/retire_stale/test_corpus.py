"""Every recorded case of real Claude Code comes out as its `case.json` says, by the library and by the command line."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ccc_plugins.retire_stale.cli import main
from ccc_plugins.retire_stale.evidence.case_dir import judge_case
from ccc_plugins.retire_stale.judgement.entries import texts_of

TESTS = Path(__file__).resolve().parent.parent
CASES = sorted(path.parent for folder in ("corpus", "recordings") for path in (TESTS / folder).glob("*/*/case.json"))


def expected(case: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((case / "case.json").read_bytes())["expect"]
    return found


def prompts(case: Path) -> dict[str, str]:
    """The texts of the transcript's user records by `uuid`."""
    transcript = case / "transcript.jsonl"
    lines = transcript.read_bytes().split(b"\n") if transcript.exists() else []
    records = [json.loads(line) for line in lines if line]
    return {record["uuid"]: " ".join(texts_of(record)) for record in records if record.get("type") == "user" and "uuid" in record}


def test_the_recordings_are_there() -> None:
    """Eight releases, and each situation of the corpus on six of them."""
    assert len({case.parent.name for case in CASES}) == 8
    assert len(CASES) > 200


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_a_recorded_case_is_judged_right(case: Path) -> None:
    """Staleness, idleness and lost prompts are those that the recording expects, where it expects something."""
    judged, expect = judge_case(case), expected(case)
    if expect.get("stale") is not None:
        assert judged.judgement.attribution.verdict == ("stale" if expect["stale"] else "fresh"), judged.judgement.attribution
    if expect.get("busy") is not None:
        assert judged.judgement.idleness.verdict == ("busy" if expect["busy"] else "idle"), judged.judgement.idleness
    if expect.get("lost") is not None:
        texts = prompts(case)
        assert [texts[uuid] for uuid in judged.lost] == expect["lost"]


@pytest.mark.parametrize("written", [0.0, -1.0, 86400.0], ids=["in 1970", "just before", "a day later"])
@pytest.mark.parametrize("name", ["command-taken", "unknown-command"])
def test_when_the_files_were_copied_says_nothing(tmp_path: Path, name: str, written: float) -> None:
    """A case is judged the same whatever times its files have."""
    for case in (case for case in CASES if case.name == name):
        copy = Path(shutil.copytree(case, tmp_path / case.parent.name))
        at = written if written == 0.0 else json.loads((copy / "case.json").read_bytes())["taken"] + written
        os.utime(copy / "stdout.log", (at, at))
        assert judge_case(copy).judgement.idleness == judge_case(case).judgement.idleness


@pytest.mark.parametrize("case", CASES[::17], ids=lambda case: f"{case.parent.name}-{case.name}")
def test_the_command_line_says_the_same(case: Path) -> None:
    """`retire-stale explain --json` prints the library's verdicts, and without `--json` the same in words."""
    judged = judge_case(case)
    done = CliRunner().invoke(main, ["explain", str(case), "--json"])
    report = json.loads(done.stdout)
    assert done.exit_code == 0
    assert report["staleness"]["verdict"] == judged.judgement.attribution.verdict
    assert report["staleness"]["lost"] == list(judged.lost)
    assert [f["uuid"] for f in report["staleness"]["foreign"]] == [f.uuid for f in judged.judgement.attribution.foreign]
    assert report["idleness"]["verdict"] == judged.judgement.idleness.verdict
    assert report["idleness"]["signs"] == list(judged.judgement.idleness.signs)
    words = CliRunner().invoke(main, ["explain", str(case)])
    assert words.exit_code == 0
    assert f"decision: {report['decision']}" in words.stdout


@pytest.mark.parametrize(
    ("content", "said"), [(None, "no case.json"), ("{half", "not JSON"), ("[]", "no JSON object")], ids=["none", "not JSON", "no object"]
)
def test_a_directory_without_a_case_is_one_clear_error(tmp_path: Path, content: str | None, said: str) -> None:
    """One line on standard error that names the directory, nothing on standard output, exit status 2."""
    if content is not None:
        (tmp_path / "case.json").write_text(content)
    done = CliRunner().invoke(main, ["explain", str(tmp_path), "--json"])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert str(tmp_path) in done.stderr
    assert said in done.stderr


def test_a_directory_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    """The same for a path that leads nowhere."""
    done = CliRunner().invoke(main, ["explain", str(tmp_path / "nowhere")])
    assert done.exit_code == 2
    assert "nowhere" in done.stderr
