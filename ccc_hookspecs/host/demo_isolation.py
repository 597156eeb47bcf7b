"""Where the demonstration plays: a home of its own, and for the real Claude Code a network that leads nowhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from ccc_hookspecs.host.demo_stage import NotAsTold
from ccc_hookspecs.host.releases import KNOWS_TERMINALS, is_before

KEY: Final = "sk-ant-demonstration-dummy"
"""A key that is none: only the stand-in on the loopback interface ever gets it."""

REAL: Final = {
    "ANTHROPIC_API_KEY": KEY,
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "IS_SANDBOX": "1",
}
_KEPT: Final = ("PATH", "LANG", "LC_ALL", "TERM", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV")
_UNSHARE: Final = ("unshare", "--map-root-user", "--net", "--", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")


def settle(root: Path) -> None:
    """Make home and project below `root`, and have this process, and all that it starts, live there and know of no other settings."""
    project = root / "project"
    for directory in (project, root / "home" / ".claude"):
        directory.mkdir(parents=True)
    trust = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    onboarded = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "bypassPermissionsModeAccepted": True,
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        "projects": {str(project): trust},
    }
    (root / "home" / ".claude.json").write_text(json.dumps(onboarded), "utf-8")
    kept = {name: os.environ[name] for name in (*_KEPT, *REAL, "ANTHROPIC_BASE_URL") if name in os.environ}
    os.environ.clear()
    os.environ.update(kept, HOME=str(root / "home"))


def play_isolated(claude: str) -> int:
    """Run the demonstration on the real Claude Code in a network namespace with the loopback interface alone; returns its exit code.

    Raises `NotAsTold` where no such namespace can be made: then the real one is not run at all.
    """
    program = shutil.which(claude)
    if program is None:
        raise NotAsTold(f"{claude}: no such program")
    release = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.strip()
    if is_before(release, KNOWS_TERMINALS):
        raise NotAsTold(
            f"{claude} is {release}, and the people in the story see by its registry when a terminal is ready: take 2.1.119 or newer"
        )
    if subprocess.run([*_UNSHARE, "true"], capture_output=True).returncode != 0:
        reason = "no network namespace can be made here, and the real Claude Code is run only where it can reach nothing"
        raise NotAsTold(f"{reason}; leave --claude out to see the story on the simulator")
    environ = {name: os.environ[name] for name in _KEPT if name in os.environ} | REAL
    command = [*_UNSHARE, sys.executable, "-m", "ccc_hookspecs.host.demo", "--inside", os.path.abspath(program)]
    return subprocess.run(command, env=environ).returncode
