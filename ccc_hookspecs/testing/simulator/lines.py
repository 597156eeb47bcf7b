"""What every line that the simulator writes is made of: ids, stamps, JSON, and the text of a message."""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from pathlib import Path
from typing import Any, TypeAlias

Record: TypeAlias = dict[str, Any]


def new_id() -> str:
    return str(uuid.uuid4())


def stamp(at: float | None = None) -> str:
    """A time as Claude Code writes it: UTC, milliseconds, `Z`. `at` is seconds since the epoch, now when None."""
    at = time.time() if at is None else at
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at * 1000) % 1000:03d}Z"


def line_of(record: Record) -> bytes:
    """A line as JSON.stringify makes it: UTF-8, with half a surrogate pair, and nothing else, escaped."""
    text = json.dumps(record, separators=(",", ":"), ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text).encode() + b"\n"


def project_dir(config_dir: Path, cwd: Path) -> Path:
    """Where the transcripts of sessions in `cwd` are: its real path with everything but letters and digits made a hyphen."""
    return config_dir / "projects" / re.sub(r"[^A-Za-z0-9]", "-", os.path.realpath(cwd))


def joined(content: Any) -> str:
    """The text of a message's content, its blocks a line each."""
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content if isinstance(block, dict))
