"""The settings of the plugin, and the table that documents them."""

from __future__ import annotations

import dataclasses

import pytest

from ccc_hookspecs.config import PluginSettings
from ccc_hookspecs.errors import ConfigError
from ccc_plugins.retire_stale.settings import HEADER, Settings, settings_table


def test_defaults_act() -> None:
    """Without a table the plugin acts, with the graces that the ladder was measured with."""
    settings = PluginSettings.of("plugins.retire_stale").into(Settings)
    assert settings == Settings()
    assert (settings.mode, settings.settle_seconds, settings.terminate_seconds, settings.kill_seconds) == ("act", 2.0, 5.0, 2.0)
    assert (settings.catch_up, settings.catch_up_limit) == (True, 20_000)


@pytest.mark.case("C55")
def test_one_sample_of_a_terminal_is_not_enough() -> None:
    """By default a terminal must be seen twice before the watcher acts on it."""
    assert Settings().watcher_confirm_ticks == 2


@pytest.mark.parametrize("item", dataclasses.fields(Settings), ids=lambda item: item.name)
def test_every_default_is_in_its_own_range(item: dataclasses.Field[object]) -> None:
    """Each default, written out in a file, is accepted."""
    settings = PluginSettings.of("plugins.retire_stale", {item.name: item.default}).into(Settings)
    assert getattr(settings, item.name) == item.default


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mode", "dry-run"),
        ("mode", True),
        ("terminate_seconds", 0),
        ("terminate_seconds", "5"),
        ("freeze_seconds", 0),
        ("kill_seconds", 61),
        ("lock_seconds", -1),
        ("watcher_confirm_ticks", 0),
        ("watcher_confirm_ticks", 1.5),
        ("catch_up", 1),
        ("catch_up_limit", -1),
    ],
)
def test_unusable_values_are_refused_by_name(key: str, value: object) -> None:
    """A value of the wrong type or out of range is an error that names the key."""
    with pytest.raises(ConfigError, match=f"plugins.retire_stale.{key} = ") as caught:
        PluginSettings.of("plugins.retire_stale", {key: value}).into(Settings)
    assert caught.value.key == f"plugins.retire_stale.{key}"


def test_table_has_one_row_a_setting_with_all_that_is_documented() -> None:
    """Every setting is a row with its default, unit, range and meaning, and what 0 means where that is special."""
    table = settings_table()
    assert table.startswith(HEADER)
    rows = table.removeprefix(HEADER).splitlines()
    assert [row.split("`")[1] for row in rows] == [item.name for item in dataclasses.fields(Settings)]
    assert all(row.count("|") == 6 for row in rows)
    assert rows[0] == (
        '| `mode` | `"act"` |  | `"act"`, `"shadow"` | `act` heals and retires; `shadow` judges and reports what it would heal or retire,'
        " gives nothing and ends nothing. |"
    )
    assert "| `lock_seconds` | `2.0` | s | 0 to 60 |" in table
    assert "| `catch_up` | `true` |  | `true`, `false` |" in table
    assert "| `catch_up_limit` | `20000` | characters | 0 to 1 000 000 |" in table


@pytest.mark.parametrize("item", dataclasses.fields(Settings), ids=lambda item: item.name)
def test_every_setting_is_documented(item: dataclasses.Field[object]) -> None:
    """Each setting has a sentence; a number has a unit and a range, and a range that reaches 0 says what 0 means."""
    assert item.metadata["doc"].endswith(".")
    if not isinstance(item.default, str | bool):
        assert item.metadata["unit"]
        low, high = item.metadata["range"]
        assert low < high
        assert (low == 0) == (item.metadata["zero"] is not None)
