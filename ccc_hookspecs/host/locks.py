"""One lock a session, across all processes of a host."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from ccc_hookspecs.errors import SessionLockTimeout

POLL_SECONDS: Final = 0.02


class SessionLocks:
    """`directory`: where the lock files are. A lock is reentrant within a thread, and free when its process has died."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._locks: dict[str, FileLock] = {}
        self._guard = threading.Lock()

    @contextmanager
    def hold(self, session_id: str, timeout: float) -> Iterator[None]:
        """Hold a session's lock. `timeout` in seconds, 0 tries once. Raises `SessionLockTimeout` when it stays taken."""
        lock = self._lock(session_id)
        try:
            lock.acquire(timeout=max(0.0, timeout), poll_interval=POLL_SECONDS)
        except Timeout:
            raise SessionLockTimeout(session_id, timeout) from None
        try:
            yield
        finally:
            lock.release()

    def _lock(self, session_id: str) -> FileLock:
        with self._guard:
            if session_id not in self._locks:
                self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                # One object for all threads: each has its own descriptor and its own count of entries in it.
                self._locks[session_id] = FileLock(self._directory / f"{session_id}.lock", mode=0o600, thread_local=True)
            return self._locks[session_id]
