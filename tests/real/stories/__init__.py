"""The stories that are played with the real Claude Code."""

from tests.real.stories import alone, commands, crash, days, healing, mechanisms, takeover
from tests.real.stories.registry import STORIES, Story, by_key, keys_for, without_plugin

__all__ = [
    "STORIES",
    "Story",
    "alone",
    "by_key",
    "commands",
    "crash",
    "days",
    "healing",
    "keys_for",
    "mechanisms",
    "takeover",
    "without_plugin",
]
