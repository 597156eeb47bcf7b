"""How the process shows in the process table: as `claude`, with arguments or without, as its release does."""

from __future__ import annotations

import os
import sys

from ccc_hookspecs.testing.simulator.releases import Release


def show_as(release: Release) -> None:
    """On Linux, rewrite this process's command line in place; elsewhere, or when it cannot be done, leave it.

    Up to 2.1.61 a real one shows as `claude` and nothing else; later ones show the path they were started by and their arguments.
    """
    program = os.environ.get("CCC_SIM_PROGRAM")
    if program is None or not os.path.exists("/proc/self/mem"):
        return
    words = [program, *sys.argv[1:]] if release.has("native_program") else ["claude"]
    try:
        _rewrite([word.encode() for word in words])
    except OSError:
        return


def _rewrite(words: list[bytes]) -> None:
    with open("/proc/self/stat", "rb") as stat:
        # Fields 48 and 49, counted after the program's name, which may itself hold spaces and brackets.
        fields = stat.read().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    shown = b"\0".join(words) + b"\0"
    if len(words) > 1 and len(shown) < end - start:
        # Slashes in front of an absolute path fill the room exactly and name the same file.
        shown = b"/" * (end - start - len(shown)) + shown
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(start)
        memory.write(shown[: end - start].ljust(end - start, b"\0"))
