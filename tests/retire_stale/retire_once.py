"""A host process of its own that retires one headless and says how that ended, for tests of several hosts at once.

python -m tests.retire_stale.retire_once STATE_DIR PID START_TIME SESSION_ID [--unlocked] [--hang]

It says `ready`, waits for a line, retires, and prints the outcome's type, a tab and its reason. With `--hang` it says
`frozen` at the second look and stays there. With `--unlocked` it does not take the session's lock.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext
from pathlib import Path

from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.journal import Journal
from ccc_plugins.retire_stale.retirement import retire
from tests.retire_stale.conftest import FakeHost, Lab


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("state_dir", type=Path)
    parser.add_argument("pid", type=int)
    parser.add_argument("start_time", type=float)
    parser.add_argument("session_id")
    parser.add_argument("--unlocked", action="store_true")
    parser.add_argument("--hang", action="store_true")
    options = parser.parse_args()

    lab = Lab(FakeHost(options.state_dir), Journal(options.state_dir, busy_seconds=10))
    headless = Headless(session_id=options.session_id, pid=options.pid, start_time=options.start_time)
    order = lab.order(headless, "idle", _hang if options.hang else "idle")
    print("ready", flush=True)
    sys.stdin.readline()
    with nullcontext() if options.unlocked else lab.host.session_lock(headless.session_id, 30):
        outcome = retire(lab.host, order, lab.settings, lab.journal)
    print(type(outcome).__name__, outcome.reason, sep="\t", flush=True)


def _hang() -> str:
    print("frozen", flush=True)
    time.sleep(60)
    return "busy"


if __name__ == "__main__":
    main()
