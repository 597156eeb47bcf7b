"""A host without a host: enough of `ccc_hookspecs.specs.Host` for a plugin's tests, and a record of every signal."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from blinker import NamedSignal

from ccc_hookspecs import signals
from ccc_hookspecs.errors import NotWritten, SessionLockTimeout
from ccc_hookspecs.host.pipe import input_of
from ccc_hookspecs.testing.harness import ClaudeHome, NotSeen, SimulatedHeadless
from ccc_hookspecs.values import Headless


class RecordingHost:
    """Holds its headless agents in memory and writes down what plugins tell it.

    `adopt` takes a simulated headless, or any other value of a headless. `releases` lists each process that was released, `written` each
    line that a plugin had written, with the headless as it was before.
    """

    def __init__(self, home: ClaudeHome) -> None:
        self._home = home
        self._agents: list[SimulatedHeadless | Headless] = []
        self._locks: dict[str, threading.RLock] = {}
        self._guard = threading.Lock()
        self.releases: list[Headless] = []
        self.written: list[tuple[Headless, bytes]] = []

    def adopt(self, agent: SimulatedHeadless | Headless) -> Headless:
        """Register a headless under its session; returns its value. A later one of the same session replaces it."""
        self._agents = [known for known in self._agents if _value(known).session_id != _value(agent).session_id] + [agent]
        return _value(agent)

    @property
    def state_dir(self) -> Path:
        """A private directory in the test's own home; made at the first use."""
        path = self._home.root / "host-state"
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    def headless_for(self, session_id: str) -> Headless | None:
        """The adopted headless of this session, None when there is none or its simulated process has ended."""
        return next((agent for agent in self.headless_agents() if agent.session_id == session_id), None)

    def headless_agents(self) -> Sequence[Headless]:
        """Every adopted headless, without the simulated ones that have ended."""
        return [_value(agent) for agent in self._agents if not isinstance(agent, SimulatedHeadless) or agent.alive]

    @contextmanager
    def session_lock(self, session_id: str, timeout: float) -> Iterator[None]:
        """The session's lock within this process, waited for `timeout` seconds. Raises `SessionLockTimeout`."""
        with self._guard:
            lock = self._locks.setdefault(session_id, threading.RLock())
        if not lock.acquire(timeout=max(0.0, timeout)):
            raise SessionLockTimeout(session_id, timeout)
        try:
            yield
        finally:
            lock.release()

    def write(self, headless: Headless, line: bytes) -> None:
        """Give the line to a simulated headless; of any other value only note the input in its `sent`. Raises `NotWritten`."""
        found = self.headless_for(headless.session_id)
        if found is None or (found.pid, found.start_time) != (headless.pid, headless.start_time):
            raise NotWritten(headless.session_id, f"process {headless.pid} is not the session's headless")
        agent = next(agent for agent in self._agents if _value(agent).pid == headless.pid)
        try:
            if isinstance(agent, SimulatedHeadless):
                agent.give(line)
            else:
                self._agents[self._agents.index(agent)] = _with_input(agent, line)
        except (OSError, ValueError, NotSeen) as error:
            raise NotWritten(headless.session_id, str(error)) from error
        self.written.append((found, line))

    def released(self, headless: Headless) -> None:
        """Note in `releases` that this process is gone, once for a pid, and know it no more."""
        if headless.pid not in {gone.pid for gone in self.releases}:
            self.releases.append(headless)
        self._agents = [agent for agent in self._agents if _value(agent).pid != headless.pid]

    def config_dir(self, headless: Headless) -> Path:
        """The headless's own configuration directory, or that of the home."""
        return headless.config_dir or self._home.config_dir


def _value(agent: SimulatedHeadless | Headless) -> Headless:
    return agent.headless if isinstance(agent, SimulatedHeadless) else agent


def _with_input(headless: Headless, line: bytes) -> Headless:
    given = input_of(line)
    if given is None or headless.sent is None or given.message_id in {one.message_id for one in headless.sent}:
        return headless
    return replace(headless, sent=(*headless.sent, given))


@dataclass(frozen=True, slots=True)
class Sent:
    """One signal that was sent: its name, the sender, which is the mechanism's or plugin's name, and the value."""

    signal: str
    sender: str
    event: Any


class CapturedSignals:
    """Every signal of `ccc_hookspecs.signals`, in the order sent, from `connect` to `disconnect`."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self._receivers: list[tuple[NamedSignal, Any]] = []

    def connect(self) -> None:
        """Write down every signal from now on."""
        for signal in signals.namespace.values():
            receiver = self._receiver(signal.name)
            signal.connect(receiver)
            self._receivers.append((signal, receiver))

    def disconnect(self) -> None:
        """Write down nothing more; what was written stays. Harmless when repeated."""
        while self._receivers:
            signal, receiver = self._receivers.pop()
            signal.disconnect(receiver)

    def of(self, signal: NamedSignal | str) -> list[Any]:
        """The values that were sent with this signal, oldest first."""
        name = signal if isinstance(signal, str) else signal.name
        return [sent.event for sent in self.sent if sent.signal == name]

    def names(self) -> list[str]:
        """The names of the signals sent, oldest first."""
        return [sent.signal for sent in self.sent]

    def _receiver(self, name: str) -> Any:
        def receive(sender: str, event: Any) -> None:
            self.sent.append(Sent(name, sender, event))

        return receive
