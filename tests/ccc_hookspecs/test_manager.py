"""Configuring, registering and switching plugins."""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ccc_hookspecs import Deliver, Hold, Respawn, hookimpl
from ccc_hookspecs.config import PluginSettings, load_config
from ccc_hookspecs.errors import ConfigError, PluginLoadError
from ccc_hookspecs.manager import PluginManager
from ccc_hookspecs.outcomes import PluginFailure
from ccc_hookspecs.values import Tick
from tests.ccc_hookspecs.samples import (
    GOOD,
    HOST,
    INJECTION,
    LAUNCH,
    ONLY_THE_TESTS_OWN,
    OURS,
    TICK,
    Answering,
    Site,
    Unspeakable,
    config,
    states,
)


class Listener:
    """A plugin without hooks that keeps its settings."""

    settings: PluginSettings | None = None

    def configure(self, settings: PluginSettings) -> None:
        self.settings = settings


# --- configuration ------------------------------------------------------------------------------------------------------

CONFIGURED = (
    GOOD
    + """
calls = []
def configure(settings):
    calls.append(settings.values)
    assert settings.table == "plugins.mine"
"""
)


def test_configure_is_called_once_with_the_merged_settings(site: Site, tmp_path: Path) -> None:
    """A plugin gets its table, file under environment, once; not again when it is switched off and on."""
    site.plugin("mine.one", "mine_one", CONFIGURED)
    file = tmp_path / "plugins.toml"
    file.write_text('[plugins.mine]\nmode = "act"\nsize = 3\n')
    manager = PluginManager(load_config(file, {**ONLY_THE_TESTS_OWN, "CCC_PLUGIN__MINE__MODE": "shadow"}))
    manager.load()
    manager.disable("mine.one")
    manager.enable("mine.one")
    assert sys.modules["mine_one"].calls == [{"mode": "shadow", "size": 3}]


def test_wrong_settings_stop_the_host(site: Site) -> None:
    """A `ConfigError` from `configure` is raised by `load`, so that a typo does not switch a protection off silently."""
    source = GOOD + "from ccc_hookspecs.errors import ConfigError\ndef configure(settings):\n    raise ConfigError('no', source='f')\n"
    site.plugin("mine.wrong", "mine_wrong", source)
    manager = PluginManager(config())
    with pytest.raises(ConfigError, match="no"):
        manager.load()
    assert states(manager) == {"mine.wrong": "broken"}
    assert manager.pre_inject(HOST, INJECTION) == Deliver()


def test_any_other_error_of_configure_breaks_that_plugin_alone(site: Site, failures: list[tuple[str, PluginFailure]]) -> None:
    """A plugin whose `configure` raises is broken, is reported and is not called; the others are loaded."""
    site.plugin("a.wrong", "wrong_four", GOOD + "def configure(settings):\n    raise OSError('disk\\nfull')\n")
    site.plugin("a.good", "good_four", GOOD)
    manager = PluginManager(config())
    manager.load()
    assert states(manager) == {"a.wrong": "broken", "a.good": "active"}
    assert {status.name: status.reason for status in manager.plugins()}["a.wrong"] == "OSError: disk full"
    assert failures == [("a.wrong", PluginFailure(plugin="a.wrong", where="load", error="OSError: disk\nfull"))]
    assert manager.pre_inject(HOST, INJECTION) == Hold(reason="good_four")


@pytest.mark.parametrize("kind", [Unspeakable, SystemExit])
def test_whatever_configure_raises_the_host_goes_on(kind: type[BaseException]) -> None:
    """An error that cannot be told, or an exit, breaks the plugin alone, and its type is the reason."""

    class Bad(Listener):
        def configure(self, settings: PluginSettings) -> None:
            raise kind

    status = PluginManager().register(Bad(), "a.bad")
    assert (status.state, status.reason) == ("broken", kind.__name__)


def test_a_broken_plugin_can_be_tried_again(site: Site) -> None:
    """When what was missing is there, `enable` imports and configures it."""
    site.plugin("a.late", "late_one", "import late_dependency\n" + GOOD)
    manager = PluginManager(config())
    manager.load()
    assert manager.enable("a.late").state == "broken"
    site.module("late_dependency", "")
    assert manager.enable("a.late").state == "active"
    assert manager.pre_inject(HOST, INJECTION) == Hold(reason="late_one")


def test_the_configuration_must_name_known_plugins(site: Site) -> None:
    """A flag for a name that is neither installed nor registered stops the host and names the nearest."""
    with pytest.raises(ConfigError, match=r"did you mean CCC_PLUGIN_ENABLE__RETIRE_STALE__WATCHER\?"):
        PluginManager().load(load_config(environ={"CCC_PLUGIN_ENABLE__RETIRE_STALE__WACHER": "off"}))
    manager = PluginManager(config(CCC_PLUGIN_ENABLE__BY__HAND="off"))
    with pytest.raises(ConfigError, match="BY__HAND"):
        manager.load()
    manager.register(Answering(), "by.hand")
    manager.load()
    assert states(manager) == {"by.hand": "disabled"}


def test_a_block_of_an_unknown_name_is_logged_with_the_nearest(caplog: pytest.LogCaptureFixture) -> None:
    """Blocking what is not installed is no error, since it is done in emergencies, but a typo shows in the log."""
    PluginManager().load(config(CCC_PLUGINS_BLOCK="retire_stale.wacher"))
    assert "names retire_stale.wacher, which is not installed; the nearest is retire_stale.watcher" in caplog.text


def test_load_reads_the_users_configuration(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a configuration given, `load` reads the file and the environment itself; tracing goes to stderr."""
    site.plugin("mine.one", "mine_two", GOOD)
    file = tmp_path / "mine.toml"
    file.write_text('[plugins]\n"mine.one" = false\n' + "".join(f'"{name}" = false\n' for name in OURS))
    monkeypatch.setenv("CCC_PLUGINS_FILE", str(file))
    monkeypatch.setenv("CCC_PLUGINS_TRACE", "1")
    manager = PluginManager()
    manager.load()
    assert states(manager) == {"mine.one": "disabled"}
    manager.enable("mine.one")
    manager.on_tick(HOST, TICK)
    assert capsys.readouterr().err.startswith("on_tick mine.one: done in ")


def test_loading_again_switches_off_what_the_new_configuration_does(site: Site) -> None:
    """A second `load` with another configuration blocks and disables plugins that are known already."""
    site.plugin("mine.one", "mine_three", GOOD)
    manager = PluginManager()
    manager.load(config())
    assert manager.pre_inject(HOST, INJECTION) == Hold(reason="mine_three")
    manager.load(config(CCC_PLUGIN_ENABLE__MINE__ONE="off"))
    assert states(manager) == {"mine.one": "disabled"}
    assert manager.pre_inject(HOST, INJECTION) == Deliver()
    manager.load(config(CCC_PLUGINS_BLOCK="mine.one"))
    assert states(manager) == {"mine.one": "blocked"}


def test_settings_reach_plugins_that_are_loaded_after_one_was_registered_without(site: Site) -> None:
    """A plugin registered by hand before there was a configuration does not hide the settings of its table from the others."""
    site.plugin("mine.one", "mine_six", CONFIGURED)
    manager = PluginManager()
    manager.register(Listener(), "mine.by_hand")
    manager.load(config(CCC_PLUGIN__MINE__SIZE="3"))
    assert sys.modules["mine_six"].calls == [{"size": 3}]


SCHEMA = """
from dataclasses import dataclass
from ccc_hookspecs.config import setting
@dataclass(frozen=True)
class Settings:
    mode: str = setting("act", doc="What it does.", choices=["act", "shadow"])
    grace: float = setting(2.0, doc="How long.", unit="s", minimum=0)
def configure(settings):
    settings.into(Settings)
"""


def test_the_effective_configuration_can_be_shown(site: Site) -> None:
    """Each flag and each key of each table is listed once, with its value and where that came from."""
    site.plugin("mine.one", "mine_four", GOOD + SCHEMA)
    site.module("mine_five", GOOD + "from mine_four import configure\n")
    site.distribution("five", "[ccc.plugins]\nmine.two = mine_five\n")
    manager = PluginManager(config(CCC_PLUGIN__MINE__MODE="shadow", CCC_PLUGIN_ENABLE__MINE__TWO="yes"))
    manager.load()
    rows = {row.key: (row.value, row.source) for row in manager.effective() if "retire_stale" not in row.key}
    assert rows == {
        'plugins."mine.one"': (True, "default"),
        'plugins."mine.two"': (True, "CCC_PLUGIN_ENABLE__MINE__TWO"),
        "ticker.interval": (5.0, "default"),
        "plugins.mine.mode": ("shadow", "CCC_PLUGIN__MINE__MODE"),
        "plugins.mine.grace": (2.0, "default"),
    }
    assert len(manager.effective()) == len(rows) + len(OURS)


# --- by hand and at run time --------------------------------------------------------------------------------------------


def test_a_name_is_needed_and_belongs_to_one() -> None:
    """Registering without a name, or under the name of another plugin, is refused and changes nothing."""
    manager = PluginManager()
    manager.register(Answering(Hold(reason="first")), "one.name")
    with pytest.raises(PluginLoadError, match="belongs to another plugin") as caught:
        manager.register(Answering(), "one.name")
    assert caught.value.plugin == "one.name"
    with pytest.raises(PluginLoadError, match="needs a name"):
        manager.register(Answering(), " ")
    assert manager.pre_inject(HOST, INJECTION) == Hold(reason="first")


def test_registering_by_hand_obeys_blocks_and_flags() -> None:
    """A plugin that the host registers under a blocked or switched-off name is not called."""
    plugin = Answering(Hold(reason="called"))
    manager = PluginManager(config(CCC_PLUGINS_BLOCK="a.blocked", CCC_PLUGIN_ENABLE__A__OFF="off"))
    assert manager.register(plugin, "a.blocked").state == "blocked"
    assert manager.register(Answering(Hold(reason="called")), "a.off").state == "disabled"
    assert manager.pre_inject(HOST, INJECTION) == Deliver()
    assert manager.enable("a.off").state == "active"
    assert manager.pre_inject(HOST, INJECTION) == Hold(reason="called")


def test_a_blocked_module_cannot_come_in_by_hand(site: Site) -> None:
    """Registering the module of a blocked entry point, under whatever name, leaves it blocked."""
    site.plugin("a.blocked", "blocked_five", GOOD)
    manager = PluginManager(config(CCC_PLUGINS_BLOCK="a.blocked"))
    manager.load()
    assert manager.register(__import__("blocked_five"), "other.name").state == "blocked"
    assert manager.pre_inject(HOST, INJECTION) == Deliver()


@pytest.mark.parametrize("name", sorted(OURS))
def test_switching_one_off_at_run_time_leaves_the_others(name: str) -> None:
    """Of three plugins one is disabled and is not called; enabled again it is, in its old place."""
    manager = PluginManager()
    plugins = {one: Answering() for one in sorted(OURS)}
    for one, plugin in plugins.items():
        manager.register(plugin, one)
    assert manager.disable(name).state == "disabled"
    manager.on_tick(HOST, TICK)
    assert {one for one, plugin in plugins.items() if plugin.ticks} == OURS - {name}
    lines: list[str] = []
    manager.trace = lines.append
    manager.enable(name)
    manager.on_tick(HOST, TICK)
    assert [line.split()[1].rstrip(":") for line in lines] == sorted(OURS, reverse=True)


def test_switching_is_harmless_when_repeated_and_refused_for_strangers() -> None:
    """Twice on or off is once; a blocked plugin cannot be enabled; an unknown name tells the nearest."""
    manager = PluginManager(config(CCC_PLUGINS_BLOCK="a.blocked"))
    manager.register(Answering(), "a.plugin")
    manager.register(Answering(), "a.blocked")
    assert [manager.disable("a.plugin").state, manager.disable("a.plugin").state] == ["disabled", "disabled"]
    assert [manager.enable("a.plugin").state, manager.enable("a.plugin").state] == ["active", "active"]
    assert manager.disable("a.blocked").state == "blocked"
    with pytest.raises(PluginLoadError, match="cannot be enabled"):
        manager.enable("a.blocked")
    for switch in (manager.enable, manager.disable):
        with pytest.raises(PluginLoadError, match=r"no such plugin; did you mean a.plugin\?"):
            switch("a.plugn")


class Late:
    @hookimpl
    def on_tik(self) -> None: ...


class Greedy:
    @hookimpl
    def on_tick(self, tick: Tick, everything: object) -> None: ...


class Coroutine:
    @hookimpl
    async def on_tick(self) -> None: ...


class Generator:
    @hookimpl
    def on_tick(self) -> Any:
        yield


class NotAGenerator:
    @hookimpl(wrapper=True)
    def on_tick(self) -> None: ...


class Inner:
    @hookimpl
    def on_tick(self, proceed: object) -> None: ...


@pytest.mark.parametrize(
    ("plugin", "reason"),
    [
        (Late(), "unknown hook 'on_tik'"),
        (Greedy(), "everything"),
        (Coroutine(), "not awaited"),
        (Generator(), "not marked as a wrapper"),
        (NotAGenerator(), "not a generator function"),
        (Inner(), "proceed"),
        (Answering, "not its class"),
    ],
    ids=lambda value: getattr(type(value), "__name__", ""),
)
def test_an_implementation_that_would_never_run_right_is_refused(plugin: object, reason: str) -> None:
    """A misspelt hook, an unknown argument, a coroutine, a stray `yield` and a class are told when the plugin comes in."""
    manager = PluginManager()
    status = manager.register(plugin, "a.wrong")
    assert status.state == "broken"
    assert reason in (status.reason or "")
    manager.register(Answering(Hold(reason="good")), "a.good")
    assert manager.pre_inject(HOST, INJECTION) == Hold(reason="good")


def test_a_plugin_without_hooks_may_only_listen() -> None:
    """A plugin that implements no hook, since it only subscribes to signals in `configure`, is active."""

    listener = Listener()
    manager = PluginManager()
    assert manager.register(listener, "a.listener").state == "active"
    assert listener.settings is not None
    manager.on_tick(HOST, TICK)
    manager.on_terminal_launch(HOST, LAUNCH)


def test_plugins_that_are_equal_but_not_the_same_are_told() -> None:
    """Two objects that claim to be equal cannot both be registered: the second is broken, the first goes on."""

    class Equal(Answering):
        def __eq__(self, other: object) -> bool:
            return isinstance(other, Equal)

        __hash__ = None  # type: ignore[assignment]

    manager = PluginManager()
    manager.register(Equal(Respawn(reason="first")), "a.first")
    assert manager.register(Equal(), "a.second").state == "broken"
    assert manager.pre_inject(HOST, INJECTION) == Respawn(reason="first")


def test_hooks_are_called_while_others_switch_plugins() -> None:
    """In every one of many calls the plugin that stays on is called exactly once, while two threads switch others on and off."""
    manager = PluginManager()
    steady = Answering()
    manager.register(steady, "a.steady")
    for name in ("b.flaps", "c.flaps"):
        manager.register(Answering(Hold(reason=name)), name)
    stop = threading.Event()

    def flap(name: str) -> None:
        while not stop.is_set():
            manager.disable(name)
            manager.enable(name)

    threads = [threading.Thread(target=flap, args=(name,)) for name in ("b.flaps", "c.flaps")]
    for thread in threads:
        thread.start()
    try:
        answers = [manager.pre_inject(HOST, INJECTION) for _ in range(300)]
        before = steady.ticks
        for _ in range(300):
            manager.on_tick(HOST, TICK)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert steady.ticks - before == 300
    assert {type(answer) for answer in answers} <= {Deliver, Hold}
    assert states(manager) == {"a.steady": "active", "b.flaps": "active", "c.flaps": "active"}


def test_a_failing_plugin_says_its_name_to_log_handlers(caplog: pytest.LogCaptureFixture) -> None:
    """The log record of a failure carries the plugin's name as a field, for handlers that do not parse text."""

    class Bad:
        @hookimpl
        def on_tick(self) -> None:
            raise OSError("disk")

    manager = PluginManager()
    manager.register(Bad(), "a.bad")
    with caplog.at_level(logging.ERROR):
        manager.on_tick(HOST, TICK)
    assert [vars(record)["ccc_mechanism"] for record in caplog.records] == ["a.bad"]
