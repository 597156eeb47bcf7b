"""What others may use says what it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "ccc_hookspecs" / "testing" / "simulator"
"""The simulated Claude Code is run and not imported: what it does is documented, in `docs/testing-plugins.md`, not its parts."""

SOURCES = sorted(file for file in (ROOT / "ccc_hookspecs").rglob("*.py") if PROGRAM not in file.parents)


def silent(node: ast.Module | ast.ClassDef, inside: str = "") -> Iterator[str]:
    """The public classes, functions, methods and properties without a docstring; whatever is in a private class is private."""
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not child.name.startswith("_"):
            if ast.get_docstring(child) is None:
                yield f"{inside}{child.name}"
            if isinstance(child, ast.ClassDef):
                yield from silent(child, f"{inside}{child.name}.")


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_public_name_has_a_docstring(file: Path) -> None:
    """A module that holds anything, and each public class, function, method and property in it, is documented."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert not tree.body or ast.get_docstring(tree)
    assert list(silent(tree)) == []
