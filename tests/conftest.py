"""What every test stands on: an environment without this machine's own settings, and checked markers."""

from __future__ import annotations

import os
import re

import hypothesis
import pytest

pytest_plugins = ["ccc_hookspecs.testing.fixtures"]

hypothesis.settings.register_profile("shared-machine", deadline=None)
hypothesis.settings.load_profile("shared-machine")


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No setting of the person who runs the tests reaches one, and none is read from or written to their home."""
    for variable in list(os.environ):
        if variable.startswith(("CCC_PLUGIN", "CCC_TICKER", "CLAUDE", "ANTHROPIC", "XDG_")):
            monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a `case` marker whose ids are not those of public reports, such as C31."""
    for item in items:
        for marker in item.iter_markers("case"):
            if not marker.args or not all(isinstance(one, str) and re.fullmatch(r"C\d\d", one) for one in marker.args):
                raise pytest.UsageError(f"{item.nodeid}: case{marker.args} does not name public reports such as C31")
