"""One lock a session: across processes, reentrant within a thread, free when its holder has died."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ccc_hookspecs.errors import SessionLockTimeout
from ccc_hookspecs.host.locks import SessionLocks

SESSION = "72350742-dff3-4ee0-a645-6602d6d2b86e"

HOLDER = """
import sys, time
from pathlib import Path
from ccc_hookspecs.host.locks import SessionLocks
with SessionLocks(Path(sys.argv[1])).hold(sys.argv[2], 10):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path), SESSION], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_another_process_keeps_it(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    """0 tries once; the error carries the session and the seconds."""
    locks = SessionLocks(tmp_path)
    started = time.monotonic()
    for timeout in (0, 0.2):
        with pytest.raises(SessionLockTimeout) as error, locks.hold(SESSION, timeout):
            pytest.fail("the lock was given twice")
        assert (error.value.session_id, error.value.timeout) == (SESSION, timeout)
    assert time.monotonic() - started < 5
    with locks.hold("another", 0):
        pass


def test_it_is_free_when_its_holder_was_killed(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    with SessionLocks(tmp_path).hold(SESSION, 5):
        pass


def test_it_is_reentrant_within_a_thread_and_not_between_two(tmp_path: Path) -> None:
    """The inner exit does not free it for another thread, the outer one does."""
    locks = SessionLocks(tmp_path)
    seen: list[bool] = []

    def attempt() -> None:
        try:
            with locks.hold(SESSION, 0):
                seen.append(True)
        except SessionLockTimeout:
            seen.append(False)

    def try_elsewhere() -> None:
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()

    with locks.hold(SESSION, 0):
        with locks.hold(SESSION, 0):
            try_elsewhere()
        try_elsewhere()
    try_elsewhere()
    assert seen == [False, False, True]
