"""What it takes until a stale headless has a text, on the real Claude Code: healed, against ended and started afresh.

    python -m benchmarks.healing [--release RELEASE] [--times N] [--limit MILLISECONDS] [--ratio R] [--report-only]

Each time a session is begun three times, and answers twice. In two of them another process takes a turn of two records then. The third text
is given to the one with `heal = "always"`, to the other with `"never"`, and to the third as it is, a fresh one. What is measured ends, for
all three, when the request for that text has arrived at the API, and begins when the host is given the text. Of the healing alone, which
begins behind the judgement and ends when the process knows everything, it is told where the time goes.

Run in a network namespace of its own, as `tests/real` does; needs a release that `.ci/claude` installed. Exits with 1 when the median of
the healing alone is over the limit, or that of healed to respawned over the ratio; with 2 when it cannot be measured here.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ccc_hookspecs.host.host import EmbeddedHost
from ccc_hookspecs.outcomes import Healed, Retirement
from ccc_hookspecs.signals import headless_healed, headless_retired
from ccc_hookspecs.values import Headless
from tests.real.isolation import Isolated, unavailable
from tests.real.releases import RELEASES, program
from tests.real.requests.recorder import Recorder
from tests.real.requests.stage import Stage

WAYS = {"fresh": "held", "healed": "always", "respawned": "never"}
"""What becomes of the headless, with the setting of `heal` that brings it about."""

STEPS = ("first line", "closing line", "healed", "text", "request")
"""What is reached one after another from the moment at which the host is given the text of a stale headless."""

QUESTION = "the question"
SECONDS_EACH = 120.0
"""How long one time may take."""


class TimedHost(EmbeddedHost):
    """Notes when it begins to write a line of history, and when the last line of any kind is in the FIFO."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.fed: list[float] = []
        self.written = 0.0
        super().__init__(*arguments, **named)

    def write(self, headless: Headless, line: bytes) -> None:
        self.fed.append(time.monotonic())
        super().write(headless, line)

    def checkpoint(self, name: str) -> None:
        if name == "wrote":
            self.written = time.monotonic()


class Times:
    """When things happened in one measurement, on the monotonic clock."""

    def __init__(self) -> None:
        self.healed: tuple[float, float] | None = None
        self.retired: float | None = None

    def note_healed(self, mechanism: str, event: Healed) -> None:
        self.healed = time.monotonic(), event.seconds

    def note_retired(self, mechanism: str, event: Retirement) -> None:
        self.retired = event.seconds


def measured(stage: Stage, host: TimedHost, way: str) -> dict[str, Any]:
    """The milliseconds of one way, and of its steps."""
    stage.say("first by the host")
    stage.say("second by the host")
    if way != "fresh":
        stage.one_shot("typed elsewhere")
    times, start = Times(), len(stage.recorder.sent)
    with headless_healed.connected_to(times.note_healed), headless_retired.connected_to(times.note_retired):
        began = time.monotonic()
        stage.host.send(stage.session_id, QUESTION)
        arrived = stage.request(QUESTION, start).at
    became = "healed" if times.healed is not None else "respawned" if times.retired is not None else "fresh"
    assert became == way, f"{became}, not {way}"
    found: dict[str, Any] = {"delivered": _ms(arrived - began)}
    if times.healed is not None:
        found["healing"] = _ms(times.healed[1])
        moments = [began, host.fed[0], host.fed[-1], times.healed[0], host.written, arrived]
        found["steps"] = [_ms(after - before) for before, after in itertools.pairwise(moments)]
    if times.retired is not None:
        found["ending"] = _ms(times.retired)
    return found


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)


def inside(claude: Path, times: int) -> None:
    """Print each time as JSON, the measurements by the way."""
    root = Path.home()
    with Recorder() as recorder:
        os.environ["ANTHROPIC_BASE_URL"] = recorder.url
        for number in range(times):
            found = {}
            for way, heal in WAYS.items():
                os.environ["HOME"] = str(root)
                stage = Stage(root / f"{number}{way[0]}", claude, recorder, heal=heal, host=TimedHost)
                assert isinstance(stage.host, TimedHost)
                try:
                    found[way] = measured(stage, stage.host, way)
                finally:
                    stage.close()
            print(json.dumps(found), flush=True)


def described(values: Sequence[float], unit: str = "ms") -> str:
    return f"{statistics.median(values):6.0f} {unit} ({min(values):.0f} to {max(values):.0f})"


def show(release: str, values: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """Print it; returns the milliseconds of the healing alone and the ratio of healed to respawned, each a median."""
    print(f"{release}: from the text to its request at the API, {len(values)} times; median and range")
    for way in WAYS:
        print(f"  {way:22} {described([value[way]['delivered'] for value in values])}")
    healing = [value["healed"]["healing"] for value in values]
    ratios = [value["healed"]["delivered"] / value["respawned"]["delivered"] for value in values]
    more = [(v["healed"]["delivered"] - v["fresh"]["delivered"]) / (v["respawned"]["delivered"] - v["fresh"]["delivered"]) for v in values]
    print(f"  {'the healing alone':22} {described(healing)}")
    print(f"  {'the ending alone':22} {described([value['respawned']['ending'] for value in values])}")
    print(
        f"  healed to respawned {statistics.median(ratios):.2f}; of what either takes more than a fresh one {statistics.median(more):.2f}"
    )
    print("  steps of the healed, each from the one before:")
    for number, name in enumerate(STEPS):
        print(f"    {name:20} {described([value['healed']['steps'][number] for value in values])}")
    return statistics.median(healing), statistics.median(ratios)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--release", default=RELEASES[0])
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--limit", type=float, default=100.0, metavar="MILLISECONDS")
    parser.add_argument("--ratio", type=float, default=0.1)
    parser.add_argument("--report-only", action="store_true", help="exit with 0 whatever was measured")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.inside:
        inside(given.inside, given.times)
        return 0
    if (reason := unavailable(given.release)) is not None:
        print(f"not measured: {reason}")
        return 2
    healing, ratio = show(
        given.release, Isolated.times("benchmarks.healing", ["--inside", str(program(given.release))], given.times, SECONDS_EACH)
    )
    missed = [f"the healing alone: {healing:.0f} ms, not {given.limit:g} ms"] if healing > given.limit else []
    missed += [f"healed to respawned: {ratio:.2f}, not {given.ratio:g}"] if ratio > given.ratio else []
    for target in missed:
        print(f"missed: {target}")
    return 1 if missed and not given.report_only else 0


if __name__ == "__main__":
    sys.exit(main())
