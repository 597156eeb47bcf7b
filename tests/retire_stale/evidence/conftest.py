"""Real processes that look as a test wants them to, and are always ended and reaped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_UP = "print('up', flush=True)\n"
_WAIT = "sys.stdin.read()\n"
_TAKE_TERMINAL = "import fcntl, termios; fcntl.ioctl(os.open({path!r}, os.O_RDWR), termios.TIOCSCTTY, 0)\n"


class Actors:
    """Starts processes. Each runs a piece of Python, shows any command line, and is up when `start` returns.

    The command line is `name -c <code> arguments...`: for Claude Code `-c` is `--continue`, which names no session.
    """

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[str]] = []
        self._fds: list[int] = []

    def start(
        self, *arguments: str, name: str = "claude", code: str = "", tty: bool = False, cwd: Path | None = None
    ) -> subprocess.Popen[str]:
        """A process of that name that runs `code`, says so, and then waits for the end of its input."""
        before = _TAKE_TERMINAL.format(path=self._terminal()) if tty else ""
        process = subprocess.Popen(
            [name, "-c", f"import os, sys\n{before}{code}\n{_UP}{_WAIT}", *arguments],
            executable=os.path.realpath(sys.executable),
            env={**os.environ, "PYTHONHOME": sys.base_prefix},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd=cwd,
        )
        self._processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        return process

    def _terminal(self) -> str:
        master, slave = os.openpty()
        self._fds += [master, slave]
        return os.ttyname(slave)

    def end(self) -> None:
        """End and reap all."""
        for process in self._processes:
            self._end(process)
        for fd in self._fds:
            os.close(fd)

    @staticmethod
    def _end(process: subprocess.Popen[str]) -> None:
        """At the end of its input it ends by itself and takes along what it started."""
        process.send_signal(signal.SIGCONT)
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate(timeout=20)


@pytest.fixture
def actors() -> Iterator[Actors]:
    """Processes for one test."""
    cast = Actors()
    yield cast
    cast.end()
