"""What one look at all processes costs a tick: 1,000 headless agents and 50 terminals, against psutil's own iteration, in one run.

    python -m benchmarks.tick_processes [--headless N] [--terminals N] [--limit MILLISECONDS]

Starts that many real processes that only wait and show the command lines of Claude Code, half of the terminals with a headless on the
same session. Measures CPU time: the first snapshot, one that follows another, the same with what the mechanisms ask of it
for every headless, and `psutil.process_iter` asked for the same fields. Exits with 1 when a tick costs more than the limit (40 by default).
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil

from ccc_hookspecs.claude.registry import Registry
from ccc_plugins.retire_stale.evidence.children import running_tools
from ccc_plugins.retire_stale.evidence.processes import Identity, ProcessTable, interactive_writers, snapshot

ROUNDS = 9
SETTLE_SECONDS = 2.5
FIELDS = ["pid", "ppid", "name", "cmdline", "terminal", "status", "uids", "cpu_times", "create_time"]
HEADLESS = ("-p", "--verbose", "--input-format", "stream-json", "--output-format", "stream-json")


@contextmanager
def waiting_processes(headless: list[str], terminals: list[str]) -> Iterator[list[int]]:
    """The pids of a headless on each of these sessions, and then of a terminal on each; all wait until the block ends and are reaped."""
    reading, writing = os.pipe()
    pairs = [os.openpty() for _ in terminals]
    processes = []
    try:
        for session in headless:
            processes.append(claude("read line", *HEADLESS, "--resume", session, stdin=reading))
        for (_, slave), session in zip(pairs, terminals, strict=True):
            # A process that leads a session gets the first terminal that it opens as its own.
            processes.append(claude(f"read line < {os.ttyname(slave)}", "--resume", session, stdin=reading))
        yield [process.pid for process in processes]
    finally:
        for fd in (reading, writing, *(fd for pair in pairs for fd in pair)):
            os.close(fd)
        for process in processes:
            process.wait()


def claude(program: str, *arguments: str, stdin: int) -> subprocess.Popen[bytes]:
    """A shell that runs `program` and looks like Claude Code. To that, `-c` is `--continue`, which names no session."""
    return subprocess.Popen(["claude", "-c", program, *arguments], executable="/bin/sh", stdin=stdin, start_new_session=True)


def milliseconds(look: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The median over the rounds of the CPU time of one look."""
    spent = []
    for _ in range(rounds):
        started = time.process_time_ns()
        look()
        spent.append((time.process_time_ns() - started) / 1e6)
    return statistics.median(spent)


class Ticker:
    """Looks as a tick does: each snapshot builds on the one before."""

    def __init__(self, sessions: list[str], pids: list[int]) -> None:
        self.table: ProcessTable = snapshot()
        self.sessions = sessions
        self.pids = pids
        self.shared = 0

    def look(self) -> None:
        self.table = snapshot(self.table)

    def look_and_ask(self) -> None:
        """A snapshot, and for every headless: who else is on its session, and do tools run below it."""
        self.look()
        nobody = Registry(state="missing")
        self.shared = 0
        for session, pid in zip(self.sessions, self.pids, strict=True):
            self.shared += bool(interactive_writers(self.table, nobody, session, Identity(pid, self.table.rows[pid].start_time)))
            running_tools(self.table, pid)


def options_and_sessions(description: str | None) -> tuple[argparse.Namespace, list[str], list[str]]:
    """The command line, the sessions of the headless agents, and those of the terminals, half of them the same."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0] if description else None)
    parser.add_argument("--headless", type=int, default=1000)
    parser.add_argument("--terminals", type=int, default=50)
    parser.add_argument("--limit", type=float, default=40.0, metavar="MILLISECONDS")
    options = parser.parse_args()
    sessions = [str(uuid.uuid4()) for _ in range(options.headless)]
    others = [*sessions[: options.terminals // 2], *(str(uuid.uuid4()) for _ in range(options.terminals))][: options.terminals]
    return options, sessions, others


def main() -> int:
    """Start, measure, print and judge."""
    options, sessions, others = options_and_sessions(__doc__)
    with waiting_processes(sessions, others) as pids:
        time.sleep(SETTLE_SECONDS)
        return report(Ticker(sessions, pids[: options.headless]), options.limit)


def report(ticker: Ticker, limit: float) -> int:
    """Measure with the processes there, and say whether a tick is within the limit."""
    first = milliseconds(snapshot, 3)
    following = milliseconds(ticker.look)
    tick = milliseconds(ticker.look_and_ask)
    peer = milliseconds(lambda: [process.info for process in psutil.process_iter(FIELDS)], 5)
    print(f"{len(ticker.table.rows)} processes, {len(ticker.table.claude)} of them Claude Code, {ticker.shared} headless with a terminal")
    for name, cost in (("first snapshot", first), ("following snapshot", following), ("following snapshot, and all asked of it", tick)):
        print(f"{name:42} {cost:8.1f} ms CPU, {cost / peer:5.2f} of psutil.process_iter")
    print(f"{'psutil.process_iter, the same fields':42} {peer:8.1f} ms CPU")
    print(f"one tick: {tick:.1f} ms of CPU (limit {limit:g} ms)")
    return 0 if tick <= limit else 1


if __name__ == "__main__":
    sys.exit(main())
