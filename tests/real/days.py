"""Plays generated days on the real Claude Code, and shrinks those that fail to their shortest form.

    python -m tests.real.days --release 2.1.332 --seeds 0-49 [--always] [--shrink]

One line a day; for one that failed, its acts and what was wrong. Exits with 1 when one failed, with 2 when nothing can be played here.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.real.isolation import unavailable
from tests.real.runs import Runs
from tests.real.stories.days import numbered


def played(release: str, keys: Iterable[str]) -> Iterable[dict[str, Any]]:
    """The outcomes, as they come. The files of a day that failed are kept."""
    keys = list(keys)
    runs = Runs({release: keys}, folder := Path(tempfile.mkdtemp(prefix="d")))
    try:
        for number, key in enumerate(keys):
            yield runs.outcome(release, key) | {"home": str(folder / release / f"{number}day")}
    finally:
        runs.close()


def key_of(seed: int, numbers: Iterable[int], *, always: bool) -> str:
    return f"day:{seed}:{','.join(map(str, numbers))}{'+' if always else ''}"


def shrunk(release: str, key: str) -> dict[str, Any]:
    """The outcome of the shortest part of a failed day that fails too, where one act after the other is left out."""
    seed, acts = numbered(key)
    numbers = [number for number, _ in acts if number]
    shortest: dict[str, Any] = {}
    for number in tuple(numbers):
        shorter = key_of(seed, [one for one in numbers if one != number], always=key.endswith("+"))
        outcome = next(iter(played(release, [shorter])))
        if not outcome["passed"]:
            numbers.remove(number)
            shortest = outcome
    return shortest


def show(outcome: dict[str, Any]) -> None:
    print(outcome["story"], "holds" if outcome["passed"] else "FAILS", f"{outcome['seconds']:.0f} s", flush=True)
    if not outcome["passed"]:
        print("   ", ", ".join(outcome["facts"].get("acts", ())), outcome["home"], *outcome["complaints"], sep="\n    ", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real.days", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--release", default="2.1.332")
    parser.add_argument("--seeds", default="0-9", metavar="FIRST-LAST")
    parser.add_argument("--always", action="store_true", help="with `heal` at `always`")
    parser.add_argument("--shrink", action="store_true", help="find the shortest form of each that fails")
    given = parser.parse_args()
    if (reason := unavailable(given.release)) is not None:
        print(reason, file=sys.stderr)
        return 2
    first, _, last = given.seeds.partition("-")
    keys = [f"day:{seed}{'+' if given.always else ''}" for seed in range(int(first), int(last or first) + 1)]
    failed = 0
    for outcome in played(given.release, keys):
        show(outcome)
        if not outcome["passed"]:
            failed += 1
            if given.shrink and (shortest := shrunk(given.release, outcome["story"])):
                show(shortest)
    print(f"{len(keys)} days, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
