"""Puts an executable `claude` into a directory, so that a host can be pointed at the simulator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ccc_hookspecs.testing.simulator.releases import NEWEST, parse


def install(directory: Path, *, release: str = NEWEST) -> Path:
    """Write an executable `claude` of this release into `directory`, which is made; returns its absolute path.

    It runs with this interpreter and this interpreter's import path, whatever the caller's environment is. `CCC_SIM_RELEASE`
    overrides the release. Raises ValueError for a release that is not three numbers.
    """
    parse(release)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory.absolute() / "claude"
    draft = path.with_suffix(".draft")
    draft.write_text(script(os.path.realpath(sys.executable), release, path))
    draft.chmod(0o755)
    # A thread that forks right now would keep a file busy that this process has open for writing; `cp` forks nothing.
    subprocess.run(["cp", "-p", str(draft), str(path)], check=True)
    draft.unlink()
    return path


def script(python: str, release: str, path: Path) -> str:
    """The program's text, for this interpreter.

    The kernel cuts a long interpreter line and splits one with spaces; the second form is read by `sh` as a command and by
    Python as a text.
    """
    head = f"#!{python} -IS"
    if len(head) > _LONGEST_LINE or " " in python:
        head = f'#!/bin/sh\n"exec" "{python}" "-IS" "$0" "$@"'
    return _SCRIPT.format(head=head, release=release, program=str(path), path=_import_path())


def _import_path() -> list[str]:
    here = str(Path(__file__).resolve().parents[3])
    return [here, *(entry for entry in sys.path if entry and entry != here)]


_LONGEST_LINE = 120

_SCRIPT = """\
{head}
import os, sys
sys.path[:0] = {path!r}
os.environ.setdefault("CCC_SIM_RELEASE", {release!r})
os.environ["CCC_SIM_PROGRAM"] = {program!r}
from ccc_hookspecs.testing.simulator.__main__ import main
code = main()
sys.stdout.flush()
os._exit(code)
"""
