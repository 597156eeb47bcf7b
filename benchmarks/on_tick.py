"""What a whole tick of the watcher costs: 1,000 headless agents and 50 terminals, real processes, with registry records and logs.

    python -m benchmarks.on_tick [--headless N] [--terminals N] [--limit MILLISECONDS]

Half of the terminals are on the session of a headless, which is busy, so that every tick judges it. Prints the median CPU time of a
tick of `retire_stale.watcher` and of `retire_stale.terminal_launch`, and exits with 1 when both together cost more than the limit.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from benchmarks.tick_processes import SETTLE_SECONDS, milliseconds, options_and_sessions, waiting_processes
from ccc_hookspecs.processes import start_time
from ccc_hookspecs.values import Headless, Tick
from ccc_plugins.retire_stale.mechanisms import terminal_launch, watcher


class Agents:
    """A host that knows these headless agents and nothing else."""

    def __init__(self, root: Path, agents: Sequence[Headless]) -> None:
        self.state_dir = root / "state"
        self.state_dir.mkdir(mode=0o700)
        self._config_dir = root / "config"
        self._agents = agents

    def headless_agents(self) -> Sequence[Headless]:
        return self._agents

    def headless_for(self, session_id: str) -> Headless | None:
        return next((agent for agent in self._agents if agent.session_id == session_id), None)

    def session_lock(self, session_id: str, timeout: float) -> AbstractContextManager[None]:
        return nullcontext()

    def write(self, headless: Headless, line: bytes) -> None:
        raise AssertionError(f"process {headless.pid} is busy and was given something")

    def released(self, headless: Headless) -> None:
        raise AssertionError(f"process {headless.pid} is busy and was released")

    def config_dir(self, headless: Headless) -> Path:
        return self._config_dir


def made_agents(root: Path, sessions: Sequence[str], pids: Sequence[int]) -> list[Headless]:
    """A headless in the middle of a turn for each session, with the files that it would have."""
    project = root / "config" / "projects" / "-p"
    project.mkdir(parents=True)
    agents = []
    for session, pid in zip(sessions, pids, strict=False):
        log = root / f"{pid}.log"
        log.write_text(json.dumps({"type": "system", "subtype": "init", "session_id": session, "uuid": str(uuid.uuid4())}) + "\n")
        record = {"type": "user", "uuid": str(uuid.uuid4()), "parentUuid": None, "message": {"role": "user", "content": "hi"}}
        (project / f"{session}.jsonl").write_text(json.dumps(record) + "\n")
        agents.append(
            Headless(session_id=session, pid=pid, start_time=start_time(pid), stdout_log=log, sent=(), config_dir=root / "config")
        )
    return agents


def write_registry(root: Path, sessions: Sequence[str], pids: Sequence[int], headless: int) -> None:
    """A record for each process, as Claude Code 2.1.332 writes it."""
    folder = root / "config" / "sessions"
    folder.mkdir()
    for number, (session, pid) in enumerate(zip(sessions, pids, strict=True)):
        ticks = str(round((start_time(pid) or 0.0) * 100))
        entrypoint = "sdk-cli" if number < headless else "cli"
        record = {"pid": pid, "sessionId": session, "procStart": ticks, "kind": "interactive", "entrypoint": entrypoint}
        (folder / f"{pid}.json").write_text(json.dumps(record))


def main() -> int:
    """Start, measure, print and judge."""
    options, sessions, others = options_and_sessions(__doc__)
    with tempfile.TemporaryDirectory() as folder, waiting_processes(sessions, others) as pids:
        time.sleep(SETTLE_SECONDS)
        root = Path(folder)
        host = Agents(root, made_agents(root, sessions, pids))
        write_registry(root, [*sessions, *others], pids, options.headless)
        return report(host, options.limit)


def report(host: Agents, limit: float) -> int:
    """Measure with the processes there, and say whether a tick is within the limit."""
    number = 0

    def tick() -> None:
        nonlocal number
        number += 1
        beat = Tick(number=number, monotonic=float(number), interval=5.0)
        watcher.on_tick(host, beat)
        terminal_launch.on_tick(host, beat)

    first = milliseconds(tick, 1)
    milliseconds(tick, 3)
    cost = milliseconds(tick)
    print(f"first tick: {first:.1f} ms of CPU; one tick: {cost:.1f} ms of CPU (limit {limit:g} ms)")
    return 0 if cost <= limit else 1


if __name__ == "__main__":
    sys.exit(main())
