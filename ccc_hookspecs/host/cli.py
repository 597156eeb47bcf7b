"""`ccc-host`: the embedded host on the command line."""

from __future__ import annotations

import sys

_MISSING = "ccc-host needs the extra 'cli': pip install 'ccc-retire-stale[cli]'"


def main() -> None:
    """Run the command line; never returns."""
    try:
        from ccc_hookspecs.host.commands import command_line
    except ModuleNotFoundError as error:
        # Hosts need no command line, so what it needs is an extra.
        sys.exit(_MISSING if (error.name or "").partition(".")[0] in ("click", "rich") else str(error))
    command_line()


if __name__ == "__main__":
    main()
