"""Starting the stand-in's headless processes, and finding them again."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

FAKE_CLAUDE = Path(__file__).with_name("fake_claude.py")

started: list[subprocess.Popen[bytes]] = []
"""Every process that was started, for the tests to end."""


class Reattached:
    """A process that was found again after a restart."""

    stdin = None

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        """None while it runs; a zombie has ended."""
        stat = Path(f"/proc/{self.pid}/stat")
        return None if stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "ZX" else -1


def start(kind: str, *, logs: Path, fifos: Path, environment: dict[str, str]) -> dict[str, Any]:
    """A process on a FIFO that it holds open itself, with its stdout in a log; the row that CCC makes of it."""
    stamp = time.strftime("%Y%m%dT%H%M%S")
    for folder in (logs, fifos):
        folder.mkdir(parents=True, exist_ok=True)
    log = logs / f"{kind}-{uuid.uuid4().hex[:8]}-{stamp}.log"
    fifo = fifos / f"{log.name}.stdin"
    os.mkfifo(fifo, 0o600)
    stdin = os.open(fifo, os.O_RDWR | os.O_CLOEXEC)
    with open(log, "w") as out:
        proc = subprocess.Popen([sys.executable, str(FAKE_CLAUDE)], stdin=stdin, stdout=out, env=environment, start_new_session=True)
    started.append(proc)
    writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.close(stdin)
    row = {"pid": proc.pid, "name": log.name, "log": str(log), "started": stamp, "proc": proc}
    return row | {"fifo": str(fifo), "stdin_fd": writer, "log_fh": None}
