"""The record of a live process, `<config>/sessions/<pid>.json`, which Claude Code keeps from 2.1.119 on."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from ccc_hookspecs.processes import start_time
from ccc_hookspecs.testing.simulator.releases import Release


class Registry:
    """This process's record; nothing is written by a release that has none. `status` is `idle` or `busy`."""

    def __init__(self, release: Release, config_dir: Path, cwd: Path, *, entrypoint: str) -> None:
        self.path = config_dir / "sessions" / f"{os.getpid()}.json"
        self._kept = release.has("registry")
        self._with_status = entrypoint == "cli" or release.has("headless_status")
        self._record: dict[str, Any] = {
            "pid": os.getpid(),
            "sessionId": "",
            "cwd": str(cwd),
            "startedAt": _now(),
            "procStart": _proc_start(),
        }
        self._record |= {"version": release.name, "kind": "interactive", "entrypoint": entrypoint}

    def write(self, session_id: str, status: str | None) -> None:
        """Write the record anew; `status` None leaves it out, as while hooks run at the start."""
        if not self._kept:
            return
        self._record["sessionId"] = session_id
        if self._with_status and status is not None:
            self._record |= {"status": status, "updatedAt": _now(), "statusUpdatedAt": _now()}
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = self.path.with_suffix(".tmp")
        part.write_text(json.dumps(self._record))
        part.replace(self.path)

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def _now() -> int:
    return int(time.time() * 1000)


def _proc_start() -> str | None:
    """Field 22 of `/proc/<pid>/stat` on Linux, as Claude Code notes it there; None elsewhere."""
    seconds = start_time(os.getpid()) if os.path.exists("/proc/self/stat") else None
    return None if seconds is None else str(round(seconds * os.sysconf("SC_CLK_TCK")))
