"""A terminal: the real program in a window of a tmux server, with a person at the keys."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from tests.real.waiting import NotSeen, wait_until

TYPED_SECONDS = 0.5
"""How long a text stands in the input field before Enter: typed at once with it, Enter is taken for a part of a paste."""
ENTER_SECONDS = 2.0
"""How long an Enter may take to be seen before it counts as lost."""

_FIELD = re.compile("^\u2500{20,}.*\n[>\u276f]", re.MULTILINE)


class Terminal:
    """A window that runs `command`, which may become another program. Its tmux server is that of `environ` and holds no other window."""

    def __init__(self, command: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        size = ("-x", "180", "-y", "50")
        begin = ("tmux", "-f", "/dev/null", "new-session", "-d", "-s", "t", *size, "-c", str(cwd), "--", *command)
        # The server of the terminal before may still be on its way out.
        wait_until(lambda: subprocess.run(begin, env=self._environ, capture_output=True, check=False).returncode == 0, "a window")
        self._process = psutil.Process(int(self._tmux("display-message", "-p", "-t", "t", "#{pane_pid}")))

    def wait_ready(self) -> None:
        """Wait until it takes keys."""
        wait_until(lambda: _FIELD.search(self.screen()) is not None, "the input field of the terminal")

    def screen(self) -> str:
        """What the window shows; nothing once it is closed."""
        return self._tmux("capture-pane", "-p", "-J", "-t", "t", check=False)

    def type(self, text: str) -> None:
        """Type a text and Enter, and wait until it was taken. An Enter that comes too early is lost, so it may take several."""
        self.wait_ready()
        self._tmux("send-keys", "-t", "t", "-l", "--", text)
        wait_until(lambda: self._holds(text), f"{text!r} in the terminal's input field")
        while self._holds(text):
            time.sleep(TYPED_SECONDS)
            self._tmux("send-keys", "-t", "t", "Enter", check=False)
            with contextlib.suppress(NotSeen):
                wait_until(lambda: not self._holds(text), f"{text!r} taken", ENTER_SECONDS)

    def _holds(self, text: str) -> bool:
        return re.search(f"{_FIELD.pattern}\\s*{re.escape(text)}", self.screen(), re.MULTILINE) is not None

    def rewind(self, turns: int, choice: str) -> None:
        """Go back by so many turns, and take this choice of what to do with them, as `/rewind` names it; the input field is empty then."""
        self.type("/rewind")
        wait_until(lambda: "Restore" in self.screen(), "the turns to go back to")
        for _ in range(turns):
            before = self.screen()
            self._tmux("send-keys", "-t", "t", "Up")
            wait_until(lambda: self.screen() != before, "an earlier turn")  # noqa: B023 - waited for here
        self._tmux("send-keys", "-t", "t", "Enter")
        wait_until(lambda: choice in self.screen(), "the choices")
        while not self._points_at(choice):
            before = self.screen()
            self._tmux("send-keys", "-t", "t", "Down")
            wait_until(lambda: self.screen() != before, "the next choice")  # noqa: B023 - waited for here
        self._tmux("send-keys", "-t", "t", "Enter")
        self.wait_ready()
        self._tmux("send-keys", "-t", "t", "C-u")

    def _points_at(self, choice: str) -> bool:
        return re.search(rf"^\s*[>\u276f]\s*\d+\. {re.escape(choice)}", self.screen(), re.MULTILINE) is not None

    def leave(self) -> None:
        """Leave by `/exit`, and wait until the program has ended."""
        self.type("/exit")
        wait_until(lambda: not self.alive, "the end of the terminal")

    def close(self) -> None:
        """Close the window on whatever runs in it, and wait until that has ended. Harmless when repeated."""
        self._tmux("kill-server", check=False)
        wait_until(lambda: not self.alive, "the end of the terminal")

    @property
    def alive(self) -> bool:
        try:
            return self._process.is_running() and self._process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def _tmux(self, *arguments: str, check: bool = True) -> str:
        command = ["tmux", *arguments]
        done = subprocess.run(command, env=self._environ, capture_output=True, encoding="utf-8", timeout=20, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout
