"""How long a judgement takes, and how much memory, on made files of 0.5, 50 and 500 MB each.

    python -m benchmarks.judgement [--sizes MB ...] [--peer CCC_CHECKOUT --peer-path FOLDER] [--report-only]

Two scenarios: a long history that the headless resumed, of which a few per cent are its own, with a log of the full size; and a
transcript and a log that it wrote all by itself. For each: the first judgement of a fresh process, without and with a
checkpoint (written some 15 MB ago, nearly as far back as one can be); a look when nothing is new, and the plugin's `pre_inject`
then; a look after one more turn. Median, 99th percentile, and the most memory that a process held, its interpreter included. With
`--peer`, the checks of CCC itself run on the same files (`--peer-path`: folders its import needs).

Exits with 1 when a target is missed, and names it. The files are made in a temporary folder and deleted.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.made_session import Made, Session, make
from ccc_hookspecs.processes import start_time

ROOT = Path(__file__).parents[1]
SCENARIOS = {"long history resumed": 0.06, "all its own": 1.0}
SINCE_CHECKPOINT = 14 << 20
INPUTS = 10_000
PEER_CHECKS = ("busy check", "watermark", "stale check", "tool check")


@dataclass
class Result:
    """The measurements of one kind; `seconds` of each round, `peak` in bytes of each process."""

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak: list[int] = field(default_factory=list)
    verdict: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def worst(self) -> float:
        """The 99th percentile: of fewer than a hundred rounds, the longest."""
        return sorted(self.seconds)[math.ceil(0.99 * len(self.seconds)) - 1]


@dataclass
class Bench:
    """The files of one scenario in `folder`, and what is measured on them."""

    folder: Path
    made: Made
    session: Session

    def described(self) -> str:
        made = self.made
        transcript, log = (path.stat().st_size / 1e6 for path in (made.transcript, made.log))
        return f"transcript {transcript:.1f} MB, {made.history / 1e6:.1f} MB of it from before; log {log:.1f} MB; {len(made.sent)} inputs"

    def run(self, what: str, *, kept: bool, rounds: int = 1, processes: int = 1) -> Result:
        """Measure in that many fresh processes, one after the other."""
        result = Result()
        for _ in range(processes):
            said = run_child("judgement_child.py", self._job(what, kept, rounds))
            result.seconds += said["seconds"]
            result.cpu.append(said["cpu"])
            result.peak.append(said["peak"])
            result.verdict = said["verdict"]
        return result

    def grow(self, size: int) -> None:
        """Let the headless write about `size` bytes more, in both files together."""
        with self.made.transcript.open("ab") as records, self.made.log.open("ab") as events:
            end = records.tell() + events.tell() + size
            while records.tell() + events.tell() < end:
                self.session.turn(records, events)
                self.made.sent.append(self.session.sent[-1])

    def peer(self, checkout: Path, paths: list[str], rounds: int) -> dict[str, list[float]]:
        made = self.made
        ids = [i for i, _ in made.sent]
        job = {"checkout": str(checkout), "log": str(made.log), "session": made.session, "pid": os.getpid(), "ids": ids, "rounds": rounds}
        found = run_child("judgement_peer.py", job, {"HOME": str(self.folder), "PYTHONPATH": ":".join(paths)})
        seconds: dict[str, list[float]] = found["seconds"]
        return seconds

    def _job(self, what: str, kept: bool, rounds: int) -> dict[str, Any]:
        made = self.made
        return {
            "what": what,
            "transcript": str(made.transcript),
            "log": str(made.log),
            "kept": str(self.folder / "kept") if kept else None,
            "pid": os.getpid(),
            "start_time": start_time(os.getpid()),
            "session": made.session,
            "sent": made.sent[-INPUTS:],
            "spawned_at": made.spawned_at,
            "parent": self.session.parent,
            "config_dir": str(self.folder / ".claude"),
            "rounds": rounds,
        }


def run_child(script: str, job: dict[str, Any], environment: dict[str, str] | None = None) -> dict[str, Any]:
    """One fresh process, with a clean environment; raises when it fails."""
    clean = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"} | (environment or {})
    command = [sys.executable, str(ROOT / "benchmarks" / script)]
    done = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True, env=clean, timeout=900)
    if done.returncode != 0:
        raise RuntimeError(f"{script} failed: {done.stderr.strip()[-2000:]}")
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def prepare(folder: Path, size: int, own_share: float) -> Bench:
    session = Session(random.Random(7))
    project = folder / ".claude" / "projects" / "-home-user-project"
    project.mkdir(parents=True)
    made = make(session, project / f"{session.id}.jsonl", folder / "stdout.log", size, own_share=own_share)
    return Bench(folder, made, session)


def measure(bench: Bench, size: int) -> dict[str, Result]:
    processes = 5 if size >= 100e6 else 15
    results = {"first judgement, no checkpoint": bench.run("first", kept=False, processes=processes)}
    bench.run("first", kept=True)
    bench.grow(min(SINCE_CHECKPOINT, size // 4))
    results["first judgement after a restart"] = bench.run("first", kept=True, processes=15)
    results["look, nothing new"] = bench.run("nothing", kept=True, rounds=5000)
    results["pre_inject, nothing new"] = bench.run("hook", kept=True, rounds=5000)
    results["look after one more turn"] = bench.run("turn", kept=True, rounds=100)
    return results


def measure_crowded(folder: Path) -> Result:
    """A look with nothing new at a headless that was sent 10,000 inputs, while another process wrote 10,000 and more records."""
    bench = prepare(folder, 100_000, 1.0)
    with bench.made.transcript.open("ab") as records:
        for _ in range(INPUTS // 4):
            bench.session.turn(records, None, entrypoint="cli")
    bench.made.sent[:] = (bench.made.sent * INPUTS)[:INPUTS]
    return bench.run("nothing", kept=False, rounds=5000)


def show(name: str, result: Result) -> None:
    cpu = f"cpu {statistics.median(result.cpu) * 1e3:8.1f} ms" if len(result.seconds) == len(result.cpu) else ""
    peak = max(result.peak) / 2**20
    print(f"  {name:34} median {ms(result.median)}  p99 {ms(result.worst)}  peak {peak:5.1f} MB  {result.verdict:14} {cpu}")


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:10.3f} ms"


def show_peer(seconds: dict[str, list[float]], results: dict[str, Result]) -> None:
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    for name, value in medians.items():
        print(f"  CCC {name:30} median {ms(value)}")
    total = sum(medians[name] for name in PEER_CHECKS)
    for name in (
        "pre_inject, nothing new",
        "look after one more turn",
        "first judgement after a restart",
        "first judgement, no checkpoint",
    ):
        print(f"  CCC, its four checks together: {total / results[name].median:10.1f} times {name}")


def missed(results: dict[str, dict[str, Result]], sizes: list[float]) -> list[str]:
    """The targets of the largest files that were not reached, and whether a look costs more on large files than on small ones."""
    found = []
    for scenario in SCENARIOS:
        largest, smallest = (results[f"{scenario}, {size:g} MB"] for size in (max(sizes), min(sizes)))
        inject, restart = largest["pre_inject, nothing new"], largest["first judgement after a restart"]
        if inject.median > 0.0002:
            found.append(f"{scenario}: pre_inject, nothing new: {ms(inject.median)}, not 0.2 ms")
        if inject.median > 2 * smallest["pre_inject, nothing new"].median:
            found.append(f"{scenario}: pre_inject, nothing new: more than twice as long on large files as on small ones")
        if restart.median > 0.25:
            found.append(f"{scenario}: first judgement after a restart: {ms(restart.median)}, not 250 ms")
        peak = max(p for result in largest.values() for p in result.peak)
        if peak > 64 << 20:
            found.append(f"{scenario}: {peak / 2**20:.1f} MB, not 64 MB")
    return found


def main() -> int:
    """Make the files, measure, print and judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=float, nargs="+", default=[0.5, 50, 500], metavar="MB")
    parser.add_argument("--peer", type=Path, metavar="CCC_CHECKOUT")
    parser.add_argument("--peer-path", action="append", default=[], metavar="FOLDER")
    parser.add_argument("--report-only", action="store_true", help="exit with 0 whatever was measured")
    options = parser.parse_args()
    results: dict[str, dict[str, Result]] = {}
    for scenario, share in SCENARIOS.items():
        for size in options.sizes:
            with tempfile.TemporaryDirectory(prefix="judgement-") as folder:
                bench = prepare(Path(folder), int(size * 1e6), share)
                print(f"{scenario}: {bench.described()}", flush=True)
                peer = bench.peer(options.peer, options.peer_path, 5) if options.peer else None
                found = results[f"{scenario}, {size:g} MB"] = measure(bench, int(size * 1e6))
                for name, result in found.items():
                    show(name, result)
                if peer is not None:
                    show_peer(peer, found)
    with tempfile.TemporaryDirectory(prefix="judgement-") as folder:
        crowded = measure_crowded(Path(folder))
        print(f"{INPUTS} inputs sent, as many and more records of another writer left over:")
        show("look, nothing new", crowded)
    failures = missed(results, options.sizes)
    if crowded.median > 0.0001:
        failures.append(f"look, nothing new, many inputs and records: {ms(crowded.median)}, not 0.1 ms")
    for failure in failures:
        print(f"missed: {failure}")
    return 1 if failures and not options.report_only else 0


if __name__ == "__main__":
    sys.exit(main())
