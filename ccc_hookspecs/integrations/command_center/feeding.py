"""A plugin's own line on its way into a process of CCC's: by CCC's means, and without a question to the plugins."""

from __future__ import annotations

import select
from pathlib import Path
from types import ModuleType
from typing import Final

from ccc_hookspecs.errors import CccError
from ccc_hookspecs.host.pipe import NoReader, Pipe, PipeFull
from ccc_hookspecs.integrations.command_center.attempts import Entry
from ccc_hookspecs.integrations.command_center.lines import LARGE_LINE_SECONDS
from ccc_hookspecs.integrations.command_center.patches import Function
from ccc_hookspecs.integrations.command_center.spawns import path_of

LONGEST_IN_PIPE: Final = 65536
"""Bytes of a line for a process without a FIFO, at most: CCC writes to a pipe for 0.25 s, and half a line must not stay in it."""


class Unwritten(CccError):
    """Not all of a line went in. The message says why."""


class Feeder:
    """Made before anything takes the place of CCC's functions."""

    def __init__(self, server: ModuleType) -> None:
        self._fd: Function = server._write_via_spawn_fd
        self._pipe: Function = server._write_via_pipe

    def prepare(self, entry: Entry, line: bytes) -> None:
        """Have this row's FIFO hold the whole line, if the system allows, and be empty enough for it. Raises `Unwritten`."""
        fifo = path_of(entry.get("fifo"))
        if fifo is not None:
            self._make_room(fifo, len(line))
        elif entry.get("stdin_fd") is None and len(line) > LONGEST_IN_PIPE:
            raise Unwritten(f"the process has no FIFO, and its pipe takes no line of {len(line)} bytes")

    def write(self, entry: Entry, line: bytes) -> None:
        """Write the line, to the FIFO and, where there is none, to the pipe. Raises `Unwritten`."""
        longer = {"timeout": LARGE_LINE_SECONDS} if len(line) > select.PIPE_BUF else {}
        if not self._fd(entry, line, **longer) and not self._pipe(entry.get("proc"), line):
            raise Unwritten("the process does not read it, or is gone")

    def _make_room(self, fifo: Path, length: int) -> None:
        try:
            pipe = Pipe(fifo)
        except (NoReader, OSError) as error:
            raise Unwritten(str(error)) from error
        try:
            pipe.make_room(length)
        except (PipeFull, OSError) as error:
            raise Unwritten(str(error)) from error
        finally:
            pipe.close()
