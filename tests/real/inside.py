"""The first process in the namespace: brings up the loopback interface, serves the Messages API, and runs a module.

    python -m tests.real.inside MODULE ARGUMENTS...

Whatever is left running when the module ends is ended, also what had lost its parent. Linux only.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import psutil

from tests.real.isolation import PORT

FIRST_PROCESS = "REAL_FIRST_PROCESS"
"""The environment variable that has the pid of this process."""

API_LOG = "api.jsonl"

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def bring_up_loopback() -> None:
    """What `ip link set lo up` does."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", _flags(control, "lo") | _IFF_UP))


def ways_out() -> list[str]:
    """The network interfaces besides the loopback that are up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        return [name for _, name in socket.if_nameindex() if name != "lo" and _flags(control, name) & _IFF_UP]


def _flags(control: socket.socket, name: str) -> int:
    answer = fcntl.ioctl(control, _SIOCGIFFLAGS, struct.pack("16sh", name.encode(), 0))
    return int(struct.unpack("16sh", answer)[1])


def become_first() -> None:
    """Adopt every orphan below, and end when whoever started this ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    for option, value in ((_PR_SET_CHILD_SUBREAPER, 1), (_PR_SET_PDEATHSIG, signal.SIGTERM)):
        if libc.prctl(option, value, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


def serve_api() -> subprocess.Popen[bytes]:
    """Start the stand-in and wait until it listens."""
    log = Path.home() / API_LOG
    log.touch()
    api = subprocess.Popen([sys.executable, "-m", "ccc_hookspecs.testing.api", str(PORT), str(log)], stdout=sys.stderr)
    for _ in range(500):
        with suppress(OSError), socket.create_connection(("127.0.0.1", PORT), timeout=1):
            return api
        time.sleep(0.02)
    raise RuntimeError("the stand-in for the Messages API does not listen")


def reap_until(pid: int) -> int:
    """Reap whatever ends, until this child does; returns its exit code."""
    while True:
        ended, status = os.wait()
        if ended == pid:
            return os.waitstatus_to_exitcode(status)


def end_all() -> None:
    """End every process below this one, however it got there."""
    for _ in range(50):
        left = psutil.Process().children(recursive=True)
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not left:
            return
        time.sleep(0.05)


def stop(*_: object) -> NoReturn:
    # A parent that dies tells once for each of its threads; only the first may break in, the rest would break off the clearing up.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(143)


def main() -> int:
    """Run the module; returns its exit code."""
    signal.signal(signal.SIGTERM, stop)
    become_first()
    # Nothing real may ever be reached from here, whatever else goes wrong.
    if ways_out():
        print(f"this is no namespace of its own: {ways_out()} lead out of it", file=sys.stderr)
        return 1
    bring_up_loopback()
    try:
        serve_api()
        module = subprocess.Popen([sys.executable, "-m", *sys.argv[1:]], env={**os.environ, FIRST_PROCESS: str(os.getpid())})
        return reap_until(module.pid)
    finally:
        end_all()


if __name__ == "__main__":
    raise SystemExit(main())
