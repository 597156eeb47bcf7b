"""A stand-in for CCC with the hooks attached, and a plugin that answers what the test says."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ccc_hookspecs.config import Config
from ccc_hookspecs.integrations.command_center import Attachment, attach
from ccc_hookspecs.manager import PluginManager
from ccc_hookspecs.specs import Host, hookimpl
from ccc_hookspecs.values import Decision, Deliver, Hold, Injection, Respawn, TerminalLaunch, Tick
from tests.ccc_hookspecs.integrations.standin_spawns import started

STANDIN = Path(__file__).with_name("standin_server.py")
WAIT_SECONDS = 20.0


def wait_for(what: Callable[[], Any]) -> Any:
    """The first true value that `what` gives; fails when there is none in time."""
    end = time.monotonic() + WAIT_SECONDS
    while not (value := what()):
        assert time.monotonic() < end, f"never came: {what}"
        time.sleep(0.01)
    return value


class Scripted:
    """A plugin that answers `answer`, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answer: Callable[[Host, Injection], Decision | None] = lambda ccc, injection: None
        self.asked: list[Injection] = []
        self.launches: list[TerminalLaunch] = []
        self.ticks: list[Tick] = []

    @hookimpl
    def pre_inject(self, ccc: Host, injection: Injection) -> Decision | None:
        self.asked.append(injection)
        return self.answer(ccc, injection)

    @hookimpl
    def on_terminal_launch(self, ccc: Host, launch: TerminalLaunch) -> None:
        self.launches.append(launch)

    @hookimpl
    def on_tick(self, ccc: Host, tick: Tick) -> None:
        self.ticks.append(tick)

    def hold(self, *signs: str) -> None:
        """From now on, hold whatever goes to a process that was given something before."""
        self.answer = lambda ccc, injection: Hold(reason="stale and busy", signs=signs) if injection.headless.sent else None

    def retire(self, catch_up: str | None = None) -> None:
        """From now on, end such a process and have a fresh one started, which lacks these turns."""

        def answer(ccc: Host, injection: Injection) -> Decision | None:
            if not injection.headless.sent:
                return Deliver(catch_up=catch_up)
            end(injection.headless.pid)
            ccc.released(injection.headless)
            return Respawn(reason="stale")

        self.answer = answer


def disk_full(*_: object) -> int:
    """What stands in for a write when the disk is full."""
    raise OSError(28, "No space left on device")


def end(pid: int) -> None:
    """End a process of the stand-in and wait until it is gone or a zombie."""
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not Path(f"/proc/{pid}/stat").exists() or Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX")


class Ccc:
    """One running CCC: the stand-in's module, what is attached to it, and the plugin."""

    def __init__(self, home: Path, *, attached: bool = True) -> None:
        self.home = home
        self.plugin = Scripted()
        spec = importlib.util.spec_from_file_location("standin_server", STANDIN)
        assert spec is not None
        assert spec.loader is not None
        self.server: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.server)
        self._attachment = self.attach() if attached else None

    @property
    def attachment(self) -> Attachment:
        assert self._attachment is not None
        return self._attachment

    def attach(self) -> Attachment:
        manager = PluginManager(Config())
        manager.register(self.plugin, "scripted")
        module: ModuleType = self.server
        self._attachment = attach(module, manager)
        # The tests say when a tick is.
        self._attachment.ticker.stop()
        return self._attachment

    def tick(self, number: int = 1) -> None:
        self.attachment.tick(Tick(number=number, monotonic=time.monotonic(), interval=5.0))

    @contextmanager
    def locked(self, session_id: str) -> Iterator[None]:
        """Meanwhile another thread has the session's lock."""
        taken, done = threading.Event(), threading.Event()

        def other() -> None:
            with self.attachment.host.session_lock(session_id, 5):
                taken.set()
                done.wait(20)

        thread = threading.Thread(target=other)
        thread.start()
        taken.wait(20)
        try:
            yield
        finally:
            done.set()
            thread.join()

    def spawn(self, text: str = "first") -> tuple[str, dict[str, Any]]:
        """A session that has had one turn; its id and its row."""
        session_id = str(uuid.uuid4())
        self.server.spawn_session(text, session_id)
        self.heard(session_id, text)
        return session_id, self.row(session_id)

    def row(self, session_id: str) -> dict[str, Any]:
        row: dict[str, Any] = self.server._find(session_id)
        return row

    def texts(self, session_id: str) -> list[list[str]]:
        """What the session's processes were given, in order: the text blocks of each input."""
        found = []
        for log in sorted((self.home / "logs").glob("*.log"), key=lambda path: path.stat().st_ctime_ns):
            events = [json.loads(line) for line in log.read_text().splitlines()]
            found += [json.loads(e["result"]) for e in events if e["type"] == "result" and e["session_id"] == session_id and e["result"]]
        return found

    def heard(self, session_id: str, text: str) -> list[str]:
        """Wait until a process has answered an input whose last block is `text`; that input's blocks."""
        found: list[str] = wait_for(lambda: next((one for one in self.texts(session_id) if one[-1] == text), None))
        return found

    def delivered(self, session_id: str, text: str) -> list[str]:
        """Let CCC deliver its queue until this text has arrived."""
        wait_for(lambda: (self.server.drain(), any(one[-1] == text for one in self.texts(session_id)))[1])
        return self.heard(session_id, text)

    def activity(self, verb: str) -> list[str]:
        return [detail for _, told, detail in self.server.activity if told == verb]

    def go(self) -> None:
        """Let the texts that begin with SLOW be answered."""
        (self.home / "go").touch()

    def stop(self) -> None:
        """The host is gone; its processes live on."""
        if self._attachment is not None:
            self._attachment.detach()
        for row in self.server._spawned_sessions:
            if row["stdin_fd"] is not None:
                os.close(row["stdin_fd"])


class Home:
    """The directory of one user, in which CCC runs, stops and runs again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.running: list[Ccc] = []

    def start(self, *, attached: bool = True) -> Ccc:
        ccc = Ccc(self.path, attached=attached)
        self.running.append(ccc)
        return ccc

    def restart(self, ccc: Ccc) -> Ccc:
        self.stop(ccc)
        after = self.start()
        after.server._reattach_spawned_orphans()
        return after

    def stop(self, ccc: Ccc) -> None:
        ccc.stop()
        self.running.remove(ccc)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A user's directory, at first without a running CCC."""
    monkeypatch.setenv("STANDIN_HOME", str(tmp_path))
    home = Home(tmp_path)
    before = len(started)
    yield home
    for ccc in list(home.running):
        home.stop(ccc)
    while len(started) > before:
        proc = started.pop()
        with suppress(ProcessLookupError):
            proc.kill()
        proc.wait(WAIT_SECONDS)


@pytest.fixture
def ccc(home: Home) -> Ccc:
    """CCC, running with the hooks attached."""
    return home.start()
