"""Prints the table of releases and stories after the tests on the real Claude Code."""

from __future__ import annotations

from typing import Any

import pytest

from tests.real.runs import rows

OUTCOMES: pytest.StashKey[dict[str, dict[str, dict[str, Any]]]] = pytest.StashKey()
"""The outcomes by release and key."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    outcomes = terminalreporter.config.stash.get(OUTCOMES, {})
    if not outcomes:
        return
    table = rows(outcomes)
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    terminalreporter.section("stories on the real Claude Code")
    for row in table:
        terminalreporter.line("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
