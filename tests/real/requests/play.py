"""Plays kinds of foreign turns with one release, one after another, and prints of each what the requests had that differed, as JSON.

    python -m tests.real.requests.play PROGRAM KIND...

Run by `tests.real.inside`. In a kind without the plugin the requests must differ.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ccc_hookspecs.outcomes import Healed, Retirement
from ccc_hookspecs.signals import headless_healed, headless_retired
from tests.real.requests.comparison import differences
from tests.real.requests.kinds import KINDS, NORMALISED, Kind
from tests.real.requests.recorder import Recorder
from tests.real.requests.stage import Stage

FIRST = "first by the host"
QUESTION = "the question"


def played(program: Path, kind: Kind, home: Path, recorder: Recorder) -> dict[str, Any]:
    """The outcome of one kind. `home`: a directory for it, not there yet and with a short name."""
    began = time.monotonic()
    stage = Stage(home, program, recorder, heal=kind.heal, plugin=kind.became != "neither")
    found: list[str] = []
    error = None
    try:
        found = compared(stage, kind)
    except Exception as caught:  # noqa: BLE001 - whatever went wrong with one kind is its outcome, and no other's
        error = f"{type(caught).__name__}: {caught}"
    finally:
        stage.close()
    same = not found if kind.became != "neither" else bool(found)
    complaints = found if error is None else [error]
    seconds = round(time.monotonic() - began, 1)
    return {"story": kind.name, "passed": same and error is None, "seconds": seconds, "complaints": complaints, "compared": error is None}


def compared(stage: Stage, kind: Kind) -> list[str]:
    """Where the requests differ. Raises when something else became of the headless than must."""
    stage.say(FIRST)
    kind.write(stage)
    before = stage.copy("before")
    with becoming(lambda: stage.copy("behind")) as heard:
        sent = stage.ask(QUESTION)
    what = ", ".join(heard) or "neither"
    assert what == kind.became, f"the headless was not {kind.became}, but {what}"
    fresh = stage.fresh(before if kind.compared == "before" else stage.world.home / "behind", QUESTION)
    return differences(sent.messages, fresh.messages, (*NORMALISED.get(stage.release, ()), *kind.normalised))


@contextmanager
def becoming(when_healed: Callable[[], object]) -> Iterator[list[str]]:
    """What becomes of headlesses meanwhile. `when_healed`: called as soon as one is healed, before it gets a text."""
    heard: list[str] = []

    def healed(mechanism: str, event: Healed) -> None:
        heard.append("healed")
        when_healed()

    def retired(mechanism: str, event: Retirement) -> None:
        heard.append("retired")

    with headless_healed.connected_to(healed), headless_retired.connected_to(retired):
        yield heard


def main() -> None:
    program, *kinds = sys.argv[1:]
    root = Path.home()
    with Recorder() as recorder:
        os.environ["ANTHROPIC_BASE_URL"] = recorder.url
        for number, name in enumerate(kinds):
            home = root / str(number)
            os.environ["HOME"] = str(root)
            print(json.dumps(played(Path(program), KINDS[name], home, recorder)), flush=True)


if __name__ == "__main__":
    main()
