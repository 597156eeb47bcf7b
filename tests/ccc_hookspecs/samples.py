"""Arguments of the hooks, and plugins installed for one test."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

import pytest

from ccc_hookspecs.specs import Host
from ccc_hookspecs.values import Headless, Injection, TerminalLaunch, Tick

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
