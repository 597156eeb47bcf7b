"""Arguments of the hooks, and plugins made and installed for one test."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

import pytest

from ccc_hookspecs.config import Config, load_config
from ccc_hookspecs.manager import PluginManager
from ccc_hookspecs.specs import Host, hookimpl
from ccc_hookspecs.values import Decision, Headless, Injection, TerminalLaunch, Tick

SESSION = "72350742-dff3-4ee0-a645-6602d6d2b86e"
MESSAGE = "0b6ee27a-5d51-4d8d-a1c3-7c1f3a0f6f0e"
TEXT = "a secret"

HOST = cast(Host, object())
HEADLESS = Headless(session_id=SESSION, pid=4711, start_time=12.5)
INJECTION = Injection(session_id=SESSION, text=TEXT, message_id=MESSAGE, headless=HEADLESS)
LAUNCH = TerminalLaunch(session_id=SESSION, headless=HEADLESS)
TICK = Tick(number=1, monotonic=1.0, interval=5.0)


class Site:
    """A directory on `sys.path` into which distributions with entry points are written, as an installer would."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.monkeypatch = monkeypatch
        path.mkdir(parents=True, exist_ok=True)
        monkeypatch.syspath_prepend(path)

    def module(self, name: str, source: str) -> None:
        """Write an importable module; it is forgotten when the test ends."""
        (self.path / f"{name}.py").write_text(source, encoding="utf-8")
        self.monkeypatch.delitem(sys.modules, name, raising=False)

    def distribution(self, name: str, entry_points: str, version: str = "1.0") -> None:
        """Write the metadata of a distribution whose `entry_points.txt` has this text."""
        folder = self.path / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
        (folder / "entry_points.txt").write_text(entry_points, encoding="utf-8")

    def plugin(self, name: str, module: str, source: str) -> None:
        """Install a distribution of one plugin."""
        self.module(module, source)
        self.distribution(f"dist-of-{module}", f"[ccc.plugins]\n{name} = {module}\n")


OURS = {"retire_stale.use_time", "retire_stale.terminal_launch", "retire_stale.watcher"}
"""The mechanisms of this distribution, which is installed where the tests run."""

ONLY_THE_TESTS_OWN = {f"CCC_PLUGIN_ENABLE__{name.upper().replace('.', '__')}": "off" for name in OURS}

GOOD = """
from ccc_hookspecs import Hold, hookimpl
ticks = []
@hookimpl
def pre_inject(injection):
    return Hold(reason=__name__)
@hookimpl
def on_tick(tick):
    ticks.append(tick.number)
"""


def config(**environ: str) -> Config:
    """The configuration of an environment, with the mechanisms of this distribution switched off."""
    return load_config(environ={**ONLY_THE_TESTS_OWN, **environ})


def states(manager: PluginManager) -> dict[str, str]:
    """The state of each plugin but the mechanisms of this distribution."""
    return {status.name: status.state for status in manager.plugins() if status.name not in OURS}


class Unspeakable(Exception):
    """An exception that breaks whoever tells of it: its text and its notes are attributes that nobody set."""

    def __str__(self) -> str:
        return str(self.detail)

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(f"{name} was never set")


class Answering:
    """A plugin that answers `answer` and counts its calls."""

    def __init__(self, answer: Decision | None = None) -> None:
        self.answer = answer
        self.injections = 0
        self.ticks = 0

    @hookimpl
    def pre_inject(self, injection: Injection) -> Decision | None:
        self.injections += 1
        return self.answer

    @hookimpl
    def on_tick(self, tick: Tick) -> None:
        self.ticks += 1
