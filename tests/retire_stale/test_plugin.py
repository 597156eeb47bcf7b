"""What the three mechanisms share within a process."""

from __future__ import annotations

import gc

import pytest

from ccc_hookspecs.config import load_config
from ccc_hookspecs.manager import PluginManager
from ccc_plugins.retire_stale.plugin import Plugin


def manager_of(plugin: Plugin, **environ: str) -> PluginManager:
    """A manager with two plugins that hand their settings to `plugin`, as the mechanisms do."""

    class Mechanism:
        configure = plugin.configure

    manager = PluginManager(load_config(environ=environ))
    for name in ("retire_stale.one", "retire_stale.two"):
        assert manager.register(Mechanism(), name).state == "active"
    return manager


def mode_of(plugin: Plugin) -> str:
    return plugin.settings.mode


def test_the_last_manager_of_a_process_sets_it_for_all_and_a_difference_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Settings that another manager of the process has otherwise are a warning that names both values and where each is from."""
    plugin = Plugin()
    first = manager_of(plugin, CCC_PLUGIN__RETIRE_STALE__MODE="shadow")
    assert mode_of(plugin) == "shadow"
    again = manager_of(plugin, CCC_PLUGIN__RETIRE_STALE__MODE="shadow")
    assert caplog.records == []
    last = manager_of(plugin)
    assert mode_of(plugin) == "act"
    (record,) = caplog.records
    told = "plugins.retire_stale.mode was 'shadow' (CCC_PLUGIN__RETIRE_STALE__MODE) and is now 'act' (default)"
    assert record.getMessage() == f"{told} for every plugin manager of this process"
    del first, again, last


def test_a_manager_that_is_gone_is_not_minded(caplog: pytest.LogCaptureFixture) -> None:
    """Only a manager that is still there can be surprised by the settings of the next one."""
    plugin = Plugin()
    manager_of(plugin, CCC_PLUGIN__RETIRE_STALE__MODE="shadow")
    gc.collect()
    manager_of(plugin)
    assert mode_of(plugin) == "act"
    assert caplog.records == []
