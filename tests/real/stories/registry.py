"""The stories by their keys, in the order in which the table shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.real.world import World

Play = Callable[[World], None]


@dataclass(frozen=True, slots=True)
class Story:
    """`core`: played with every release. `control`: also played without the plugin, where a turn must then be forgotten.

    `unfit`: releases with which it cannot be played, and why.
    """

    key: str
    title: str
    play: Play
    core: bool
    control: bool
    unfit: Mapping[str, str]


STORIES: dict[str, Story] = {}


def story(
    key: str, title: str, *, core: bool = False, control: bool = False, unfit: Mapping[str, str] | None = None
) -> Callable[[Play], Play]:
    """Register what follows as a story; it raises `AssertionError` where it does not go as it must."""

    def register(play: Play) -> Play:
        STORIES[key] = Story(key, title, play, core, control, unfit or {})
        return play

    return register


FAMILIES: dict[str, Callable[[str], Story]] = {}


def family(name: str) -> Callable[[Callable[[str], Story]], Callable[[str], Story]]:
    """Register what makes the stories whose keys begin with this name and a colon, from the whole key."""

    def register(make: Callable[[str], Story]) -> Callable[[str], Story]:
        FAMILIES[name] = make
        return make

    return register


def by_key(key: str) -> Story:
    """The story of a key with or without a minus."""
    key = key.rstrip("-")
    name, colon, _ = key.partition(":")
    return FAMILIES[name](key) if colon else STORIES[key]


def without_plugin(key: str) -> bool:
    """Whether a key says that the story is played without the plugin."""
    return key.endswith("-")


def keys_for(release: str, *, full: bool) -> list[str]:
    """What is played with a release, in order."""
    fit = [story for story in STORIES.values() if (full or story.core) and release not in story.unfit]
    return sorted([story.key for story in fit] + [f"{story.key}-" for story in fit if story.control])
