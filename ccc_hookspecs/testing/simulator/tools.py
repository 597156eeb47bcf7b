"""Commands that the simulator really runs, each in a session of its own as Claude Code starts them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from ccc_hookspecs.testing.simulator.inbox import left


@dataclass(slots=True)
class Subagent:
    """A subagent that works beside the turn until a monotonic time; it has no process of its own."""

    prompt: str
    until: float
    tool_use_id: str
    task_id: str
    kind: str = "local_agent"

    def done(self) -> bool:
        return left(self.until) <= 0

    def kill(self) -> None:
        self.until = 0.0


@dataclass(slots=True)
class Command:
    """One running command. `task_id` names it in task events, `tool_use_id` is the call that started it."""

    process: subprocess.Popen[bytes]
    output: IO[bytes]
    tool_use_id: str
    task_id: str = field(default_factory=lambda: "b" + uuid.uuid4().hex[:8])
    kind: str = "local_bash"

    def done(self) -> bool:
        return self.process.poll() is not None

    @property
    def exit_code(self) -> int:
        return self.process.wait()

    def read(self) -> str:
        """What it printed so far."""
        self.output.seek(0)
        return self.output.read().decode("utf-8", "replace").rstrip("\n")

    def kill(self) -> None:
        """End it and everything in its process group; harmless when it is gone."""
        if self.done():
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def run(command: str, cwd: Path, tool_use_id: str) -> Command:
    """Start a shell command; its output is kept in an unnamed file."""
    output = tempfile.TemporaryFile()  # noqa: SIM115 - read for as long as the command lives
    process = subprocess.Popen(
        ["/bin/sh", "-c", command], cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
    )
    return Command(process, output, tool_use_id)
