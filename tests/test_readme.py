"""The settings table in the README is the one that the code has."""

from __future__ import annotations

import re
from pathlib import Path

from ccc_plugins.retire_stale.settings import settings_table

README = Path(__file__).parents[1] / "README.md"


def test_the_settings_table_is_that_of_the_code() -> None:
    """Between its markers, which stand there once, the README has the table of `settings_table()` to the letter."""
    found = re.findall(r"^<!-- settings -->\n(.*?)^<!-- /settings -->$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found == [settings_table()]
