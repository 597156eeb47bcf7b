"""A session with a simulated headless, a host that knows it, and the three mechanisms as they are."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import psutil
import pytest

from ccc_hookspecs.testing.harness import SimulatedHeadless, SimulatedTerminal, Simulator, wait_until
from ccc_hookspecs.testing.recording import CapturedSignals, RecordingHost
from ccc_hookspecs.values import Decision, Injection, TerminalLaunch, Tick
from ccc_plugins.retire_stale.mechanisms import terminal_launch, use_time, watcher
from ccc_plugins.retire_stale.plugin import plugin
from ccc_plugins.retire_stale.settings import Settings

PATIENT = Settings(settle_seconds=30.0, freeze_seconds=10.0, terminate_seconds=60.0, kill_seconds=30.0, heal_seconds=60.0)
"""What may take its time on a busy machine."""


@dataclass
class Stage:
    """One session and everything that a mechanism's test does with it."""

    simulator: Simulator
    host: RecordingHost
    signals: CapturedSignals
    head: SimulatedHeadless
    ticks: int = field(default=0)
    tools: list[psutil.Process] = field(default_factory=list)

    def work(self, text: str) -> None:
        """Give the headless this to do, and wait until its log shows the turn."""
        turns = len(self.head.events("system", "init"))
        self.head.send(text)
        self.head.wait_event("system", "init", count=turns + 1)

    def keep_busy(self, text: str) -> None:
        """Have the headless run a tool that does not end by itself; the tool is ended with the test."""
        self.head.send(text)
        wait_until(lambda: psutil.Process(self.head.pid).children(), "a running tool")
        self.tools += psutil.Process(self.head.pid).children(recursive=True)

    def end_tools(self) -> None:
        """End what `keep_busy` started, and whatever that started since."""
        for tool in self.tools:
            with contextlib.suppress(psutil.NoSuchProcess):
                for process in (*tool.children(recursive=True), tool):
                    process.kill()

    def terminal(self, *texts: str) -> SimulatedTerminal:
        """Open a terminal on the session and take these turns in it; it stays open."""
        terminal = self.simulator.terminal(self.head.session_id)
        for text in texts:
            terminal.ask(text)
        return terminal

    def take_over(self, *texts: str) -> None:
        """Take these turns in a terminal and leave it."""
        self.terminal(*texts).exit()

    def inject(self, text: str = "next", *, overrule: bool = False) -> Decision | None:
        """Ask the use-time mechanism, with the session's lock held as a host does."""
        headless = self.host.headless_for(self.head.session_id)
        assert headless is not None
        injection = Injection(
            session_id=self.head.session_id, text=text, message_id=str(uuid.uuid4()), headless=headless, overrule=overrule
        )
        with self.host.session_lock(self.head.session_id, 0):
            return use_time.pre_inject(self.host, injection)

    def launch(self) -> None:
        terminal_launch.on_terminal_launch(self.host, TerminalLaunch(session_id=self.head.session_id))

    def tick(self, mechanism: object = watcher, times: int = 1) -> None:
        """This many beats for one mechanism."""
        for _ in range(times):
            self.ticks += 1
            tick = Tick(number=self.ticks, monotonic=float(self.ticks), interval=5.0)
            mechanism.on_tick(self.host, tick)  # type: ignore[attr-defined]

    def resume(self) -> SimulatedHeadless:
        """A fresh headless in place of the retired one."""
        self.head = self.simulator.headless(self.head.session_id)
        self.host.adopt(self.head)
        return self.head

    def use(self, **settings: object) -> None:
        """Run the mechanisms with these settings."""
        plugin.use(replace(plugin.settings, **settings))  # type: ignore[arg-type]


@pytest.fixture
def stage(simulator: Simulator, recording_host: RecordingHost, captured_signals: CapturedSignals) -> Iterator[Stage]:
    """A session whose headless has answered once and is idle."""
    plugin.use(PATIENT)
    head = simulator.headless()
    head.ask("first from headless")
    recording_host.adopt(head)
    made = Stage(simulator, recording_host, captured_signals, head)
    yield made
    made.end_tools()
    plugin.use(PATIENT)
