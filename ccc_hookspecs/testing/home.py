"""A home directory of a test's own, what is read from it, and how a test waits."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

Record: TypeAlias = dict[str, Any]

PATIENCE = 20.0
"""Seconds that a wait takes at most by default."""


class NotSeen(AssertionError):
    """What a test waited for did not come in time."""


def wait_until(condition: Callable[[], object], what: str, timeout: float = PATIENCE, *, every: float = 0.01) -> None:
    """Wait until `condition()` is true, asking `every` so many seconds. Raises NotSeen, naming `what`, after `timeout` seconds."""
    until = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > until:
            raise NotSeen(f"{what}: not within {timeout:g} s")
        time.sleep(every)


def read_jsonl(path: Path) -> list[Record]:
    """The JSON objects in a file, one a line; lines that are none, and a line not finished yet, are left out. No file: no objects."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    return [record for record in map(parse_line, lines) if record is not None]


def parse_line(line: bytes) -> Record | None:
    """The JSON object in a line, None when it holds none."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def recited(answer: str) -> list[str]:
    """The texts in an answer of the form `... SEEN [json list]`. Raises ValueError when it recites nothing."""
    _, found, listed = answer.partition("SEEN ")
    if not found:
        raise ValueError(f"this answer recites nothing: {answer[:80]!r}")
    return [str(text) for text in json.loads(listed)]


@dataclass(frozen=True, slots=True)
class ClaudeHome:
    """A home directory of its own for simulated processes: `root` holds everything, `project` is where they run."""

    root: Path

    @property
    def home(self) -> Path:
        """What `HOME` is for its processes."""
        return self.root / "home"

    @property
    def config_dir(self) -> Path:
        """Where Claude Code keeps its files there: `projects/`, `sessions/`."""
        return self.home / ".claude"

    @property
    def project(self) -> Path:
        """The directory in which its processes run."""
        return self.root / "project"

    def make(self) -> ClaudeHome:
        """Create the directories; returns this value."""
        for directory in (self.config_dir / "projects", self.project):
            directory.mkdir(parents=True, exist_ok=True)
        return self

    def transcript(self, session_id: str) -> Path:
        """Where this session's transcript is, or will be when it runs in `project`."""
        folder = re.sub(r"[^A-Za-z0-9]", "-", os.path.realpath(self.project))
        return self.config_dir / "projects" / folder / f"{session_id}.jsonl"

    def records(self, session_id: str) -> list[Record]:
        """The records of this session's transcript; none when it has no transcript."""
        return read_jsonl(self.transcript(session_id))

    def environ(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """A clean environment for a process that shall live in this home."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        return {**kept, "HOME": str(self.home), "TERM": "xterm-256color", **(extra or {})}
