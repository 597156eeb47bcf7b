"""What CCC's own checks cost on the same files: run by `judgement.py --peer` in a process of its own, with a clean HOME.

Reads a job (JSON) from its input: `log`, `session`, `pid`, `ids` (the inputs sent), `rounds`, and `checkout`, the folder that holds
CCC's `server.py`. Prints, for each check, its seconds.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any


def measured(call: Callable[[], object], rounds: int) -> list[float]:
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return seconds


def main() -> None:
    job: dict[str, Any] = json.load(sys.stdin)
    sys.path.insert(0, job["checkout"])
    with contextlib.redirect_stdout(sys.stderr):
        server = importlib.import_module("server")
        entry = {"pid": job["pid"], "log": job["log"], "resumed_sid": job["session"], "engine": "claude", "input_command_uuids": job["ids"]}
        rounds = job["rounds"]
        result = {
            "busy check": measured(lambda: server._headless_turn_in_progress(entry), rounds),
            "watermark": measured(lambda: server._update_spawn_transcript_watermark(entry, job["session"]), rounds),
            "stale check": measured(lambda: server._headless_spawn_is_stale(entry, job["session"]), rounds),
            "tool check": measured(lambda: server._spawn_entry_active_tool_child(entry), rounds),
        }
        stale = server._headless_spawn_is_stale(entry, job["session"])
        entry["_transcript_watermark"] = (1, "another record", server._headless_log_result_count(entry))
        result["stale check, tail moved"] = measured(lambda: server._headless_spawn_is_stale(dict(entry), job["session"]), rounds)
    json.dump({"seconds": result, "verdict": "stale" if stale else "current"}, sys.stdout)


if __name__ == "__main__":
    main()
