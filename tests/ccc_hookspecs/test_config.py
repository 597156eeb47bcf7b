"""Flags and settings from a TOML file and the environment, every mistake an error that names its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ccc_hookspecs.config import Config, TickerSettings, find_file, load_config
from ccc_hookspecs.errors import ConfigError

PLUGINS = ("retire_stale.use_time", "retire_stale.terminal_launch", "retire_stale.watcher")


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "plugins.toml"
    file.write_text(text, encoding="utf-8")
    return file


def checked(config_file: Path | None = None, /, **environ: str) -> Config:
    config = load_config(config_file, environ)
    config.check(PLUGINS)
    return config


def test_without_file_and_environment_everything_is_on() -> None:
    """Nobody saying anything leaves every plugin on, no setting given and the ticker at its default."""
    config = checked()
    assert all(config.flag(name).value is True and config.flag(name).source == "default" for name in PLUGINS)
    assert config.settings_for(PLUGINS[0]).values == {}
    assert (config.file, config.blocked, config.trace, config.ticker) == (None, frozenset(), False, TickerSettings())


def test_a_file_holds_flags_settings_and_the_ticker(tmp_path: Path) -> None:
    """`[plugins]` holds quoted flags beside tables of settings, told apart by their type."""
    file = written(
        tmp_path,
        '[plugins]\n"retire_stale.watcher" = false\n"retire_stale.use_time" = true\n'
        '[plugins.retire_stale]\nmode = "shadow"\n[ticker]\ninterval = 7.5\n',
    )
    config = checked(file)
    assert config.flag("retire_stale.watcher").value is False
    assert config.flag("retire_stale.watcher").source == str(file)
    assert config.flag("retire_stale.use_time").value is True
    assert config.flag("retire_stale.terminal_launch").source == "default"
    for name in PLUGINS:
        settings = config.settings_for(name)
        assert (settings.table, settings.values, settings.sources) == (
            "plugins.retire_stale",
            {"mode": "shadow"},
            {"mode": str(file)},
        )
    assert config.ticker.interval == 7.5


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    """A flag and a setting of the environment replace the file's, key by key, and say so."""
    file = written(tmp_path, '[plugins]\n"retire_stale.watcher" = true\n[plugins.retire_stale]\nmode = "act"\nlimit = 1\n')
    config = checked(
        file,
        CCC_PLUGIN_ENABLE__RETIRE_STALE__WATCHER="false",
        CCC_PLUGIN__RETIRE_STALE__MODE="shadow",
        CCC_TICKER__INTERVAL="6",
    )
    assert config.flag("retire_stale.watcher").value is False
    assert config.flag("retire_stale.watcher").source == "CCC_PLUGIN_ENABLE__RETIRE_STALE__WATCHER"
    settings = config.settings_for("retire_stale.watcher")
    assert settings.values == {"mode": "shadow", "limit": 1}
    assert settings.sources == {"mode": "CCC_PLUGIN__RETIRE_STALE__MODE", "limit": str(file)}
    assert config.ticker.interval == 6.0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("shadow", "shadow"),
        ("'2'", "2"),
        ("2", 2),
        ("2.5", 2.5),
        ("false", False),
        ("[1, 2]", [1, 2]),
        ("", ""),
        ("1\nother = 2", "1\nother = 2"),
    ],
)
def test_a_setting_in_the_environment_is_a_toml_value_or_a_text(text: str, value: object) -> None:
    """What reads as one TOML value is that value; anything else is the text itself."""
    assert checked(CCC_PLUGIN__RETIRE_STALE__KEY=text).settings_for(PLUGINS[0]).values == {"key": value}


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("1", True), ("On", True), ("yes", True), ("false", False), ("0", False), ("OFF", False), ("no", False)],
)
def test_a_flag_in_the_environment_may_be_written_in_the_usual_ways(text: str, value: bool) -> None:
    """Booleans are read in either case and in the words people use."""
    config = checked(CCC_PLUGIN_ENABLE__RETIRE_STALE__WATCHER=text, CCC_PLUGINS_TRACE=text)
    assert (config.flag("retire_stale.watcher").value, config.trace) == (value, value)


def test_a_name_with_a_hyphen_is_written_with_an_underscore_in_the_environment() -> None:
    """A variable cannot hold a hyphen, so an underscore stands for it."""
    config = load_config(environ={"CCC_PLUGIN_ENABLE__MY_PLUGIN__PART_ONE": "off", "CCC_PLUGIN__MY_PLUGIN__SIZE": "3"})
    config.check(["my-plugin.part-one"])
    assert config.flag("my-plugin.part-one").value is False
    assert config.settings_for("my-plugin.part-one").values == {"size": 3}


def test_blocked_names_are_stripped_and_empty_ones_dropped() -> None:
    """A trailing comma or a blank does not block anything unnamed."""
    assert load_config(environ={"CCC_PLUGINS_BLOCK": " a.b, ,c,"}).blocked == {"a.b", "c"}


# --- where the file is --------------------------------------------------------------------------------------------------


def test_the_file_is_looked_for_in_order(tmp_path: Path) -> None:
    """The given path, then the variable, then the user's own directory, then `~/.config`; the last two only when they exist."""
    xdg, home = tmp_path / "xdg", tmp_path / "home"
    environ = {"XDG_CONFIG_HOME": str(xdg), "HOME": str(home)}
    assert find_file(None, environ) is None
    for base in (xdg, home / ".config"):
        (base / "ccc").mkdir(parents=True)
        (base / "ccc" / "plugins.toml").touch()
    assert find_file(None, {"HOME": str(home)}) == home / ".config" / "ccc" / "plugins.toml"
    assert find_file(None, {"HOME": str(home), "XDG_CONFIG_HOME": "relative"}) == home / ".config" / "ccc" / "plugins.toml"
    assert find_file(None, environ) == xdg / "ccc" / "plugins.toml"
    assert find_file(None, {**environ, "CCC_PLUGINS_FILE": "/other.toml"}) == Path("/other.toml")
    assert find_file("/given.toml", {**environ, "CCC_PLUGINS_FILE": "/other.toml"}) == Path("/given.toml")


def test_a_file_that_was_named_must_be_readable(tmp_path: Path) -> None:
    """A missing file, a directory and a file of other bytes are errors that name the path."""
    for path in (tmp_path / "missing.toml", tmp_path):
        with pytest.raises(ConfigError, match="cannot be read") as caught:
            load_config(path, {})
        assert caught.value.source == path
        with pytest.raises(ConfigError, match="cannot be read"):
            load_config(None, {"CCC_PLUGINS_FILE": str(path)})
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"binary\.toml: not TOML"):
        load_config(binary, {})


def test_what_was_put_there_is_not_left_out_unseen(tmp_path: Path) -> None:
    """A link that leads nowhere, on the file or on a directory above it, and a loop of links are errors that name the file."""
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    folder = tmp_path / "config" / "ccc"
    file = folder / "plugins.toml"
    folder.mkdir(parents=True)
    file.symlink_to(tmp_path / "not-mounted" / "plugins.toml")
    with pytest.raises(ConfigError, match=rf"plugins\.toml: cannot be read: .*; it is a link to {tmp_path}/not-mounted") as caught:
        load_config(None, environ)
    assert caught.value.source == file
    file.unlink()
    file.symlink_to(file)
    with pytest.raises(ConfigError, match=r"plugins\.toml: cannot be read"):
        load_config(None, environ)
    file.unlink()
    folder.rmdir()
    assert load_config(None, environ).file is None
    folder.symlink_to(tmp_path / "not-mounted")
    with pytest.raises(ConfigError, match=r"plugins\.toml: cannot be read"):
        load_config(None, environ)


@pytest.mark.skipif(os.getuid() == 0, reason="root may look into every directory")
def test_a_directory_that_may_not_be_looked_into_may_hold_the_file(tmp_path: Path) -> None:
    """Whether there is a configuration cannot be told then, which is an error that names the file."""
    folder = tmp_path / "config" / "ccc"
    folder.mkdir(parents=True)
    folder.chmod(0)
    try:
        with pytest.raises(ConfigError, match=r"plugins\.toml: cannot be read: Permission denied"):
            load_config(None, {"XDG_CONFIG_HOME": str(tmp_path / "config")})
    finally:
        folder.chmod(0o700)


def test_a_home_that_cannot_be_told_is_an_error_only_where_it_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any home there is no file of the user's own; a file named in the home of nobody is refused."""
    with pytest.raises(ConfigError, match="CCC_PLUGINS_FILE"):
        load_config(None, {"CCC_PLUGINS_FILE": "~nobody.of.this.name/plugins.toml"})

    def homeless(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", homeless)
    assert load_config(None, {}).file is None


# --- mistakes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message", "key", "nearest"),
    [
        ("[plugins\n", "not TOML: .*line 1", None, None),
        ("[plugin]\n", r"plugin = \{\}: unknown table; did you mean plugins\?", "plugin", "plugins"),
        ("plugins = 3\n", "plugins = 3: expected a table", "plugins", "plugins"),
        ('[plugins]\n"retire_stale.watcher" = "off"\n', "= 'off': expected true or false", 'plugins."retire_stale.watcher"', None),
        ("[ticker]\ninterval = 4\n", "ticker.interval = 4: expected a number from 5 up to 10 s", "ticker.interval", None),
        ("[ticker]\nintervall = 6\n", r"unknown key; did you mean interval\?", "ticker.intervall", "interval"),
        (
            '[plugins]\n"retire_stale.wacher" = false\n',
            r"no installed plugin has this name; did you mean retire_stale.watcher\?",
            'plugins."retire_stale.wacher"',
            "retire_stale.watcher",
        ),
        (
            '[plugins.retire_stal]\nmode = "shadow"\n',
            r"no installed plugin has settings of this name; did you mean retire_stale\?",
            "plugins.retire_stal",
            "retire_stale",
        ),
        (
            "[plugins]\nretire_stale.watcher = false\n",
            r'must be quoted; did you mean "retire_stale.watcher"\?',
            "plugins.retire_stale.watcher",
            '"retire_stale.watcher"',
        ),
    ],
)
def test_a_mistake_in_the_file_names_file_key_and_the_nearest(
    tmp_path: Path, text: str, message: str, key: str | None, nearest: str | None
) -> None:
    """Unknown and ill-typed keys and broken TOML are errors that say where they stand and what was probably meant."""
    file = written(tmp_path, text)
    with pytest.raises(ConfigError, match=message) as caught:
        checked(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert str(caught.value.source) == str(file)
    assert caught.value.key == key
    if nearest is not None:
        assert caught.value.nearest == nearest


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("CCC_PLUGIN_ENABLE__RETIRE_STALE__WACHER", "off", r"did you mean CCC_PLUGIN_ENABLE__RETIRE_STALE__WATCHER\?"),
        ("CCC_PLUGIN_ENABLE__RETIRE_STALE__WATCHER", "", "expected true or false"),
        ("CCC_PLUGIN_ENABLE__RETIRE_STALE__WATCHER", "2", "expected true or false"),
        ("CCC_PLUGIN__RETIRE_STAL__MODE", "shadow", r"did you mean CCC_PLUGIN__RETIRE_STALE__MODE\?"),
        ("CCC_PLUGIN__RETIRE_STALE", "shadow", "a table and a key are needed"),
        ("CCC_PLUGINS_BLOK", "x", r"unknown variable; did you mean CCC_PLUGINS_BLOCK\?"),
        ("CCC_PLUGIN_ENABLE_RETIRE_STALE_WATCHER", "off", r"unknown variable; did you mean CCC_PLUGIN_ENABLE__NAME\?"),
        ("CCC_PLUGINS_TRACE", "maybe", "expected true or false"),
        ("CCC_TICKER__INTERVAL", "4", "expected a number from 5 up to 10 s"),
        ("CCC_TICKER__INTERVALL", "5", r"unknown key; did you mean interval\?"),
        ("CCC_TICKER_INTERVAL", "9", r"unknown variable; did you mean CCC_TICKER__INTERVAL\?"),
        ("CCC_TICKERS__INTERVAL", "9", r"unknown variable; did you mean CCC_TICKER__INTERVAL\?"),
        ("CCC_TICKER", "9", r"unknown variable; did you mean CCC_TICKER__INTERVAL\?"),
        ("CCC_PLUGINS", "retire_stale.watcher", r"unknown variable; did you mean CCC_PLUGINS_\w+\?"),
        ("CCC_PLUGINSFILE", "/plugins.toml", r"unknown variable; did you mean CCC_PLUGINS_FILE\?"),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(variable: str, text: str, message: str) -> None:
    """A misspelt or ill-typed variable is an error that names it and the nearest one there is."""
    with pytest.raises(ConfigError, match=message) as caught:
        checked(**{variable: text})
    assert str(caught.value).startswith(variable)
    assert caught.value.source == variable


def test_variables_of_others_are_left_alone() -> None:
    """CCC's own variables and anything else are no business of the hook system."""
    assert checked(CCC_PORT="1", CCC_PLUGGED="x", PATH="/bin", CCC_PLUGIN="x").env_flags == {}


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00"), max_size=60))
@example("value = 1")
@example("1\n[plugins]")
def test_any_value_of_a_variable_is_read_or_refused(text: str) -> None:
    """No value of a setting's variable raises, and none reaches another key."""
    values = load_config(environ={"CCC_PLUGIN__RETIRE_STALE__KEY": text}).settings_for("retire_stale.watcher").values
    assert set(values) == {"key"}
