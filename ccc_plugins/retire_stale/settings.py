"""The settings of `[plugins.retire_stale]`, shared by the three mechanisms."""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass
from typing import Any, Literal

from ccc_hookspecs.config import setting


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One field a key. Each says its meaning, unit, range and what 0 means in its metadata; `settings_table` renders them."""

    mode: Literal["act", "shadow"] = setting(
        "act", doc="`act` heals and retires; `shadow` judges and reports what it would heal or retire, gives nothing and ends nothing."
    )
    lock_seconds: float = setting(
        2.0,
        doc="How long to wait for a session's lock before the session is left to a later look.",
        unit="s",
        minimum=0,
        maximum=60,
        zero="try once",
    )
    settle_seconds: float = setting(
        2.0,
        doc="How long to wait until the transcript holds every message that the headless's log shows; past it the retirement is deferred.",
        unit="s",
        minimum=0,
        maximum=30,
        zero="look once",
    )
    freeze_seconds: float = setting(
        1.0,
        doc="How long to wait until the stopped process really stands still; past it the process is let go and the retirement is deferred.",
        unit="s",
        minimum=0.01,
        maximum=10,
    )
    terminate_seconds: float = setting(
        5.0,
        doc="How long a process, or what ran below one that is gone, may take to exit after SIGTERM, before SIGKILL.",
        unit="s",
        minimum=0.1,
        maximum=120,
    )
    kill_seconds: float = setting(
        2.0, doc="How long to wait for the exit after SIGKILL, before the retirement counts as failed.", unit="s", minimum=0.1, maximum=60
    )
    cpu_look_seconds: float = setting(
        0.05,
        doc="Time between two looks at a process's CPU use, where no other sign tells idle from busy.",
        unit="s",
        minimum=0,
        maximum=1,
        zero="one look; CPU use is no sign",
    )
    launch_wait_seconds: float = setting(
        0.0,
        doc="How long the start of a terminal may wait for a busy headless to become idle.",
        unit="s",
        minimum=0,
        maximum=30,
        zero="do not wait: remember it and retire it when it is idle",
    )
    watcher_confirm_ticks: int = setting(
        2,
        doc="How many ticks in a row a terminal must be seen on a session before the watcher acts on it.",
        unit="ticks",
        minimum=1,
        maximum=100,
    )
    heal: Literal["held", "always", "never"] = setting(
        "held",
        doc="When a process is given the turns that it does not know, and kept. `held`: where it cannot be ended for now, where a fresh "
        "one would lack turns too, and a fresh one itself. `always`: also instead of retiring it before a text goes in. `never`.",
    )
    heal_seconds: float = setting(
        10.0,
        doc="How long that may take before a text; past it the text is held, and the rest is given at the next try.",
        unit="s",
        minimum=0.1,
        maximum=120,
    )
    heal_limit: int = setting(
        32, doc="The most that is given at once; where more is lacking, nothing is.", unit="MB", minimum=1, maximum=1024
    )
    catch_up: bool = setting(
        True, doc="Where it cannot be healed, give a fresh process the turns that its branch of a forked transcript lacks as a text."
    )
    catch_up_limit: int = setting(
        20_000,
        doc="The longest such text; the oldest turns are cut first, and the text says so.",
        unit="characters",
        minimum=0,
        maximum=1_000_000,
        zero="only a note that turns are lacking",
    )


HEADER = "| Setting | Default | Unit | Range | Meaning |\n| --- | --- | --- | --- | --- |\n"


def settings_table() -> str:
    """The settings as a markdown table, one row a key in the order of the fields, ending in a line break."""
    hints = typing.get_type_hints(Settings)
    return HEADER + "".join(_row(item, hints[item.name]) for item in dataclasses.fields(Settings))


def _row(item: dataclasses.Field[Any], hint: object) -> str:
    zero = item.metadata["zero"]
    meaning = item.metadata["doc"] + (f" 0: {zero}." if zero else "")
    cells = (f"`{item.name}`", f"`{_toml(item.default)}`", item.metadata["unit"] or "", _range(item, hint), meaning)
    return "| " + " | ".join(cells) + " |\n"


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


def _range(item: dataclasses.Field[Any], hint: object) -> str:
    if hint is bool:
        return "`true`, `false`"
    if choices := typing.get_args(hint):
        return ", ".join(f'`"{choice}"`' for choice in choices)
    low, high = item.metadata["range"]
    return f"{low:g} to {high:,}".replace(",", " ")
