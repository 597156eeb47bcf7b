"""Simulated `claude` processes as a host starts them. The fixtures of `ccc_hookspecs.testing.fixtures` use it.

Nothing here imports pytest, so a demonstration or a benchmark can use it too.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ccc_hookspecs.testing.handles import SimulatedHeadless, SimulatedProcess, SimulatedTerminal, as_history
from ccc_hookspecs.testing.home import PATIENCE, ClaudeHome, NotSeen, Record, read_jsonl, recited, wait_until
from ccc_hookspecs.testing.simulator import NEWEST, install
from ccc_hookspecs.testing.simulator.releases import parse

__all__ = [
    "PATIENCE",
    "ClaudeHome",
    "NotSeen",
    "Record",
    "SimulatedHeadless",
    "SimulatedProcess",
    "SimulatedTerminal",
    "Simulator",
    "as_history",
    "read_jsonl",
    "recited",
    "simulated",
    "wait_until",
]


class Simulator:
    """Starts simulated processes in one home and ends them all with `close`."""

    def __init__(self, home: ClaudeHome, *, release: str = NEWEST) -> None:
        self.home = home.make()
        self.release = release
        self._started: list[SimulatedProcess] = []
        self._number = 0

    def program(self, release: str | None = None) -> Path:
        """An executable `claude` of this release, for a host that starts its own processes."""
        release = release or self.release
        path = self.home.root / "bin" / release / "claude"
        return path if path.exists() else install(path.parent, release=release)

    def headless(
        self,
        session_id: str | None = None,
        *,
        release: str | None = None,
        arguments: Sequence[str] = ("--dangerously-skip-permissions",),
        environ: Mapping[str, str] | None = None,
    ) -> SimulatedHeadless:
        """Spawn a headless: it resumes the session when that has a transcript, else begins it under this id (a new one when None)."""
        session_id = session_id or str(uuid.uuid4())
        transcript = self.home.transcript(session_id)
        resumed = transcript.exists()
        base = self._path("head")
        fifo, log = base.with_suffix(".fifo"), base.with_suffix(".log")
        os.mkfifo(fifo, 0o600)
        command = [str(self.program(release)), "-p", "--verbose", "--resume" if resumed else "--session-id", session_id]
        command += ["--input-format", "stream-json", "--output-format", "stream-json", *arguments]
        reader = os.open(fifo, os.O_RDWR | os.O_CLOEXEC)
        try:
            with log.open("wb") as output:
                spawned_at = time.time()
                process = self._popen(command, base, environ, stdin=reader, stdout=output, stderr=subprocess.STDOUT)
            writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        finally:
            os.close(reader)
        head = SimulatedHeadless(
            process=process,
            home=self.home,
            session_id=session_id,
            status=base.with_suffix(".status"),
            release=parse(release or self.release),
            fifo=fifo,
            log=log,
            writer=writer,
            spawned_at=spawned_at,
            resumed=resumed,
            transcript_size=transcript.stat().st_size if resumed else None,
            config_dir=Path(environ["CLAUDE_CONFIG_DIR"]) if environ and environ.get("CLAUDE_CONFIG_DIR") else None,
        )
        self._started.append(head)
        return head

    def terminal(
        self, session_id: str, *, release: str | None = None, environ: Mapping[str, str] | None = None, wait: bool = True
    ) -> SimulatedTerminal:
        """Open a terminal on a session that has a transcript; `wait`: return only when it has loaded the session."""
        base = self._path("terminal")
        master, slave = os.openpty()
        os.set_blocking(master, False)
        try:
            command = [str(self.program(release)), "--resume", session_id]
            process = self._popen(command, base, environ, stdin=slave, stdout=slave, stderr=slave)
        finally:
            os.close(slave)
        terminal = SimulatedTerminal(
            process=process,
            home=self.home,
            session_id=session_id,
            status=base.with_suffix(".status"),
            release=parse(release or self.release),
            master=master,
        )
        self._started.append(terminal)
        if wait:
            terminal.wait_idle()
        return terminal

    def one_shot(self, session_id: str, text: str, *, release: str | None = None, environ: Mapping[str, str] | None = None) -> str:
        """Run `claude -p --resume SESSION TEXT` to its end; returns what it printed. Raises CalledProcessError."""
        command = [str(self.program(release)), "-p", "--resume", session_id, text]
        done = subprocess.run(
            command,
            cwd=self.home.project,
            env=self.home.environ(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        )
        return done.stdout.strip()

    def close(self) -> None:
        """End every process that was started here, the newest first."""
        while self._started:
            self._started.pop().close()

    def _path(self, kind: str) -> Path:
        self._number += 1
        return self.home.root / f"{kind}-{self._number}"

    def _popen(self, command: Sequence[str], base: Path, environ: Mapping[str, str] | None, **streams: Any) -> subprocess.Popen[bytes]:
        extra = {"CCC_SIM_STATUS_FILE": str(base.with_suffix(".status")), **(environ or {})}
        return subprocess.Popen(command, cwd=self.home.project, env=self.home.environ(extra), start_new_session=True, **streams)


@contextlib.contextmanager
def simulated(home: ClaudeHome, *, release: str = NEWEST) -> Iterator[Simulator]:
    """A simulator whose processes are all gone when the block is left."""
    simulator = Simulator(home, release=release)
    try:
        yield simulator
    finally:
        simulator.close()
