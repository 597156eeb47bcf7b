"""What a hook call costs when no plugin is interested: `pre_inject` against a bare function call, in one run.

    python benchmarks/hook_overhead.py [--limit MICROSECONDS]

Three situations: no plugin at all; three plugins that implement other hooks; one plugin that answers None. Medians of several
rounds. Exits with 1 when either of the first two costs more than the limit (20 by default) over a bare call.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

from ccc_hookspecs import Deliver, Headless, Host, Injection, Tick, hookimpl
from ccc_hookspecs.manager import PluginManager

CALLS = 2_000
ROUNDS = 25
SESSION = "72350742-dff3-4ee0-a645-6602d6d2b86e"
HOST = cast(Host, object())
INJECTION = Injection(
    session_id=SESSION,
    text="text",
    message_id="0b6ee27a-5d51-4d8d-a1c3-7c1f3a0f6f0e",
    headless=Headless(session_id=SESSION, pid=1, start_time=None, fifo=Path("/tmp/fifo")),
)
ANSWER = Deliver()


class Elsewhere:
    """A plugin that implements another hook."""

    @hookimpl
    def on_tick(self, ccc: Host, tick: Tick) -> None: ...


class Silent:
    """A plugin that is asked and has no answer."""

    @hookimpl
    def pre_inject(self, ccc: Host, injection: Injection) -> None: ...


def bare(ccc: Host, injection: Injection) -> Deliver:
    return ANSWER


def microseconds(call: Callable[[Host, Injection], object]) -> float:
    """The median over the rounds of the time of one call."""
    rounds = []
    for _ in range(ROUNDS):
        started = time.perf_counter_ns()
        for _ in range(CALLS):
            call(HOST, INJECTION)
        rounds.append((time.perf_counter_ns() - started) / CALLS / 1000)
    return statistics.median(rounds)


def manager_of(*plugins: object) -> PluginManager:
    manager = PluginManager()
    for number, plugin in enumerate(plugins):
        manager.register(plugin, f"plugin.number{number}")
    return manager


def main() -> int:
    """Measure, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--limit", type=float, default=20.0, metavar="MICROSECONDS")
    limit = parser.parse_args().limit
    base = microseconds(bare)
    print(f"{'a bare function call':42} {base:8.3f} us")
    over = {
        "no plugin": microseconds(manager_of().pre_inject) - base,
        "three plugins without this hook": microseconds(manager_of(Elsewhere(), Elsewhere(), Elsewhere()).pre_inject) - base,
        "one plugin that answers None": microseconds(manager_of(Silent()).pre_inject) - base,
    }
    for name, cost in over.items():
        print(f"{name:42} {cost:8.3f} us over it, {1 + cost / base:6.1f} times")
    uninterested = max(list(over.values())[:2])
    print(f"hook overhead, no plugin interested: {uninterested:.3f} us (limit {limit:g} us)")
    return 0 if uninterested <= limit else 1


if __name__ == "__main__":
    sys.exit(main())
