"""Whether a headless can be seen from here: a pid means something in one process namespace and until the next boot only."""

from __future__ import annotations

import errno
import os
from functools import cache
from pathlib import Path
from typing import Final

from ccc_hookspecs.host.liveness import Presence, presence
from ccc_hookspecs.host.records import Head

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE: Final = Path("/proc/self/ns/pid")


@cache
def boot_id() -> str | None:
    """The id of this boot of the machine; None where the system tells none."""
    try:
        return _BOOT_ID.read_text("ascii").strip() or None
    except (OSError, ValueError):
        return None


@cache
def pid_namespace() -> int | None:
    """What tells this process's pid namespace, as that of a container, from others; None where there are none."""
    try:
        return _NAMESPACE.stat().st_ino
    except OSError:
        return None


def in_sight(head: Head) -> bool:
    """Whether the head's pid is one of this process's own pid namespace, as far as is known."""
    return _same(head.namespace, pid_namespace())


def presence_of(head: Head) -> Presence:
    """As `presence`. `gone`: also when the machine was booted since. `unknown`: also while its process may live out of sight, or its start
    was not recorded.
    """
    if not _same(head.boot, boot_id()):
        return "gone"
    if not in_sight(head):
        return "gone" if _nobody_reads(head.fifo) else "unknown"
    return "unknown" if head.pid is None else presence(head.pid, head.start_time)


def cost_of_ending(head: Head) -> str:
    """What is lost when a person gives up on a head, in words."""
    if in_sight(head):
        return f"process {head.pid} is ended with whatever it does"
    return f"process {head.pid} is given up and lives on where it was started: if it works on, two processes will write the session"


def _same(recorded: object, here: object) -> bool:
    return recorded is None or here is None or recorded == here


def _nobody_reads(fifo: Path) -> bool:
    """Whether no process of this machine, in whatever namespace, has the FIFO open: a head has, from before it is started to its end."""
    try:
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        return error.errno == errno.ENXIO
    return False
