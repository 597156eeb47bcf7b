"""Imported by each Python that `retire-stale run` has started, by way of PYTHONPATH, and by every Python started from it.

Only CCC's server and worker are of interest. This file must therefore run on every Python 3, cost nothing, and give way to
the `sitecustomize` that it hides.
"""

import importlib
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _script() -> str:
    """The path of the program that is about to run, or an empty text: an option's value or `-c` and `-m` are none."""
    words = list(getattr(sys, "orig_argv", []))[1:]
    while words and words[0].startswith("-"):
        if words[0] in ("-c", "-m"):
            return ""
        del words[: 2 if words[0] in ("-W", "-X") else 1]
    return os.path.abspath(words[0]) if words else ""


def _is_command_center(script: str) -> bool:
    """True for CCC's server and its worker, which lie side by side."""
    folder, name = os.path.split(script)
    names = ("server.py", "ccc_worker.py")
    return name in names and all(os.path.isfile(os.path.join(folder, other)) for other in names)


def _attach() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 - this file runs on whatever Python CCC has
        sys.stderr.write("ccc-retire-stale: the plugins need Python 3.11 or later, this is " + sys.version.split()[0] + ". CCC runs on.\n")
        return
    # At the end, so that no module of CCC's is hidden by one of ours.
    known = os.environ.get("CCC_HOOKSPECS_PATH", "").split(os.pathsep)
    sys.path.extend(path for path in known if path and path not in sys.path)
    try:
        importlib.import_module("ccc_hookspecs.integrations.command_center.auto")
    except Exception as error:  # noqa: BLE001 - CCC must start, whatever is wrong with the plugins
        sys.stderr.write("ccc-retire-stale: the plugins are not attached: " + repr(error) + ". CCC runs on.\n")


def _give_way() -> None:
    """Import the `sitecustomize` that this one hides, as Python would have."""
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _HERE]
    mine = sys.modules.pop("sitecustomize")
    try:
        importlib.import_module("sitecustomize")
    except ImportError as error:
        if getattr(error, "name", None) != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = mine


_give_way()
if _is_command_center(_script()):
    _attach()
