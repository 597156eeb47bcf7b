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
    """`$CCC_HOST_STATE`, else `ccc-host` in `$XDG_STATE_HOME` (`~/.local/state`); absolute."""
    if os.environ.get(STATE_VARIABLE):
        return Path(os.environ[STATE_VARIABLE]).expanduser().absolute()
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    # The base-directory specification tells to ignore a relative path.
    return (base if base.is_absolute() else Path("~").expanduser() / ".local" / "state") / "ccc-host"


class Store:
    """`directory` is made with 0700 when it does not exist. Raises `StateError` when it cannot be used."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if directory.stat().st_uid == os.geteuid() and directory.stat().st_mode & 0o077:
                directory.chmod(0o700)
        except OSError as error:
            raise StateError(directory, f"{error.strerror or error}: point ${STATE_VARIABLE} to a directory you can write to") from error
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
