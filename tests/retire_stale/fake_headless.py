"""A stand-in for a headless `claude` as far as its process goes; says `ready` with its children's pids, then waits.

fake_headless.py [--ignore-term] [--exit-after SECONDS] [--wraps] [--children GROUP ...]

GROUP: `same`, or `own` for a session of its own. `--wraps`: it ends when its first child has ended.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from types import FrameType

LIFETIME = 60


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ignore-term", action="store_true")
    parser.add_argument("--exit-after", type=float, default=0.0)
    parser.add_argument("--wraps", action="store_true")
    parser.add_argument("--children", nargs="*", default=[])
    options = parser.parse_args()

    def leave(signum: int, frame: FrameType | None) -> None:
        time.sleep(options.exit_after)
        os._exit(128 + signum)

    children = [subprocess.Popen(["sleep", str(LIFETIME)], start_new_session=group == "own", stdout=2) for group in options.children]
    signal.signal(signal.SIGTERM, signal.SIG_IGN if options.ignore_term else leave)
    print("ready", *(child.pid for child in children), flush=True)
    if options.wraps:
        children[0].wait()
        sys.exit(1)
    end = time.monotonic() + LIFETIME
    while time.monotonic() < end:
        signal.pause()
    sys.exit(0)


main()
