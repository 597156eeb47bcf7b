"""The guide to the hooks in CCC: what it says is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ccc_hookspecs.integrations.command_center.attach import READ_IN

DOCS = Path(__file__).parents[3] / "docs"
COMMAND_CENTER = (DOCS / "command-center.md").read_text(encoding="utf-8")


def blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_the_guide_to_ccc_names_the_version_and_what_is_logged() -> None:
    """The release that the integration was written to, and every verb in CCC's activity log, are in the guide."""
    source = "".join(path.read_text() for path in (Path(__file__).parents[3] / "ccc_hookspecs/integrations/command_center").glob("*.py"))
    verbs = set(re.findall(r'_log(?:_activity)?\((?:"\w+", )?"([A-Z_]+)"', source))
    assert verbs == {"ATTACH", "HOLD", "HOLD_END", "DEFER", "FAILED", "WOULD", "HEALED"}
    assert all(verb in COMMAND_CENTER for verb in verbs)
    assert f"CCC {READ_IN}" in COMMAND_CENTER


def test_the_guide_to_ccc_shows_what_there_is() -> None:
    """Its example compiles and imports what exists."""
    (example,) = blocks(COMMAND_CENTER)
    names: dict[str, Any] = {}
    exec(compile(example.split("\n\n")[0], "command-center.md", "exec"), names)  # the guide's own imports
    compile(example, "command-center.md", "exec")
    assert {"attach", "AttachError"} <= set(names)
