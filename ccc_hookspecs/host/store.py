"""Everything a host keeps on disk, in one private directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ccc_hookspecs.host.database import Database
from ccc_hookspecs.host.errors import StateError
from ccc_hookspecs.host.heads import Heads
from ccc_hookspecs.host.journal import Journal
from ccc_hookspecs.host.locks import SessionLocks
from ccc_hookspecs.host.outbox import Outbox
from ccc_hookspecs.host.sessions import Sessions

STATE_VARIABLE: Final = "CCC_HOST_STATE"


def default_state_dir() -> Path:
    """`$CCC_HOST_STATE`, else `ccc-host` in `$XDG_STATE_HOME` (`~/.local/state`); absolute. Raises `StateError`."""
    given = os.environ.get(STATE_VARIABLE)
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    # The base-directory specification tells to ignore a relative path.
    path = Path(given) if given else (base if base.is_absolute() else Path("~", ".local", "state")) / "ccc-host"
    try:
        return path.expanduser().absolute()
    except RuntimeError as error:
        raise StateError(path, f"{error}: point ${STATE_VARIABLE} to a directory of your own") from error


class Store:
    """`directory` is made with 0700 when it does not exist; one that does is left as it is. Raises `StateError` when it cannot be used:
    also when others can write in it.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            mode = directory.stat().st_mode
        except OSError as error:
            raise StateError(directory, f"{error.strerror or error}: point ${STATE_VARIABLE} to a directory you can write to") from error
        if mode & 0o022:
            raise StateError(directory, f"others can write in it: `chmod go-w` it, or point ${STATE_VARIABLE} to a directory of your own")
        self.database = Database(directory)
        self.sessions = Sessions(self.database)
        self.heads = Heads(self.database)
        self.outbox = Outbox(self.database)
        self.journal = Journal(self.database)
        self.locks = SessionLocks(directory / "locks")

    @property
    def heads_dir(self) -> Path:
        """Where FIFOs and logs are."""
        return self.directory / "heads"
