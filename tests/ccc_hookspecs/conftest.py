"""Fixtures of the tests of the contract."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ccc_hookspecs import signals
from ccc_hookspecs.outcomes import PluginFailure
from tests.ccc_hookspecs.samples import Site


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A fresh place for installed distributions; the modules imported from it are forgotten at the end."""
    before = set(sys.modules)
    yield Site(tmp_path / "site", monkeypatch)
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def failures() -> Iterator[list[tuple[str, PluginFailure]]]:
    """What `plugin_failed` said during the test, with its sender."""
    heard: list[tuple[str, PluginFailure]] = []

    def receive(plugin: str, event: PluginFailure) -> None:
        heard.append((plugin, event))

    with signals.plugin_failed.connected_to(receive):
        yield heard
