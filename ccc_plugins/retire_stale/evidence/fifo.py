"""What a headless has not read yet of what was written to it."""

from __future__ import annotations

import array
import fcntl
import os
import stat
import termios
from pathlib import Path


def unread_bytes(fifo: Path) -> int | None:
    """Bytes in a FIFO that its reader has not taken; None when there is no FIFO or it cannot be looked into.

    Opens the reading end for a moment and asks (`FIONREAD`), so nothing is consumed, and it never waits. Because a headless holds
    its FIFO open for both reading and writing, coming and going changes nothing for it: it is no writer, so nobody sees an end of
    file, and as the headless stays a reader nobody gets SIGPIPE. With no such headless alive two things follow for a writer, and
    so this must only be asked about a living one: an open for writing that waits for a reader ends when we come, and a write in
    that moment goes to nobody. 0 is no proof that the reader took everything: once nobody has the FIFO open its content is gone.
    """
    try:
        fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            return None
        count = array.array("i", [0])
        fcntl.ioctl(fd, termios.FIONREAD, count)
        return count[0]
    except OSError:
        return None
    finally:
        os.close(fd)
