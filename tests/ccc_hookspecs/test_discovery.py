"""Finding the installed plugins, whatever state they and their neighbours are in."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from ccc_hookspecs import Hold
from ccc_hookspecs.manager import GROUP, PluginManager, PluginStatus
from ccc_hookspecs.outcomes import PluginFailure
from tests.ccc_hookspecs.samples import GOOD, HOST, INJECTION, OURS, TICK, Answering, Site, config, states

RAISING = """
from ccc_hookspecs import hookimpl
@hookimpl
def pre_inject(injection):
    raise OSError("disk")
@hookimpl
def on_tick(tick):
    raise OSError("disk")
"""


@pytest.mark.case("C92", "C94")
def test_one_blocked_one_broken_one_raising_and_the_fourth_still_works(
    site: Site, failures: list[tuple[str, PluginFailure]], caplog: pytest.LogCaptureFixture
) -> None:
    """Of four installed plugins, three of them bad each in its own way, the good one is loaded and called."""
    site.plugin("bad.blocked", "blocked_one", "raise AssertionError('imported')")
    site.plugin("bad.broken", "broken_one", "import a_module_that_nobody_has")
    site.plugin("bad.raising", "raising_one", RAISING)
    site.plugin("fine.plugin", "good_one", GOOD)
    manager = PluginManager(config(CCC_PLUGINS_BLOCK="bad.blocked"))
    manager.load()
    assert states(manager) == {"bad.blocked": "blocked", "bad.broken": "broken", "bad.raising": "active", "fine.plugin": "active"}
    assert manager.pre_inject(HOST, INJECTION) == Hold(reason="good_one")
    manager.on_tick(HOST, TICK)
    assert sys.modules["good_one"].ticks == [1]
    assert "blocked_one" not in sys.modules
    assert {(sender, event.where) for sender, event in failures} >= {("bad.broken", "load"), ("bad.raising", "on_tick")}
    assert "plugin bad.broken failed in load" in caplog.text
    assert "plugin bad.raising failed in on_tick" in caplog.text


def test_a_status_says_what_and_why(site: Site) -> None:
    """Each plugin is listed with its module, its distribution and, when it is not active, the reason."""
    site.plugin("a.good", "good_two", GOOD)
    site.plugin("a.broken", "broken_two", "import a_module_that_nobody_has")
    site.plugin("a.off", "off_two", GOOD)
    site.plugin("a.blocked", "blocked_two", GOOD)
    manager = PluginManager()
    found = manager.load(config(CCC_PLUGIN_ENABLE__A__OFF="0", CCC_PLUGINS_BLOCK="a.blocked"))
    manager.register(Answering(), "by.hand")
    assert found == manager.plugins()[:-1]
    assert {status for status in manager.plugins() if status.name not in OURS} == {
        PluginStatus(name="a.good", state="active", source="good_two", distribution="dist-of-good_two 1.0"),
        PluginStatus(
            name="a.broken",
            state="broken",
            source="broken_two",
            reason="ModuleNotFoundError: No module named 'a_module_that_nobody_has'",
            distribution="dist-of-broken_two 1.0",
        ),
        PluginStatus(
            name="a.off",
            state="disabled",
            source="off_two",
            reason="its flag is off (CCC_PLUGIN_ENABLE__A__OFF)",
            distribution="dist-of-off_two 1.0",
        ),
        PluginStatus(
            name="a.blocked",
            state="blocked",
            source="blocked_two",
            reason="blocked by CCC_PLUGINS_BLOCK",
            distribution="dist-of-blocked_two 1.0",
        ),
        PluginStatus(name="by.hand", state="active", source="registered by the host"),
    }


def test_an_entry_point_may_name_an_object(site: Site) -> None:
    """`module:attribute` loads that attribute as the plugin."""
    site.module("holder", "class P:\n    pass\n" + GOOD + "plugin = __import__(__name__)\n")
    site.distribution("holder-dist", "[ccc.plugins]\nan.object = holder:plugin\n")
    manager = PluginManager(config())
    manager.load()
    assert manager.pre_inject(HOST, INJECTION) == Hold(reason="holder")


@pytest.mark.case("C93")
def test_a_distribution_seen_twice_is_registered_once(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same installation reached through a lib64 link and through lib, then by hand and then again, is one plugin."""
    site.plugin("twice.seen", "twice_seen", GOOD)
    (tmp_path / "lib64").symlink_to(site.path)
    monkeypatch.syspath_prepend(tmp_path / "lib64")
    manager = PluginManager(config())
    manager.load()
    manager.load()
    module = sys.modules["twice_seen"]
    assert manager.register(module, "twice.seen").state == "active"
    assert manager.register(module, "another.name").name == "twice.seen"
    manager.on_tick(HOST, TICK)
    assert module.ticks == [1]
    assert list(states(manager)) == ["twice.seen"]


@pytest.mark.case("C93")
def test_a_plugin_registered_by_hand_first_is_not_loaded_again(site: Site) -> None:
    """When the host has registered the module before, its entry points, under its own and another name, add nothing."""
    site.plugin("by.entry", "by_entry", GOOD)
    site.distribution("alias", "[ccc.plugins]\nby.alias = by_entry\n")
    manager = PluginManager(config())
    manager.register(__import__("by_entry"), "by.entry")
    manager.load()
    manager.on_tick(HOST, TICK)
    assert sys.modules["by_entry"].ticks == [1]
    assert states(manager) == {"by.entry": "active", "by.alias": "disabled"}
    assert {status.name: status.reason for status in manager.plugins()}["by.alias"] == "the same plugin as by.entry"


def test_of_two_distributions_of_one_name_the_first_on_the_path_counts(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older version further down the path brings back no entry point that the newer one has dropped."""
    site.plugin("old.gone", "old_gone", GOOD)
    site.plugin("old.kept", "old_kept", GOOD)
    newer = Site(tmp_path / "newer", monkeypatch)
    newer.distribution("Dist_Of.old-gone", "[ccc.plugins]\n", version="2.0")
    manager = PluginManager(config())
    manager.load()
    assert states(manager) == {"old.kept": "active"}


def test_a_name_belongs_to_whom_it_came_from_first(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A second distribution that offers the same name for another module is left out, and that is logged."""
    site.plugin("one.name", "second_owner", GOOD)
    first = Site(tmp_path / "first", monkeypatch)
    first.plugin("one.name", "first_owner", GOOD)
    manager = PluginManager(config())
    manager.load()
    assert manager.pre_inject(HOST, INJECTION) == Hold(reason="first_owner")
    assert "second_owner" not in sys.modules
    assert "plugin one.name of dist-of-second_owner 1.0 is left out" in caplog.text


@pytest.mark.case("C92")
def test_unreadable_metadata_of_others_hides_nothing(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """A distribution whose entry points cannot be parsed, and one without a name, are passed over and logged."""
    site.distribution("garbage", "[ccc.plugins]\nthis line is no entry point\n")
    (site.path / "nameless-1.dist-info").mkdir()
    site.plugin("still.found", "still_found", GOOD)
    manager = PluginManager(config())
    manager.load()
    assert states(manager) == {"still.found": "active"}
    assert "metadata of an installed distribution" in caplog.text


@pytest.mark.case("C92")
@pytest.mark.parametrize("source", ["raise SystemExit(3)", "raise ImportError('built for another Python')", "def broken(:\n"])
def test_whatever_an_import_raises_the_host_goes_on(site: Site, source: str, failures: list[tuple[str, PluginFailure]]) -> None:
    """A module that exits, cannot be imported or cannot be parsed is broken, and the next one is loaded."""
    site.plugin("a.broken", "broken_three", source)
    site.plugin("a.good", "good_three", GOOD)
    manager = PluginManager(config())
    manager.load()
    assert states(manager) == {"a.broken": "broken", "a.good": "active"}
    assert [sender for sender, _ in failures] == ["a.broken"]


@pytest.mark.case("C92")
def test_loading_a_blocked_or_disabled_plugin_starts_nothing(site: Site) -> None:
    """A plugin that starts a thread and connects a receiver at import does neither while it is blocked or off."""
    eager = "import threading\nfrom ccc_hookspecs import signals\nraise AssertionError('imported')\n"
    site.plugin("a.blocked", "eager_blocked", eager)
    site.plugin("a.off", "eager_off", eager)
    threads = threading.active_count()
    manager = PluginManager(config(CCC_PLUGINS_BLOCK="a.blocked", CCC_PLUGIN_ENABLE__A__OFF="off"))
    manager.load()
    assert states(manager) == {"a.blocked": "blocked", "a.off": "disabled"}
    assert not {"eager_blocked", "eager_off"} & set(sys.modules)
    assert threading.active_count() == threads


def test_the_group_is_the_documented_one() -> None:
    """Plugins are found under the entry-point group that other packages write down."""
    assert GROUP == "ccc.plugins"
