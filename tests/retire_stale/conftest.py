"""A host, fake headless processes and an ear for signals, for the tests of retirement and of what it keeps on disk."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import filelock
import psutil
import pytest

from ccc_hookspecs.errors import NotWritten, SessionLockTimeout
from ccc_hookspecs.outcomes import Facts, Outcome
from ccc_hookspecs.processes import start_time
from ccc_hookspecs.signals import namespace
from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.identity import presence
from ccc_plugins.retire_stale.journal import Journal
from ccc_plugins.retire_stale.retirement import Order, retire
from ccc_plugins.retire_stale.settings import Settings

FAKE = Path(__file__).with_name("fake_headless.py")

FACTS: dict[str, Facts] = {
    "idle": Facts(attribution="stale", attribution_reason="1 foreign record", idleness="idle", transcript_size=1200, log_size=800),
    "busy": Facts(attribution="stale", attribution_reason="1 foreign record", idleness="busy", signs=("open turn",)),
    "unknown": Facts(attribution="stale", attribution_reason="1 foreign record", idleness="unknown"),
}

HEADLESS = Headless(session_id="72350742-dff3-4ee0-a645-6602d6d2b86e", pid=4_000_001, start_time=17.25)
PID, STARTED = 4_000_001, 17.25
"""A headless that never was, for what is only written down."""

Look: TypeAlias = str | Facts | Callable[[], str | Facts]
"""What a judge answers: facts, a key of `FACTS`, or what computes either."""


@dataclass
class FakeHost:
    """A host that only notes what it is told. Its locks hold across processes, as a real host's do."""

    state_dir: Path
    gone: list[Headless] = field(default_factory=list)
    on_release: Callable[[], None] = lambda: None

    def headless_for(self, session_id: str) -> Headless | None:
        return None

    def headless_agents(self) -> Sequence[Headless]:
        return ()

    @contextmanager
    def _locked(self, session_id: str, timeout: float) -> Iterator[None]:
        lock = filelock.FileLock(self.state_dir / f"{session_id}.lock")
        try:
            with lock.acquire(timeout=timeout):
                yield
        except filelock.Timeout as error:
            raise SessionLockTimeout(session_id, timeout) from error

    def session_lock(self, session_id: str, timeout: float) -> AbstractContextManager[None]:
        return self._locked(session_id, timeout)

    def write(self, headless: Headless, line: bytes) -> None:
        raise NotWritten(headless.session_id, "it has no FIFO")

    def released(self, headless: Headless) -> None:
        self.gone.append(headless)
        self.on_release()

    def config_dir(self, headless: Headless) -> Path:
        return self.state_dir


@dataclass
class Fake:
    """A running fake headless. `children`: the pids of what it started, in the order asked for."""

    process: subprocess.Popen[str]
    headless: Headless
    children: tuple[int, ...]
    children_started: tuple[float, ...]

    @property
    def alive(self) -> bool:
        return presence(self.headless.pid, self.headless.start_time) == "alive"

    def child_alive(self, index: int) -> bool:
        return presence(self.children[index], self.children_started[index]) == "alive"

    def state(self) -> str:
        return str(psutil.Process(self.headless.pid).status())

    @property
    def goes_on(self) -> bool:
        """Alive, and not left stopped."""
        return self.alive and self.state() in ("sleeping", "running")

    def kill_unreaped(self) -> None:
        """End it as an outsider would, and wait until it is a zombie."""
        self.process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, self.headless.pid, os.WEXITED | os.WNOWAIT)


@dataclass
class Lab:
    """Everything a retirement needs. `looks` counts how often an order of `order` was judged."""

    host: FakeHost
    journal: Journal
    settings: Settings = field(
        default_factory=lambda: Settings(settle_seconds=30.0, freeze_seconds=10.0, terminate_seconds=60.0, kill_seconds=30.0)
    )
    looks: int = 0
    fakes: list[Fake] = field(default_factory=list)

    def fake(self, *options: str, **popen: Any) -> Fake:
        """Start a fake headless, of its own session unless `popen` says otherwise, and wait until it is ready."""
        command = [sys.executable, "-I", "-S", str(FAKE), *options]
        # The children hold stderr open past the parent's end, stdout is read until the parent is ready.
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **({"start_new_session": True} | popen)
        )
        assert process.stdout is not None
        ready, *children = process.stdout.readline().split()
        assert ready == "ready"
        pids = tuple(int(child) for child in children)
        headless = Headless(session_id=str(uuid.uuid4()), pid=process.pid, start_time=start_time(process.pid))
        fake = Fake(process, headless, pids, tuple(_started(pid) for pid in pids))
        self.fakes.append(fake)
        return fake

    def order(self, headless: Headless, *looks: Look, **changes: Any) -> Order:
        """An order whose looks answer these in turn, the last of them from then on; idle when none are given."""
        answers = list(looks) or ["idle"]

        def judge() -> Facts:
            answer = answers[min(self.looks, len(answers) - 1)]
            self.looks += 1
            found = answer() if callable(answer) else answer
            return FACTS[found] if isinstance(found, str) else found

        usual: dict[str, Any] = {
            "mechanism": "retire_stale.watcher",
            "reason": "a terminal took a turn",
            "settled": lambda: True,
            "wanted": lambda facts: None,
        }
        return Order(headless=headless, judge=judge, **(usual | changes))

    def retire(self, headless: Headless, *looks: Look, **changes: Any) -> Outcome:
        """Retire under the session's lock, as every caller does."""
        with self.host.session_lock(headless.session_id, 10):
            return retire(self.host, self.order(headless, *looks, **changes), self.settings, self.journal)


def _started(pid: int) -> float:
    started = start_time(pid)
    assert started is not None
    return started


def _reap(fake: Fake) -> None:
    for pid, started in zip(fake.children, fake.children_started, strict=True):
        if presence(pid, started) == "alive":
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    if fake.process.poll() is None:
        fake.process.kill()
    fake.process.wait(10)
    if fake.process.stdout is not None:
        fake.process.stdout.close()


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    """The host's private directory, not made yet."""
    return tmp_path / "state"


@pytest.fixture
def journal(state_dir: Path) -> Journal:
    """The journal in that directory."""
    return Journal(state_dir)


def begin(journal: Journal, headless: Headless = HEADLESS, *, freezes: bool = True) -> int:
    """Record the intent to retire a headless; returns its id."""
    return journal.begin(headless, mechanism="retire_stale.watcher", reason="a terminal took a turn", freezes=freezes)


@pytest.fixture
def lab(state_dir: Path) -> Iterator[Lab]:
    """A host with a journal; every fake headless started through it is gone afterwards, with its children."""
    state_dir.mkdir(mode=0o700)
    lab = Lab(FakeHost(state_dir), Journal(state_dir, busy_seconds=5))
    yield lab
    for fake in lab.fakes:
        _reap(fake)


@pytest.fixture(params=["pidfd", "no pidfd", "no procfs"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The means that the operating system has: Linux, an older or sandboxed one, and one without `/proc`, as macOS is."""
    if request.param == "pidfd" and not hasattr(os, "pidfd_open"):
        pytest.skip("this system has no pidfd")
    if request.param != "pidfd" and hasattr(os, "pidfd_open"):
        monkeypatch.setattr(os, "pidfd_open", _refuse)
    if request.param == "no procfs":
        monkeypatch.setattr(sys, "platform", "darwin")
    return str(request.param)


def _refuse(pid: int, flags: int = 0) -> int:
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


@pytest.fixture
def heard() -> Iterator[list[tuple[str, str, Any]]]:
    """Every signal sent during the test: its name, its sender and its event."""
    sent: list[tuple[str, str, Any]] = []
    with _ears(sent):
        yield sent


@contextmanager
def _ears(sent: list[tuple[str, str, Any]]) -> Iterator[None]:
    def ear(name: str) -> Callable[..., None]:
        return lambda sender, event: sent.append((name, sender, event))

    ears = [(signal_, ear(name)) for name, signal_ in namespace.items()]
    for signal_, listener in ears:
        signal_.connect(listener, weak=False)
    try:
        yield
    finally:
        for signal_, listener in ears:
            signal_.disconnect(listener)
