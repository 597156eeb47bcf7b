"""Plays every story with every release and writes the table of docs/real-claude.md.

    python -m tests.real.table

Exits with 1 when a story failed, with 2 when nothing can be played here; then the document stays as it is.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.real.isolation import ROOT, unavailable
from tests.real.releases import RELEASES
from tests.real.runs import Runs, planned, rows

DOCUMENT = ROOT / "docs" / "real-claude.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"


def markdown(table: Sequence[Sequence[str]]) -> str:
    """The rows as a markdown table; the first is its head."""
    lines = [f"| {' | '.join(row)} |" for row in table]
    return "\n".join([lines[0], "|" + " --- |" * len(table[0]), *lines[1:]]) + "\n"


def between_marks(document: str) -> str:
    """The table in the document."""
    return document.partition(BEGIN)[2].partition(END)[0]


def with_table(document: str, table: str) -> str:
    """The document with this table in it."""
    before, _, rest = document.partition(BEGIN)
    return before + BEGIN + table + END + rest.partition(END)[2]


def play() -> dict[str, dict[str, dict[str, Any]]]:
    """The outcomes by release and key."""
    with tempfile.TemporaryDirectory(prefix="r") as folder:
        runs = Runs({release: planned(release) for release in RELEASES}, Path(folder))
        try:
            return {release: {key: runs.outcome(release, key) for key in planned(release)} for release in RELEASES}
        finally:
            runs.close()


def main() -> int:
    reasons = {release: reason for release in RELEASES if (reason := unavailable(release)) is not None}
    if reasons:
        print(*reasons.values(), sep="\n", file=sys.stderr)
        return 2
    outcomes = play()
    failed = [(release, outcome) for release, played in outcomes.items() for outcome in played.values() if not outcome["passed"]]
    for release, outcome in failed:
        print(release, outcome["story"], *outcome["complaints"], sep="\n    ", file=sys.stderr)
    DOCUMENT.write_text(with_table(DOCUMENT.read_text(encoding="utf-8"), markdown(rows(outcomes))), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
