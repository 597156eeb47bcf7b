"""What one fresh process measures for `judgement.py`: reads a job (JSON) from its input and prints the result (JSON).

A job has `what` (`first`, `nothing`, `hook` or `turn`), the paths `transcript`, `log` and, for checkpoints, `kept` (or null), `pid`
and `start_time` of the process that stands for the headless, `session`, `sent`, `spawned_at`, `config_dir` and `rounds`. The result
has `seconds` (a list), `cpu` (of the whole measurement, seconds), `peak` (bytes resident at most) and `verdict`.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from ccc_hookspecs.specs import Host
from ccc_hookspecs.values import Headless, Injection, SentInput
from ccc_plugins.retire_stale.evidence.checkpoints import Checkpoints
from ccc_plugins.retire_stale.evidence.observer import Observer, Surroundings

NEVER = 1 << 60
MESSAGE = "0b6ee27a-5d51-4d8d-a1c3-7c1f3a0f6f0e"


class Case:
    """One headless with its files."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.transcript = Path(job["transcript"])
        self.headless = Headless(
            session_id=job["session"],
            pid=job["pid"],
            start_time=job["start_time"],
            stdout_log=Path(job["log"]),
            cwd=Path("/home/user/project"),
            sent=tuple(SentInput(message_id=i, sent_at=at) for i, at in job["sent"]),
            spawned_at=job["spawned_at"],
            config_dir=Path(job["config_dir"]),
        )
        self.around = Surroundings(now=job["spawned_at"] + 1e6, unread=0, tools=(), children=0)

    def observer(self) -> Observer:
        kept = self.job["kept"]
        return Observer(self.headless, self.headless.spawned_at, None if kept is None else Checkpoints(Path(kept)))

    def look(self, observer: Observer) -> None:
        observer.read(self.headless, self.transcript)
        observer.attribution()


class FakeHost:
    """As much of a host as a look at a fresh headless asks for."""

    def __init__(self, state_dir: Path, config_dir: Path) -> None:
        self.state_dir = state_dir
        self._config_dir = config_dir

    def config_dir(self, headless: Headless) -> Path:
        return self._config_dir


def timed(call: Callable[[], object], rounds: int) -> list[float]:
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return seconds


def first(case: Case) -> tuple[list[float], str]:
    """The first judgement of a process: everything is read, or what came since the checkpoint."""
    started = time.perf_counter()
    observer = case.observer()
    observer.read(case.headless, case.transcript)
    judgement = observer.judge(case.around)
    return [time.perf_counter() - started], f"{judgement.attribution.verdict}, {judgement.idleness.verdict}"


def nothing(case: Case) -> tuple[list[float], str]:
    """A look when nothing is new."""
    observer = case.observer()
    case.look(observer)
    return timed(lambda: case.look(observer), case.job["rounds"]), observer.attribution().verdict


def hook(case: Case) -> tuple[list[float], str]:
    """The plugin's `pre_inject` when nothing is new, called as a host does."""
    from ccc_plugins.retire_stale.mechanisms import use_time

    host = cast(Host, FakeHost(Path(case.job["config_dir"]).parent / "state", Path(case.job["config_dir"])))
    injection = Injection(session_id=case.headless.session_id, text="go on", message_id=MESSAGE, headless=case.headless)
    answer = use_time.pre_inject(host, injection)
    return timed(lambda: use_time.pre_inject(host, injection), case.job["rounds"]), f"answers {answer}"


def turn(case: Case) -> tuple[list[float], str]:
    """A look after one more turn of the headless. The files grow."""
    from benchmarks.made_session import Session

    observer = case.observer()
    case.look(observer)
    session = Session(random.Random(99), clock=case.job["spawned_at"] + 1e5, parent=case.job["parent"], id=case.job["session"])
    seconds = []
    for _ in range(case.job["rounds"]):
        with case.transcript.open("ab") as records, Path(case.job["log"]).open("ab") as events:
            session.turn(records, events, partial=20)
        seconds += timed(lambda: case.look(observer), 1)
    return seconds, observer.attribution().verdict


def main() -> None:
    job = json.load(sys.stdin)
    case = Case(job)
    cpu = time.process_time()
    seconds, verdict = {"first": first, "nothing": nothing, "hook": hook, "turn": turn}[job["what"]](case)
    cpu = time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    json.dump({"seconds": seconds, "cpu": cpu, "peak": peak, "verdict": verdict}, sys.stdout)


if __name__ == "__main__":
    main()
