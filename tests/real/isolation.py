"""Running the real Claude Code where it can reach nothing: in a network namespace that has the loopback interface alone.

It has a clean environment, a home of its own and a key that is none; the Messages API is the stand-in on the loopback
interface. Where no such namespace can be made, it is not run at all.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.real.releases import program

ROOT = Path(__file__).parents[2]
PORT = 8099
KEY = "sk-ant-test-dummy"
END_SECONDS = 20.0


@functools.cache
def unshare() -> tuple[str, ...]:
    """The command that gives a program a network of its own; empty when this machine does not let us."""
    for flags in ("-n",) if os.geteuid() == 0 else ("-rn",):
        command = ("unshare", flags, "--")
        with suppress(OSError, subprocess.SubprocessError):
            if subprocess.run([*command, "true"], capture_output=True, timeout=20, check=False).returncode == 0:
                return command
    return ()


def unavailable(release: str) -> str | None:
    """Why stories cannot be played with a release here; None when they can."""
    if not unshare():
        return "no network namespace can be made here"
    if shutil.which("tmux") is None:
        return "tmux is not here"
    return None if program(release).exists() else f"Claude Code {release} is not in {program(release).parents[2]}: run .ci/claude"


def environment(home: Path) -> dict[str, str]:
    """All that a program in the namespace gets to know."""
    return {
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{PORT}",
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "IS_SANDBOX": "1",
    }


class Isolated:
    """A module of ours that runs in a namespace of its own, and prints one JSON value a line. `directory` is its alone, and short."""

    def __init__(self, directory: Path, module: str, arguments: Sequence[str]) -> None:
        self.directory = directory
        self.output = directory / "output"
        self.errors = directory / "errors"
        with self.output.open("wb") as output, self.errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [*unshare(), sys.executable, "-m", "tests.real.inside", module, *arguments],
                cwd=ROOT,
                env=environment(directory),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )

    def values(self) -> Iterator[dict[str, Any]]:
        """What it printed so far, and no half line."""
        for line in self.output.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                yield json.loads(line)

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def wait(self, seconds: float) -> bool:
        """Wait for its end; False when it does not end in that time."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return not self.running

    def close(self) -> None:
        """End it and everything in it. Harmless when repeated."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.running:
                self._process.send_signal(number)
                self.wait(END_SECONDS)

    @classmethod
    def times(cls, module: str, arguments: Sequence[str], times: int, seconds_each: float) -> list[dict[str, Any]]:
        """What a module prints that does something so many times. Raises `SystemExit` when it did not do it as often."""
        with tempfile.TemporaryDirectory(prefix="t") as folder:
            isolated = cls(Path(folder), module, [*arguments, "--times", str(times)])
            try:
                isolated.wait(times * seconds_each)
            finally:
                isolated.close()
            values = list(isolated.values())
            if len(values) < times:
                raise SystemExit(f"only {len(values)} of {times} times: {isolated.complaint()}")
        return values

    def complaint(self) -> str:
        """The end of what it said on its standard error."""
        return self.errors.read_text(encoding="utf-8", errors="replace")[-2000:]
