"""The demonstration happens as it is told."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

from ccc_hookspecs.host import demo, demo_isolation
from ccc_hookspecs.host.demo import _forks, _shortened


def test_it_happens_as_told(tmp_path: Path) -> None:
    """Every act ends as it says, each mechanism does its own part, and nothing is left behind, whoever's settings there are."""
    (tmp_path / "plugins.toml").write_text('[plugins]\n"retire_stale.watcher" = false\n')
    environ = {**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path), "CCC_PLUGINS_FILE": str(tmp_path / "plugins.toml")}
    done = subprocess.run([sys.executable, "-m", "ccc_hookspecs.host.demo"], capture_output=True, text=True, env=environ, timeout=110)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "\nAs told" in done.stdout
    before, *acts = re.split(r"\n\n(?=With retire_stale)", done.stdout)
    assert "The dog is out of the conversation for good" in before
    assert "*" not in before
    # A hold is told again when it waits for something else, as it may between the end of a turn and that of its record in the registry.
    says = [[told for told, _ in groupby(re.findall(r"\* (\w+), says (\S+):", act))] for act in acts]
    assert says == [
        [("retired", "retire_stale.use_time"), ("respawned", "retire_stale.use_time")],
        [("held", "retire_stale.use_time"), ("healed", "retire_stale.use_time")],
        [("retired", "retire_stale.terminal_launch")],
        [("retired", "retire_stale.watcher")],
    ]
    assert not list(tmp_path.glob("ccc-demo-*"))


def test_the_real_one_is_not_run_where_it_could_reach_something(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a namespace of its own it is not started at all, and the line says what to do."""
    monkeypatch.setattr(demo_isolation, "_UNSHARE", ("false",))
    assert demo.run("true") == 1
    assert "leave --claude out" in capsys.readouterr().err
    assert demo.run("no-such-program-anywhere") == 1
    assert "no such program" in capsys.readouterr().err


def test_a_catch_up_is_shown_by_what_people_said() -> None:
    answer = 'SEEN ["first", "<ccc-catch-up turns=\\"x\\">\\nlong words\\n[user] dog\\n[assistant] woof\\n</ccc-catch-up>", "last"]'
    assert _shortened(answer) == 'SEEN ["first", (given back: ["dog"]), "last"]'
    assert _shortened("nothing recited") == "nothing recited"


def test_a_fork_is_told_by_the_prompts_below_one_message() -> None:
    """Records between that are no messages do not hide it; a straight line has none."""

    def said(uuid: str, parent: str | None, text: str, kind: str = "user") -> dict[str, object]:
        return {"type": kind, "uuid": uuid, "parentUuid": parent, "message": {"content": text}}

    line = [said("u1", None, "one"), said("a1", "u1", "x", "assistant"), said("u2", "a1", "two")]
    between = {"type": "attachment", "uuid": "t1", "parentUuid": "a1"}
    assert _forks(line) == []
    assert _forks([*line, between, said("u3", "t1", "three")]) == [["two", "three"]]
