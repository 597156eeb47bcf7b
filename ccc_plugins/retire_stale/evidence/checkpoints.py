"""Evidence kept between restarts, so that hundreds of megabytes need not be read again. A pure cache.

A checkpoint is used for the same process and the same files only, is checked against them, and is ignored when anything about it is
not as it was written: then everything is read anew, with the same result. It holds ids and counts, no conversation text.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from ccc_hookspecs.claude import jsonl
from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.evidence.state_codec import decode, encode

log = logging.getLogger(__name__)


class Checkpoints:
    """The checkpoints in one directory, which is made when needed.

    `every`: bytes that an observer reads until it is worth another checkpoint. `largest`: bytes one may have, a larger one is not
    written. `kept`: how many stay, the newest, in at most `room` bytes together. Safe to use from several threads and processes: what
    two write at once, each with its own content, is whole either way.
    """

    def __init__(self, directory: Path, *, every: int = 16 << 20, largest: int = 8 << 20, kept: int = 256, room: int = 64 << 20) -> None:
        self.every = every
        self._directory = directory
        self._largest = largest
        self._kept = kept
        self._room = room

    def load(self, headless: Headless) -> Any:
        """What `save` was given for this process; None when there is nothing, or nothing whole and of this version."""
        path = self._path(headless)
        if path is None:
            return None
        try:
            with path.open("rb") as file:
                head, _, body = file.read(self._largest + 4096).partition(b"\n")
            return decode(json.loads(body)) if head == _head(headless, body) else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, RecursionError) as error:
            log.debug("checkpoint of %s ignored: %s", headless.session_id, type(error).__name__)
            return None

    def save(self, headless: Headless, state: object) -> None:
        """Keep `state`, in place of what was kept for this process. That it cannot be kept is logged and no error."""
        path = self._path(headless)
        if path is None:
            return
        try:
            body = json.dumps(encode(state), separators=(",", ":")).encode()
            if len(body) <= self._largest:
                self._write(path, _head(headless, body) + b"\n" + body)
                self._prune()
        except (OSError, TypeError, ValueError, RecursionError) as error:
            log.debug("no checkpoint of %s: %s", headless.session_id, type(error).__name__)

    def drop(self, headless: Headless) -> None:
        """The process is gone."""
        path = self._path(headless)
        if path is not None:
            with contextlib.suppress(OSError):
                path.unlink()

    def _path(self, headless: Headless) -> Path | None:
        """A process without a known start time has no identity, and no checkpoint."""
        if headless.start_time is None:
            return None
        return self._directory / f"{headless.session_id.lower()}-{headless.pid}-{headless.start_time:.2f}.json"

    def _write(self, path: Path, content: bytes) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd, name = tempfile.mkstemp(dir=self._directory, suffix=".new")  # only its owner may read it
        try:
            with open(fd, "wb") as file:
                file.write(content)
            os.replace(name, path)
        except OSError:
            os.unlink(name)
            raise

    def _prune(self) -> None:
        """Remove the oldest, what a writer left half done among them, until the rest is few and small enough."""
        ours = [(entry.stat(), entry.path) for entry in os.scandir(self._directory) if entry.name.endswith((".json", ".new"))]
        room = self._room
        for number, (seen, path) in enumerate(sorted(ours, key=lambda e: e[0].st_mtime_ns, reverse=True)):
            room -= seen.st_size
            if number >= self._kept or room < 0:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)


def _head(headless: Headless, body: bytes) -> bytes:
    """What must be the same for a checkpoint to be used: the program, what anchors the headless, and the body itself."""
    anchors = (headless.session_id, headless.pid, headless.start_time, str(headless.stdout_log), headless.resumed, headless.transcript_size)
    return json.dumps([_program(), *anchors, sha256(body).hexdigest()], separators=(",", ":")).encode()


@cache
def _program() -> str:
    """Tells this version of the code that reads and judges from any other: what another one concluded is not taken over."""
    here = Path(__file__).parent
    folders = (here, here.parent / "judgement", Path(jsonl.__file__).parent)
    files = sorted((entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for folder in folders for entry in os.scandir(folder))
    return sha256(repr([f for f in files if f[0].endswith(".py")]).encode()).hexdigest()
