"""Counts the writes into a FIFO, by what the kernel tells of them (inotify, Linux only)."""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from pathlib import Path

_IN_MODIFY, _IN_CLOEXEC = 0x2, 0o2000000
_EVENT = struct.Struct("iIII")


class FifoWrites:
    """Counts while it is entered. `count`: the writes so far."""

    def __init__(self, fifo: Path) -> None:
        self.count = 0
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = libc.inotify_init1(_IN_CLOEXEC)
        if libc.inotify_add_watch(self._descriptor, os.fsencode(fifo), _IN_MODIFY) < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch")
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> FifoWrites:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop counting. The thread ends with this process, so that no event is missed by closing too early."""

    def _read(self) -> None:
        while True:
            events = os.read(self._descriptor, 4096)
            self.count += len(events) // _EVENT.size
