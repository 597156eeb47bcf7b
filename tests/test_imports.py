"""Imports run one way, and importing has no effect of its own."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted([*(ROOT / "ccc_hookspecs").rglob("*.py"), *(ROOT / "ccc_plugins").rglob("*.py")])


ALLOWED: dict[str, tuple[str, ...]] = {
    # Leaves: they know nothing of ours.
    "ccc_hookspecs.failures": (),
    "ccc_hookspecs.forks": (),
    "ccc_hookspecs.processes": (),
    "ccc_hookspecs.private_sqlite": (),
    # The contract, from the values outwards.
    "ccc_hookspecs.errors": ("ccc_hookspecs.failures",),
    "ccc_hookspecs.checks": ("ccc_hookspecs.errors",),
    "ccc_hookspecs.values": ("ccc_hookspecs.checks", "ccc_hookspecs.errors"),
    "ccc_hookspecs.outcomes": ("ccc_hookspecs.checks", "ccc_hookspecs.values"),
    "ccc_hookspecs.specs": ("ccc_hookspecs.values",),
    "ccc_hookspecs.signals": ("ccc_hookspecs.failures", "ccc_hookspecs.outcomes"),
    "ccc_hookspecs": ("ccc_hookspecs.outcomes", "ccc_hookspecs.specs", "ccc_hookspecs.values"),
    "ccc_hookspecs.settings": ("ccc_hookspecs.errors", "ccc_hookspecs.failures"),
    "ccc_hookspecs.variables": ("ccc_hookspecs.settings",),
    "ccc_hookspecs.config": ("ccc_hookspecs.errors", "ccc_hookspecs.settings", "ccc_hookspecs.variables"),
    "ccc_hookspecs.ticker": ("ccc_hookspecs.f[ao]*", "ccc_hookspecs.values"),
    "ccc_hookspecs.isolation": (
        "ccc_hookspecs",
        "ccc_hookspecs.errors",
        "ccc_hookspecs.failures",
        "ccc_hookspecs.outcomes",
        "ccc_hookspecs.s[ip]*",
        "ccc_hookspecs.values",
    ),
    "ccc_hookspecs.discovery": (
        "ccc_hookspecs.errors",
        "ccc_hookspecs.failures",
        "ccc_hookspecs.isolation",
        "ccc_hookspecs.settings",
    ),
    "ccc_hookspecs.manager": (
        "ccc_hookspecs.claude.text",
        "ccc_hookspecs.config",
        "ccc_hookspecs.discovery",
        "ccc_hookspecs.errors",
        "ccc_hookspecs.f[ao]*",
        "ccc_hookspecs.isolation",
        "ccc_hookspecs.s[ep]*",
        "ccc_hookspecs.values",
    ),
    "ccc_hookspecs.claude*": ("ccc_hookspecs.claude*", "ccc_hookspecs.processes", "ccc_hookspecs.values", "ccc_hookspecs.errors"),
    "ccc_hookspecs.host*": ("ccc_hookspecs*",),
    "ccc_hookspecs.integrations*": ("ccc_hookspecs*",),
    "ccc_hookspecs.testing*": ("ccc_hookspecs*",),
    # The plugin, from what judges to what acts.
    "ccc_plugins.retire_stale.judgement*": ("ccc_hookspecs.outcomes", "ccc_plugins.retire_stale.judgement*"),
    "ccc_plugins.retire_stale.evidence*": (
        "ccc_hookspecs",
        "ccc_hookspecs.[!hit]*",
        "ccc_plugins.retire_stale.judgement*",
        "ccc_plugins.retire_stale.evidence*",
    ),
    "ccc_plugins.retire_stale.mechanisms*": ("ccc_hookspecs", "ccc_hookspecs.[!hit]*", "ccc_plugins.retire_stale*"),
    "ccc_plugins.retire_stale.cli*": ("ccc_hookspecs*", "ccc_plugins.retire_stale*"),
    "ccc_plugins.retire_stale*": ("ccc_hookspecs", "ccc_hookspecs.[!hit]*", "ccc_plugins.retire_stale", "ccc_plugins.retire_stale.[!m]*"),
}
"""Who may import which modules of ours, at the top or inside a function; the first pattern that fits a module counts."""

NO_OUTSIDE_WORLD = {"os", "io", "time", "pathlib", "psutil", "subprocess", "socket", "sqlite3", "threading", "signal", "random", "logging"}


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(file: Path) -> Iterator[str]:
    """Every module that `file` imports anywhere; for `from package import module` the module."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            base = node.module or ""
            for alias in node.names:
                whole = ROOT.joinpath(*base.split("."), alias.name)
                yield f"{base}.{alias.name}" if whole.is_dir() or whole.with_suffix(".py").is_file() else base


def ours(name: str) -> bool:
    return name.partition(".")[0] in ("ccc_hookspecs", "ccc_plugins")


@pytest.mark.parametrize("file", SOURCES, ids=module_of)
def test_imports_run_one_way(file: Path) -> None:
    """No module imports one of ours that the table does not let it; so the contract knows no host and no plugin."""
    module = module_of(file)
    allowed = next((targets for pattern, targets in ALLOWED.items() if fnmatchcase(module, pattern)), ())
    for target in filter(ours, imported(file)):
        assert any(fnmatchcase(target, pattern) for pattern in allowed), f"{module} may not import {target}"


def test_the_contract_never_names_a_plugin() -> None:
    """Nothing of `ccc_hookspecs` imports anything of `ccc_plugins`, lazily or otherwise."""
    for file in SOURCES:
        if module_of(file).startswith("ccc_hookspecs"):
            assert not [name for name in imported(file) if name.startswith("ccc_plugins")], file


def test_judgement_knows_no_outside_world() -> None:
    """What judges has neither clock, files nor processes: it imports nothing that could reach them."""
    for file in SOURCES:
        if ".judgement" in module_of(file):
            assert not {name.partition(".")[0] for name in imported(file)} & NO_OUTSIDE_WORLD, file


def test_only_mechanisms_implement_hooks() -> None:
    """`hookimpl` is used in the plugin's mechanisms alone."""
    for file in SOURCES:
        module = module_of(file)
        if module.startswith("ccc_plugins") and ".mechanisms" not in module:
            assert "hookimpl" not in {node.id for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Name)}, module


def test_one_module_of_the_plugin_signals_processes() -> None:
    """Every call that can signal a process stands in one module of `retire_stale`."""
    signalling = {"kill", "killpg", "pidfd_send_signal", "send_signal", "terminate"}
    found = set()
    for file in SOURCES:
        if module_of(file).startswith("ccc_plugins"):
            names = {node.attr for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Attribute)}
            found |= {module_of(file)} if names & signalling else set()
    assert found <= {"ccc_plugins.retire_stale.signalling"}


QUIET = """
import importlib, sys, threading
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("psutil", "click", "rich", "pytest"):
            raise ImportError(f"{name} was built for another Python")
sys.meta_path.insert(0, Refuse())
for name in sys.argv[1:]:
    importlib.import_module(name)
from ccc_hookspecs import signals
assert threading.active_count() == 1, threading.enumerate()
assert not any(signal.receivers for signal in signals.namespace.values())
print("quiet")
"""


@pytest.mark.case("C92")
def test_importing_has_no_effect_and_needs_no_psutil() -> None:
    """The contract and every module that an entry point names can be imported where psutil cannot, and start nothing."""
    names = [name for file in SOURCES if fnmatchcase(name := module_of(file), "ccc_hookspecs*") and not name.startswith(_with_extras())]
    names += [name for file in SOURCES if ".mechanisms" in (name := module_of(file))]
    done = subprocess.run([sys.executable, "-W", "error", "-c", QUIET, *names], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.stdout == "quiet\n", done.stderr


def _with_extras() -> tuple[str, ...]:
    """Modules that an extra pays for: command lines and what is for tests."""
    return ("ccc_hookspecs.host", "ccc_hookspecs.testing", "ccc_hookspecs.integrations")
