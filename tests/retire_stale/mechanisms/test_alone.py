"""Each mechanism with the other two switched off, found and called as a host does it."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from ccc_hookspecs.config import load_config
from ccc_hookspecs.manager import PluginManager
from ccc_hookspecs.signals import headless_healed, headless_retired, plugin_failed
from ccc_hookspecs.values import Decision, Deliver, Hold, Injection, Respawn, TerminalLaunch, Tick
from ccc_plugins.retire_stale.mechanisms import terminal_launch, use_time, watcher
from ccc_plugins.retire_stale.plugin import plugin
from tests.retire_stale.mechanisms.conftest import Stage

NAMES = (use_time.NAME, terminal_launch.NAME, watcher.NAME)


def alone(mechanism: str, way: str = "blocked", **settings: str) -> PluginManager:
    """A manager with this mechanism active and the others blocked, flagged off, or disabled at run time."""
    others = [name for name in NAMES if name != mechanism]
    environ = {f"CCC_PLUGIN__RETIRE_STALE__{key.upper()}": value for key, value in settings.items()}
    if way == "blocked":
        environ["CCC_PLUGINS_BLOCK"] = ",".join(others)
    elif way == "flag":
        environ |= {f"CCC_PLUGIN_ENABLE__{name.upper().replace('.', '__')}": "false" for name in others}
    manager = PluginManager(load_config(environ=environ))
    manager.load()
    if way == "run time":
        for name in others:
            manager.disable(name)
    active = {status.name for status in manager.plugins() if status.state == "active" and status.name in NAMES}
    assert active == {mechanism}
    return manager


class Calls:
    """What a host asks of a manager, for one stage."""

    def __init__(self, stage: Stage, manager: PluginManager) -> None:
        self.stage, self.manager, self.ticks = stage, manager, 0

    def inject(self) -> Decision:
        headless = self.stage.head.headless
        with self.stage.host.session_lock(headless.session_id, 0):
            injection = Injection(session_id=headless.session_id, text="x", message_id=str(uuid.uuid4()), headless=headless)
            return self.manager.pre_inject(self.stage.host, injection)

    def launch(self) -> None:
        self.manager.on_terminal_launch(self.stage.host, TerminalLaunch(session_id=self.stage.head.session_id))

    def tick(self, times: int) -> None:
        for _ in range(times):
            self.ticks += 1
            self.manager.on_tick(self.stage.host, Tick(number=self.ticks, monotonic=float(self.ticks), interval=5.0))


WAYS = ("blocked", "flag", "run time")


@pytest.mark.parametrize("way", WAYS)
def test_use_time_alone(stage: Stage, way: str) -> None:
    """Ticks and launches do nothing; the inject waits for a busy stale headless, then heals a forked one and retires any other."""
    calls = Calls(stage, alone(use_time.NAME, way))
    stage.work("SLOW 1")
    stage.terminal("from terminal")
    calls.launch()
    calls.tick(3)
    assert isinstance(calls.inject(), Hold)
    stage.head.wait_idle()
    calls.tick(3)
    assert stage.head.alive
    assert calls.inject() == Deliver()
    stage.take_over("from terminal again")
    assert isinstance(calls.inject(), Respawn)
    assert [healed.mechanism for healed in stage.signals.of(headless_healed)] == [use_time.NAME]
    assert [retirement.mechanism for retirement in stage.signals.of(headless_retired)] == [use_time.NAME]


@pytest.mark.case("C86")
@pytest.mark.parametrize("way", WAYS)
def test_terminal_launch_alone(stage: Stage, way: str) -> None:
    """A text goes in whatever was written; a busy headless is deferred at the launch and retired by this mechanism's own tick."""
    calls = Calls(stage, alone(terminal_launch.NAME, way))
    stage.work("SLOW 1")
    calls.launch()
    stage.terminal("from terminal")
    calls.tick(2)
    assert isinstance(calls.inject(), Deliver)
    assert stage.head.alive
    stage.head.wait_idle()
    calls.tick(1)
    assert not stage.head.alive
    assert [retirement.mechanism for retirement in stage.signals.of(headless_retired)] == [terminal_launch.NAME]


@pytest.mark.parametrize("way", WAYS)
def test_watcher_alone(stage: Stage, way: str) -> None:
    """A launch does nothing and a text goes in; the second tick beside the terminal retires the idle headless."""
    calls = Calls(stage, alone(watcher.NAME, way))
    calls.launch()
    stage.terminal("from terminal")
    assert isinstance(calls.inject(), Deliver)
    calls.tick(1)
    assert stage.head.alive
    calls.tick(1)
    assert not stage.head.alive
    assert [retirement.mechanism for retirement in stage.signals.of(headless_retired)] == [watcher.NAME]


@pytest.mark.parametrize("mechanism", NAMES)
def test_each_mechanism_takes_the_settings(stage: Stage, mechanism: str) -> None:
    """Whichever of them is on, the table of the plugin is in force."""
    alone(mechanism, mode="shadow", catch_up_limit="7")
    assert (plugin.settings.mode, plugin.settings.catch_up_limit) == ("shadow", 7)


@pytest.mark.case("C92")
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the processes are psutil's to read")
def test_a_stale_headless_is_replaced_where_psutil_cannot_be_imported(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """All three mechanisms do their work, and none fails."""
    monkeypatch.setitem(sys.modules, "psutil", None)
    stage.terminal("from terminal")
    assert isinstance(stage.inject(), Respawn)
    stage.resume().ask("again")
    stage.launch()
    assert not stage.head.alive
    stage.resume().ask("and again")
    stage.tick(times=2)
    assert not stage.head.alive
    assert stage.signals.of(plugin_failed) == []


UNREADABLE = """
import sys
sys.modules["psutil"] = None
sys.platform = "darwin"
from ccc_hookspecs.manager import PluginManager
manager = PluginManager()
manager.load()
print(*sorted(status.name for status in manager.plugins() if status.state == "active"))
"""


@pytest.mark.case("C92")
def test_a_host_loads_the_plugin_on_a_system_that_needs_a_psutil_it_has_not(stage: Stage) -> None:
    """Every mechanism is active: what is missing is missed when a process is looked at, and not before."""
    command = [sys.executable, "-W", "error", "-c", UNREADABLE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=Path(__file__).parents[3])
    assert set(NAMES) <= set(done.stdout.split()), done.stderr


@pytest.mark.case("C92")
def test_where_no_process_can_be_looked_at_a_stale_one_gets_no_text(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without psutil where it is needed nothing is known to be idle: the text is held, and nothing is ended."""
    stage.terminal("from terminal")
    headless = stage.head.headless
    monkeypatch.setitem(sys.modules, "psutil", None)
    monkeypatch.setattr(sys, "platform", "darwin")
    with stage.host.session_lock(headless.session_id, 0):
        injection = Injection(session_id=headless.session_id, text="x", message_id=str(uuid.uuid4()), headless=headless)
        decision = use_time.pre_inject(stage.host, injection)
    assert isinstance(decision, Hold)
    monkeypatch.undo()
    assert stage.head.alive
