"""The stage of the demonstration: a home of its own, hosts with chosen mechanisms, and people's terminals."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ccc_hookspecs.claude.paths import find_transcript
from ccc_hookspecs.claude.registry import read_registry
from ccc_hookspecs.host.host import EmbeddedHost
from ccc_hookspecs.host.records import Message, Session
from ccc_hookspecs.host.stream import Answer
from ccc_hookspecs.manager import PluginManager
from ccc_hookspecs.processes import start_time

PATIENCE: Final = 60.0
ARGUMENTS: Final = ("--dangerously-skip-permissions",)
"""Nobody is there to be asked, and in the demonstration no tool runs."""

ON_A_TERMINAL: Final = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
"""Makes standard input the controlling terminal, as a terminal's program has one, and then becomes the command."""


class NotAsTold(Exception):
    """Something did not happen as the demonstration says."""


def wait(condition: Callable[[], object], what: str) -> None:
    """Wait until `condition()` is true. Raises `NotAsTold`, naming `what`."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise NotAsTold(f"{what}: not within {PATIENCE:g} s")
        time.sleep(0.02)


@dataclass(slots=True)
class Stage:
    """`root`: a directory of its own, which holds home, project and state. `claude`: the program. `typing`: seconds before Enter. `slow`:
    seconds of a long turn, in which a terminal can take one.
    """

    root: Path
    claude: str
    typing: float
    slow: float
    terminals: list[Terminal] = field(default_factory=list)
    hosts: list[EmbeddedHost] = field(default_factory=list)

    @property
    def project(self) -> Path:
        """The directory in which the sessions run."""
        return self.root / "project"

    @property
    def config_dir(self) -> Path:
        """Where their Claude Code keeps its files."""
        return self.root / "home" / ".claude"

    def host(self, place: str, mechanisms: Sequence[str]) -> EmbeddedHost:
        """A host of its own state directory, with these plugins and no other. Raises `NotAsTold` when one is not there."""
        manager = PluginManager()
        if mechanisms:
            for status in manager.load():
                if status.name not in mechanisms:
                    manager.disable(status.name)
        states = {status.name: status for status in manager.plugins()}
        for name in mechanisms:
            if name not in states or states[name].state != "active":
                raise NotAsTold(f"plugin {name} is {f'{states[name].state}: {states[name].reason}' if name in states else 'not installed'}")
        host = EmbeddedHost(self.root / "state" / place, manager=manager, claude=self.claude)
        self.hosts.append(host)
        return host

    def begin(self, host: EmbeddedHost) -> Session:
        """A session in the project."""
        return host.begin(self.project, ARGUMENTS)

    def terminal(self, session: Session, command: Sequence[str] = ()) -> Terminal:
        """Somebody opens the session in a terminal; returns when it has loaded it. `command`: as a host gave it."""
        terminal = Terminal(self, session, command or [self.claude, "--resume", session.session_id])
        self.terminals.append(terminal)
        terminal.wait_idle()
        return terminal

    def records(self, session: Session) -> list[dict[str, Any]]:
        """The session's transcript, as far as its lines are whole."""
        path = find_transcript(self.config_dir, session.session_id, session.cwd)
        lines = [] if path is None else path.read_bytes().split(b"\n")[:-1]
        return [json.loads(line) for line in lines if line.startswith(b"{")]

    def close(self) -> None:
        """End every process of the demonstration."""
        for terminal in self.terminals:
            terminal.close()
        for host in self.hosts:
            for head in host.store.heads.all_live():
                host.agents.end(head, "the demonstration is over")


class Terminal:
    """An interactive `claude` on a terminal of its own, and whoever sits at it."""

    def __init__(self, stage: Stage, session: Session, command: Sequence[str]) -> None:
        self._stage, self._session = stage, session
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 150, 0, 0))
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", ON_A_TERMINAL, *command],
                cwd=session.cwd,
                stdin=slave,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
                env={**os.environ, "TERM": "xterm-256color"},
            )
        finally:
            os.close(slave)
        self._started = start_time(self._process.pid)
        threading.Thread(target=self._drain, daemon=True).start()

    @property
    def pid(self) -> int:
        """The process id of its Claude Code."""
        return self._process.pid

    def say(self, text: str) -> str:
        """Type a text, wait for the answer, and return it."""
        before = len(self._stage.records(self._session))
        self._type(text)
        wait(lambda: self._answer(text, before) is not None, "the terminal's answer")
        self.wait_idle()
        return self._answer(text, before) or ""

    def leave(self) -> None:
        """Leave by `/exit`."""
        self._type("/exit")
        wait(lambda: self._process.poll() is not None, "the terminal's end")

    def wait_idle(self) -> None:
        """Wait until it says of itself that it is idle."""
        wait(lambda: self._status() == "idle", "the terminal idle")

    def close(self) -> None:
        """End it."""
        if self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            self._process.kill()
            self._process.wait()
        with contextlib.suppress(OSError):
            os.close(self._master)

    def _type(self, text: str) -> None:
        os.write(self._master, text.encode())
        # Typed at once with the text, Enter would be taken for a part of a paste.
        time.sleep(self._stage.typing)
        os.write(self._master, b"\r")

    def _status(self) -> str | None:
        record = read_registry(self._stage.config_dir).of(self._process.pid, self._started)
        return None if record is None else record.status

    def _answer(self, text: str, start: int) -> str | None:
        """The last text of an assistant after the record of this prompt."""
        asked, answer = False, None
        for record in self._stage.records(self._session)[start:]:
            said = texts_of(record)
            asked |= record["type"] == "user" and said[-1:] == [text]
            if asked and record["type"] == "assistant" and said:
                answer = said[-1]
        return answer

    def _drain(self) -> None:
        # What a program writes to a terminal that nobody reads stops it in the end.
        with contextlib.suppress(OSError):
            while select.select([self._master], [], [])[0] and os.read(self._master, 65536):
                pass


def texts_of(record: dict[str, Any]) -> list[str]:
    """The texts of a record's message."""
    content = (record.get("message") or {}).get("content")
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content or () if isinstance(block, dict) and block.get("type") == "text"]


def delivered(host: EmbeddedHost, message: Message) -> Iterator[str]:
    """Drive a message to its answer; yields the states it goes through, and then the answer with a `<` before it."""
    state, seen = "", message
    while seen.state != "delivered":
        if seen.state != state:
            state = seen.state
            yield state
        host.drive(message.session_id)
        time.sleep(0.05)
        seen = host.store.outbox.get(message.message_id) or seen
    head = host.store.heads.get(seen.head_id or 0)
    if head is None:
        raise NotAsTold("the message went nowhere")
    answer = Answer(seen.message_id, head.log, seen.log_offset)

    def over() -> bool:
        answer.poll(delivered=True)
        return answer.done

    wait(over, "an answer")
    yield "<" + (answer.parts[-1] if answer.parts else "")
