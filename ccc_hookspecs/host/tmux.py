"""Typing a text into a program that sits in a tmux pane."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ccc_hookspecs.claude.text import well_formed
from ccc_hookspecs.errors import CccError

_FORMAT: Final = "#{pane_pid} #{pane_id} #{pane_in_mode}"
_TIMEOUT: Final = 10.0
ENTER_SECONDS: Final = 0.5
"""How long a text is left in the input field before Enter: typed at once with it, Enter is taken for a part of a paste."""


class TmuxError(CccError):
    """tmux refused. The message is its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pane:
    """A pane of the tmux server behind `socket`."""

    socket: Path
    pane_id: str
    pid: int
    in_mode: bool = False

    def type(self, text: str) -> None:
        """Type a text and Enter, whatever keys its characters would be. Raises `TmuxError`."""
        if self.in_mode:
            self._run("send-keys", "-t", self.pane_id, "-X", "cancel")
        if "\n" in text:
            # As a bracketed paste, since a typed line feed would be Enter.
            self._run("load-buffer", "-b", f"ccc-{os.getpid()}", "-", given=text)
            self._run("paste-buffer", "-p", "-d", "-r", "-b", f"ccc-{os.getpid()}", "-t", self.pane_id)
        else:
            self._run("send-keys", "-t", self.pane_id, "-l", "--", text)
        time.sleep(ENTER_SECONDS)
        self._run("send-keys", "-t", self.pane_id, "Enter")

    def _run(self, *arguments: str, given: str | None = None) -> None:
        _tmux(self.socket, *arguments, given=given)


def typable(text: str) -> str:
    """A text as it may be typed: without control characters, and so that it stays a text.

    A leading `!` or `#` would switch the input field into another mode, a trailing backslash would turn Enter into a line
    feed, and a trailing word may have a list of completions open: a space prevents each.
    """
    lines = well_formed(text).replace("\r\n", "\n").replace("\r", "\n")
    kept = "".join(char for char in lines if char in "\n\t" or char.isprintable()).strip("\n")
    return f"{' ' if kept[:1] in ('!', '#') else ''}{kept} "


def pane_of(ancestors: tuple[int, ...]) -> Pane | None:
    """The pane in which one of these processes is the first one, the nearest of them first; None when there is none."""
    if shutil.which("tmux") is None:
        return None
    panes = {pane.pid: pane for socket in _sockets() for pane in _panes(socket)}
    return next((panes[pid] for pid in ancestors if pid in panes), None)


def _sockets() -> tuple[Path, ...]:
    folder = Path(os.environ.get("TMUX_TMPDIR") or "/tmp", f"tmux-{os.getuid()}")
    own = os.environ.get("TMUX", "").partition(",")[0]
    try:
        found = sorted(folder.iterdir())
    except OSError:
        found = []
    return tuple(dict.fromkeys([*([Path(own)] if own else []), *found]))


def _panes(socket: Path) -> list[Pane]:
    try:
        listed = _tmux(socket, "list-panes", "-a", "-F", _FORMAT)
    except TmuxError:
        # A socket that a dead server left behind.
        return []
    rows = [line.split() for line in listed.splitlines()]
    return [Pane(socket=socket, pid=int(row[0]), pane_id=row[1], in_mode=row[2] == "1") for row in rows if len(row) == 3]


def _tmux(socket: Path, *arguments: str, given: str | None = None) -> str:
    try:
        done = subprocess.run(
            ["tmux", "-S", str(socket), *arguments], input=given, capture_output=True, encoding="utf-8", timeout=_TIMEOUT, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise TmuxError(f"tmux {arguments[0]}: {getattr(error, 'stderr', None) or error}".strip()) from error
    return done.stdout
