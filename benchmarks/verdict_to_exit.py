"""What a retirement takes on the real Claude Code: from the verdict to the confirmed exit of an idle headless.

    python -m benchmarks.verdict_to_exit [--release RELEASE] [--times N] [--limit MILLISECONDS]

Each time a session is begun, answers once and is retired because a terminal is about to open on it. Run in a network namespace of its
own, as `tests/real` does; needs a release that `.ci/claude` installed. Prints the median and the range, and exits with 1 when
the median is over the limit, with 2 when it cannot be measured here.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ccc_hookspecs.host.errors import HostError
from ccc_hookspecs.host.host import EmbeddedHost
from ccc_hookspecs.host.records import Session
from ccc_hookspecs.manager import PluginManager
from ccc_hookspecs.outcomes import Retirement
from ccc_hookspecs.signals import headless_retired
from tests.real.isolation import Isolated, unavailable
from tests.real.releases import RELEASES, program
from tests.real.waiting import wait_until

SECONDS_EACH = 60.0
"""How long one time may take."""


class Retirements:
    """A host in this process, with every plugin, and the retirements that it heard of. For the inside of the namespace."""

    def __init__(self, claude: str) -> None:
        manager = PluginManager()
        manager.load()
        self._host = EmbeddedHost(Path.home() / "state", manager=manager, claude=claude)
        self._heard: list[Retirement] = []
        headless_retired.connect(self._hear)

    def _hear(self, mechanism: str, event: Retirement) -> None:
        self._heard.append(event)

    def next(self) -> Retirement:
        """Begin a session, have it answer, and retire its idle headless."""
        session, before = self._host.begin(Path.home(), ("--dangerously-skip-permissions",)), len(self._heard)
        self._host.send(session.session_id, "hello")
        wait_until(lambda: self._delivered(session), "the delivery of a message")
        wait_until(lambda: self._retired(session, before), "the end of an idle headless")
        return self._heard[-1]

    def _delivered(self, session: Session) -> bool:
        self._host.drive(session.session_id)
        return not self._host.store.outbox.open_of(session.session_id)

    def _retired(self, session: Session, before: int) -> bool:
        # There is nothing for a terminal to load before the transcript is there, up to a second after the answer (2.1.216).
        with suppress(HostError):
            self._host.launch_terminal(session)
        return len(self._heard) > before


def inside(claude: str, times: int) -> None:
    """Print each time as JSON, the seconds and the rung of the ladder that was reached."""
    retirements = Retirements(claude)
    for _ in range(times):
        retirement = retirements.next()
        print(json.dumps({"seconds": retirement.seconds, "rung": retirement.rung}), flush=True)


def measured(release: str, times: int) -> list[float]:
    """The milliseconds of each time, of those that SIGTERM alone ended."""
    values = Isolated.times("benchmarks.verdict_to_exit", ["--inside", str(program(release))], times, SECONDS_EACH)
    return [1000 * value["seconds"] for value in values if value["rung"] == "terminate"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--release", default=RELEASES[0])
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--limit", type=float, default=150.0, metavar="MILLISECONDS")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.inside:
        inside(given.inside, given.times)
        return 0
    if (reason := unavailable(given.release)) is not None:
        print(f"not measured: {reason}")
        return 2
    took = measured(given.release, given.times)
    median = statistics.median(took)
    spread = f"{min(took):.0f} to {max(took):.0f} ms, {len(took)} of {given.times} times by SIGTERM alone"
    print(f"{given.release}: verdict to exit {median:.0f} ms ({spread}; limit {given.limit:g} ms)")
    return 0 if median <= given.limit else 1


if __name__ == "__main__":
    sys.exit(main())
