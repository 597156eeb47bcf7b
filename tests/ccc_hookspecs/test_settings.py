"""A table of settings is built into its dataclass strictly, and every refusal says where, what and what instead."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccc_hookspecs.errors import ConfigError
from ccc_hookspecs.settings import EffectiveSetting, Given, PluginSettings, setting


@dataclass(frozen=True, kw_only=True)
class Example:
    mode: Literal["act", "shadow"] = setting("act", doc="What it does.")
    grace: float = setting(2.0, doc="How long to wait.", unit="s", minimum=0, maximum=30, zero="do not wait")
    limit: int = setting(10, doc="How many.", minimum=1)
    on: bool = setting(True, doc="Whether.")
    title: str = setting("x", doc="A text.")
    colour: str = setting("red", doc="One of some.", choices=["red", "blue"])
    place: Path | None = setting(None, doc="A file.")
    names: tuple[str, ...] = setting((), doc="Some names.")

    def __post_init__(self) -> None:
        if self.mode == "shadow" and not self.on:
            raise ValueError("a shadow must be on")


def built(**values: object) -> Example:
    return PluginSettings.of("plugins.example", values).into(Example)


def test_nothing_given_means_the_defaults() -> None:
    """An empty table builds the dataclass as it stands."""
    assert built() == Example()


def test_what_is_given_is_taken() -> None:
    """Each type is taken from its TOML form: a whole number for a float, a list for a tuple, a text for a path."""
    example = built(mode="shadow", grace=3, limit=2, on=True, title="", colour="blue", place="/tmp/x", names=["a", "b"])
    assert example == Example(mode="shadow", grace=3.0, limit=2, title="", colour="blue", place=Path("/tmp/x"), names=("a", "b"))
    assert isinstance(example.grace, float)


def test_a_path_may_start_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leading `~` is the home directory."""
    monkeypatch.setenv("HOME", "/home/me")
    assert built(place="~/x").place == Path("/home/me/x")


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("mode", "off", "one of act, shadow"),
        ("mode", True, "one of act, shadow"),
        ("grace", "2", "a number from 0 up to 30 s"),
        ("grace", -0.1, "a number from 0 up to 30 s"),
        ("grace", 30.5, "a number from 0 up to 30 s"),
        ("grace", 10**400, "a number from 0 up to 30 s"),
        ("grace", True, "a number from 0 up to 30 s"),
        ("grace", float("nan"), "a number from 0 up to 30 s"),
        ("grace", float("inf"), "a number from 0 up to 30 s"),
        ("limit", 1.5, "a whole number from 1"),
        ("limit", 0, "a whole number from 1"),
        ("limit", True, "a whole number from 1"),
        ("on", 1, "true or false"),
        ("on", "true", "true or false"),
        ("title", 5, "a text"),
        ("colour", "green", "one of red, blue"),
        ("place", "here/x", "an absolute path"),
        ("place", "~nobody.of.this.name/x", "an absolute path"),
        ("names", "a", "a list of texts"),
        ("names", ["a", 1], "a list of texts"),
        ("names", {"a": 1}, "a list of texts"),
    ],
)
def test_a_wrong_value_is_refused_with_source_key_value_and_what_would_do(key: str, value: object, expected: str) -> None:
    """The error says where the value stands, the full key, the value and what it must be."""
    settings = PluginSettings("plugins.example", {key: Given(value, "/etc/plugins.toml")})
    with pytest.raises(ConfigError) as caught:
        settings.into(Example)
    error = caught.value
    assert str(error) == f"/etc/plugins.toml: plugins.example.{key} = {value!r}: expected {expected}"
    assert (error.source, error.key, error.nearest) == ("/etc/plugins.toml", f"plugins.example.{key}", f"plugins.example.{key}")
    assert error.value is value


def test_an_unknown_key_is_refused_with_the_nearest_known_one() -> None:
    """A misspelt key names the one that was probably meant; one unlike any other names none."""
    with pytest.raises(ConfigError, match=r"plugins.example.garce = 3: unknown key; did you mean grace\?") as caught:
        built(garce=3)
    assert caught.value.nearest == "grace"
    with pytest.raises(ConfigError, match=r"unknown key$") as caught:
        built(zzzz=3)
    assert caught.value.nearest is None


def test_what_the_dataclass_itself_refuses_is_a_configuration_error() -> None:
    """A ValueError from `__post_init__`, about keys that do not go together, names the table and the sources."""
    with pytest.raises(ConfigError, match=r"given by hand: \[plugins.example\]: a shadow must be on") as caught:
        built(mode="shadow", on=False)
    assert caught.value.key == "plugins.example"


@pytest.mark.parametrize(("text", "value"), [("123", 123), ("true", True), ("1.5", 1.5), ("word", "word")])
def test_a_variable_is_a_text_where_a_text_is_wanted(text: str, value: object) -> None:
    """A variable's value that reads as a number is still the text it was written as, for a key that holds a text."""
    settings = PluginSettings("plugins.example", {"title": Given(value, "CCC_PLUGIN__EXAMPLE__TITLE", text)})
    assert settings.into(Example).title == text


def test_the_effective_settings_say_where_each_value_came_from() -> None:
    """Every key is listed with its value, source, unit, range, choices and what 0 means, whether given or not."""
    settings = PluginSettings("plugins.example", {"grace": Given(0, "/f.toml"), "mode": Given("shadow", "CCC_X")})
    assert settings.effective() == ()
    settings.into(Example)
    settings.into(Example)
    rows = {row.key: row for row in settings.effective()}
    assert list(rows) == [f"plugins.example.{field.name}" for field in fields(Example)]
    assert rows["plugins.example.grace"] == EffectiveSetting(
        key="plugins.example.grace", value=0.0, source="/f.toml", doc="How long to wait.", unit="s", range=(0, 30), zero="do not wait"
    )
    assert (rows["plugins.example.mode"].source, rows["plugins.example.mode"].choices) == ("CCC_X", ("act", "shadow"))
    assert rows["plugins.example.limit"].source == "default"
    assert rows["plugins.example.limit"].range == (1, None)


def test_given_values_and_sources_can_be_read_unchecked() -> None:
    """A plugin without a dataclass may look at the raw values and where they came from."""
    settings = PluginSettings("plugins.example", {"a": Given([1], "/f.toml")})
    assert (settings.values, settings.sources) == ({"a": [1]}, {"a": "/f.toml"})


def test_a_type_that_no_setting_can_have_is_a_mistake_of_the_plugin() -> None:
    """An annotation that cannot be checked is a TypeError, not a configuration error."""

    @dataclass(frozen=True)
    class Wrong:
        when: complex = setting(0j, doc="No.")

    with pytest.raises(TypeError, match="complex"):
        PluginSettings.of("plugins.wrong", {"when": 1}).into(Wrong)


toml_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from([field.name for field in fields(Example)]), toml_values)
def test_any_value_is_either_right_or_a_configuration_error(key: str, value: object) -> None:
    """Whatever a file holds, building gives a checked value or raises `ConfigError`, and nothing else."""
    example = Example()
    with contextlib.suppress(ConfigError):
        example = built(**{key: value})
    assert 0 <= example.grace <= 30
    assert example.limit >= 1
    assert example.mode in ("act", "shadow")
    assert isinstance(example.title, str)
