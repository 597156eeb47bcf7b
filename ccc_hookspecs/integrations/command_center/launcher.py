"""Starting CCC with the plugins attached: what `retire-stale run` does."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NoReturn

from ccc_hookspecs.integrations.command_center.attach import PATH_VARIABLE

STARTUP: Final = Path(__file__).with_name("startup")
"""The directory that goes in front of PYTHONPATH: its `sitecustomize` attaches in each of CCC's processes."""

NEEDED: Final = ("ccc_hookspecs", "ccc_plugins", "pluggy", "blinker", "psutil", "filelock")
"""What CCC's Python must be able to import, wherever it lies."""


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """`base` with what makes each CCC process started under it attach the plugins; the same when it has that already."""
    startup, rest = str(STARTUP), [part for part in base.get("PYTHONPATH", "").split(os.pathsep) if part]
    path = os.pathsep.join([startup, *(part for part in rest if part != startup)])
    return {**base, "PYTHONPATH": path, PATH_VARIABLE: os.pathsep.join(module_path())}


def module_path() -> list[str]:
    """The directories from which this Python imports what the plugins need, each once."""
    found: dict[str, None] = {}
    for name in NEEDED:
        spec = find_spec(name)
        for location in (spec.submodule_search_locations or []) if spec is not None else []:
            found[str(Path(location).parent)] = None
    return list(found)


def run(command: Sequence[str]) -> NoReturn:
    """Become `command`, with the plugins attached to the CCC that it starts. Raises `OSError` when it cannot be started.

    This process is replaced, not kept as a parent: CCC ends processes that it takes for strays of its own, by their command line.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvpe(command[0], list(command), environment(os.environ))
