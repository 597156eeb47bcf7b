"""What a plugin begins in `configure` and ends in `unconfigure`, and what goes on beside a slow one."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ccc_hookspecs import Deliver, Hold, Veto, hookimpl
from ccc_hookspecs.config import PluginSettings, load_config
from ccc_hookspecs.errors import ConfigError, PluginLoadError
from ccc_hookspecs.manager import PluginManager
from ccc_hookspecs.outcomes import PluginFailure
from ccc_hookspecs.signals import emit, retirement_proposed
from tests.ccc_hookspecs.samples import GOOD, HOST, INJECTION, ONLY_THE_TESTS_OWN, Answering, Site, Unspeakable, config, states


class Guard:
    """A plugin that vetoes through a receiver of its own, and notes what is called."""

    def __init__(self, *errors: BaseException) -> None:
        self.calls: list[str] = []
        self.errors = dict(zip(("configure", "unconfigure"), (*errors, None, None), strict=False))

    def configure(self, settings: PluginSettings) -> None:
        self.calls.append("configure")
        retirement_proposed.connect(self.veto)
        if (error := self.errors["configure"]) is not None:
            raise error

    def unconfigure(self) -> None:
        self.calls.append("unconfigure")
        retirement_proposed.disconnect(self.veto)
        if (error := self.errors["unconfigure"]) is not None:
            raise error

    def veto(self, mechanism: str, event: object) -> Veto:
        return Veto(reason="guarded")

    @hookimpl
    def pre_inject(self) -> Hold:
        return Hold(reason="guarded")


def vetoed() -> bool:
    return bool(emit(retirement_proposed, "a.mechanism", None))


def test_a_plugin_that_is_switched_off_takes_its_receivers_back() -> None:
    """`disable` calls `unconfigure` once, `enable` configures again; neither does when repeated."""
    guard, manager = Guard(), PluginManager()
    manager.register(guard, "a.guard")
    assert vetoed()
    for _ in range(2):
        assert manager.disable("a.guard").state == "disabled"
        assert not vetoed()
    for _ in range(2):
        assert manager.enable("a.guard").state == "active"
        assert vetoed()
    manager.disable("a.guard")
    assert guard.calls == ["configure", "unconfigure"] * 2


@pytest.mark.parametrize("off", [{"CCC_PLUGIN_ENABLE__A__GUARD": "off"}, {"CCC_PLUGINS_BLOCK": "a.guard"}], ids=["flag", "block"])
def test_a_configuration_that_switches_a_plugin_off_unconfigures_it(off: dict[str, str]) -> None:
    """A later `load` that switches off or blocks what was on ends what it began, once."""
    guard, manager = Guard(), PluginManager()
    manager.register(guard, "a.guard")
    for _ in range(2):
        manager.load(config(**off))
        assert guard.calls == ["configure", "unconfigure"]
    assert manager.pre_inject(HOST, INJECTION) == Deliver()


@pytest.mark.parametrize("error", [OSError("disk"), Unspeakable(), ConfigError("no", source="f")], ids=["error", "untold", "config"])
def test_a_configure_that_raises_half_way_is_undone(error: Exception) -> None:
    """What it had connected by then is taken back, and the next try begins at the start."""
    guard, manager = Guard(error), PluginManager()
    if isinstance(error, ConfigError):
        with pytest.raises(ConfigError):
            manager.register(guard, "a.guard")
    else:
        manager.register(guard, "a.guard")
    assert states(manager) == {"a.guard": "broken"}
    assert not vetoed()
    guard.errors.update(configure=None)
    assert manager.enable("a.guard").state == "active"
    assert guard.calls == ["configure", "unconfigure", "configure"]
    manager.disable("a.guard")


def test_an_unconfigure_that_raises_switches_the_plugin_off_all_the_same(failures: list[tuple[str, PluginFailure]]) -> None:
    """The failure is reported, the plugin is off, and it is configured anew when it is enabled."""
    guard, manager = Guard(OSError("disk"), OSError("disk")), PluginManager()
    guard.errors.update(configure=None)
    manager.register(guard, "a.guard")
    assert manager.disable("a.guard").state == "disabled"
    assert failures == [("a.guard", PluginFailure(plugin="a.guard", where="unconfigure", error="OSError: disk"))]
    assert manager.enable("a.guard").state == "active"
    assert guard.calls == ["configure", "unconfigure", "configure"]
    retirement_proposed.disconnect(guard.veto)


def test_a_plugin_is_configured_only_while_it_may_run() -> None:
    """One that comes in switched off is neither configured nor unconfigured until it is enabled."""
    guard, manager = Guard(), PluginManager(config(CCC_PLUGIN_ENABLE__A__GUARD="off"))
    manager.register(guard, "a.guard")
    manager.disable("a.guard")
    assert guard.calls == []
    manager.enable("a.guard")
    manager.disable("a.guard")
    assert guard.calls == ["configure", "unconfigure"]


def test_an_interrupted_configure_is_undone_too() -> None:
    """The interrupt reaches the host, the plugin is off, and it is configured when it is enabled."""
    guard, manager = Guard(KeyboardInterrupt()), PluginManager()
    with pytest.raises(KeyboardInterrupt):
        manager.register(guard, "a.guard")
    assert states(manager) == {"a.guard": "disabled"}
    assert not vetoed()
    guard.errors.update(configure=None)
    assert manager.enable("a.guard").state == "active"
    assert vetoed()
    manager.disable("a.guard")


class AsyncConfigure:
    async def configure(self, settings: PluginSettings) -> None: ...


class AsyncUnconfigure:
    async def unconfigure(self) -> None: ...


@pytest.mark.parametrize("plugin", [AsyncConfigure(), AsyncUnconfigure()], ids=["configure", "unconfigure"])
def test_what_would_have_to_be_awaited_is_refused_at_once(plugin: object) -> None:
    """A coroutine function would do nothing when it is called, so the plugin is broken from the start."""
    status = PluginManager().register(plugin, "a.plugin")
    assert status.state == "broken"
    assert "coroutine function" in (status.reason or "")


# --- settings that nobody reads -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", [False, True], ids=["file", "variable"])
def test_settings_of_a_plugin_that_takes_none_stop_the_host(tmp_path: Path, variable: bool) -> None:
    """A key that no `configure` will ever see is an error that names its place."""
    file = tmp_path / "plugins.toml"
    file.write_text("" if variable else "[plugins.mine]\nlimt = 3\n")
    manager = PluginManager(load_config(file, {**ONLY_THE_TESTS_OWN, **({"CCC_PLUGIN__MINE__LIMT": "3"} if variable else {})}))
    manager.register(Answering(), "mine.one")
    with pytest.raises(ConfigError, match=r"plugins\.mine\.limt = 3: the plugins of this table take no settings") as caught:
        manager.load()
    assert caught.value.source == ("CCC_PLUGIN__MINE__LIMT" if variable else str(file))


def test_settings_may_be_another_plugins_of_the_table(site: Site) -> None:
    """One plugin with a `configure` is enough."""
    site.plugin("mine.two", "mine_two_settings", GOOD + "def configure(settings):\n    pass\n")
    manager = PluginManager(config(CCC_PLUGIN__MINE__SIZE="3"))
    manager.register(Answering(), "mine.one")
    manager.load()
    assert states(manager) == {"mine.one": "active", "mine.two": "active"}


def test_settings_may_be_those_of_a_plugin_that_is_off(site: Site) -> None:
    """One that is switched off might have a `configure`: nothing is refused until it is on, and then it is not switched on."""
    site.plugin("yours.two", "yours_two_settings", GOOD)
    manager = PluginManager(config(CCC_PLUGIN__YOURS__SIZE="3", CCC_PLUGIN_ENABLE__YOURS__TWO="off"))
    manager.register(Answering(), "yours.one")
    manager.load()
    with pytest.raises(ConfigError, match="take no settings"):
        manager.enable("yours.two")
    assert states(manager)["yours.two"] == "broken"
    assert manager.pre_inject(HOST, INJECTION) == Deliver()


# --- names and objects --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("off", [{"CCC_PLUGIN_ENABLE__MINE__ONE": "off"}, {"CCC_PLUGINS_BLOCK": "mine.one"}], ids=["flag", "block"])
def test_a_name_that_is_switched_off_is_taken_all_the_same(site: Site, off: dict[str, str]) -> None:
    """Another plugin under the name of an entry point that is off is refused, instead of being dropped for it."""
    site.plugin("mine.one", "mine_taken", GOOD)
    manager = PluginManager(config(**off))
    manager.load()
    with pytest.raises(PluginLoadError, match=r"belongs to another plugin \(mine_taken, "):
        manager.register(Answering(), "mine.one")


def test_a_plugin_by_hand_replaces_a_broken_one_of_its_name(site: Site) -> None:
    """Where nothing can be called, a host may put something that can."""
    site.plugin("mine.one", "mine_broken", "import a_module_that_nobody_has")
    manager = PluginManager(config())
    manager.load()
    assert manager.register(Answering(Hold(reason="by hand")), "mine.one").state == "active"
    assert manager.pre_inject(HOST, INJECTION) == Hold(reason="by hand")


def test_the_object_of_a_blocked_entry_point_cannot_come_in_by_hand(site: Site) -> None:
    """An entry point may name an object of a module; that very object stays blocked under whatever name."""
    site.module("holds_an_object", GOOD + "class P:\n    pass\nplugin = P()\n")
    site.distribution("an-object", "[ccc.plugins]\nan.object = holds_an_object:plugin\nno.object = not a name\n")
    manager = PluginManager(config(CCC_PLUGINS_BLOCK="an.object,no.object"))
    manager.load()
    assert manager.register(__import__("holds_an_object").plugin, "other.name").name == "an.object"
    assert states(manager)["an.object"] == "blocked"


# --- beside a slow one --------------------------------------------------------------------------------------------------


class Slow:
    """A plugin whose `configure` waits until it is let go."""

    def __init__(self) -> None:
        self.inside, self.go_on = threading.Event(), threading.Event()

    def configure(self, settings: PluginSettings) -> None:
        self.inside.set()
        assert self.go_on.wait(30)


def beside(manager: PluginManager, act: Callable[[], None]) -> None:
    """Run `act` while a plugin of the manager is being configured on another thread."""
    slow = Slow()
    thread = threading.Thread(target=manager.register, args=(slow, "slow.one"))
    thread.start()
    try:
        assert slow.inside.wait(20)
        act()
    finally:
        slow.go_on.set()
        thread.join()


def test_a_slow_configure_keeps_nobody_from_asking_what_there_is() -> None:
    """What is on, and how it is set, can be asked while another plugin is being configured, and so can the hooks be called."""
    manager = PluginManager()
    manager.register(Answering(Hold(reason="on")), "a.plugin")

    def ask() -> None:
        assert states(manager) == {"a.plugin": "active", "slow.one": "disabled"}
        assert manager.plugins()[1].reason == "it is being loaded"
        assert [row.key for row in manager.effective()] == ['plugins."a.plugin"', 'plugins."slow.one"']
        assert manager.pre_inject(HOST, INJECTION) == Hold(reason="on")

    beside(manager, ask)
    assert states(manager) == {"a.plugin": "active", "slow.one": "active"}


FORK = """
import os, signal, threading
from ccc_hookspecs.manager import PluginManager

class Slow:
    inside, go_on, calls = threading.Event(), threading.Event(), 0
    def configure(self, settings):
        Slow.calls += 1
        self.inside.set()
        self.go_on.wait()

class Quick:
    pass

manager = PluginManager()
thread = threading.Thread(target=manager.register, args=(Slow(), "slow.one"))
thread.start()
Slow.inside.wait()
child = os.fork()
if child == 0:
    signal.alarm(30)
    manager.register(Quick(), "quick.one")
    manager.disable("quick.one")
    Slow.go_on = threading.Event()
    Slow.go_on.set()
    before = [status.state for status in manager.plugins()]
    after = manager.enable("slow.one").state
    os._exit(0 if (before, after, Slow.calls) == (["disabled", "disabled"], "active", 2) else 1)
_, status = os.waitpid(child, 0)
Slow.go_on.set()
thread.join()
print(os.waitstatus_to_exitcode(status), [status.state for status in manager.plugins()])
"""


def test_a_manager_can_be_used_after_a_fork_in_the_middle_of_a_configure() -> None:
    """In the child nobody waits for a thread that is not there, and what was begun is begun again; the parent goes on."""
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60)
    assert done.stdout == "0 ['active']\n", done.stderr
