"""What is built and installed is whole: packages, metadata, entry points, and each mechanism on its own switch."""

from __future__ import annotations

import configparser
import email
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.xdist_group("wheel")  # one wheel is built for all of them

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MECHANISMS = ("retire_stale.use_time", "retire_stale.terminal_launch", "retire_stale.watcher")


def switchboard() -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    assert parser.sections() == ["options.entry_points"]
    lines = {group: text.strip().splitlines() for group, text in parser["options.entry_points"].items()}
    return {group: {name.strip(): value.strip() for name, value in (line.split("=") for line in rows)} for group, rows in lines.items()}


def test_setup_cfg_holds_the_entry_points_alone() -> None:
    """One line a mechanism, each naming its own module; nothing else is configured there."""
    groups = switchboard()
    assert groups["ccc.plugins"] == {name: f"ccc_plugins.retire_stale.mechanisms.{name.split('.')[1]}" for name in MECHANISMS}
    assert groups["console_scripts"] == {
        "ccc-host": "ccc_hookspecs.host.cli:main",
        "retire-stale": "ccc_plugins.retire_stale.cli:main",
    }
    assert set(groups) == {"ccc.plugins", "console_scripts"}


def floor(requirement: str) -> tuple[str, list[int]]:
    name, version = re.split(">=|==", requirement)
    numbers = [int(part) for part in version.split(".")]
    return name, numbers + [0] * (3 - len(numbers))


def test_the_oldest_dependencies_are_those_that_are_tested() -> None:
    """Each lower bound of a run-time or command-line dependency is a pin of the run on the oldest versions, and the other way round."""
    wanted = PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["cli"]
    lines = (ROOT / ".ci" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    assert dict(map(floor, wanted)) == dict(floor(line) for line in lines if not line.startswith("#"))


def test_the_supported_interpreters_are_told_alike() -> None:
    """The lowest Python of the metadata is the one that ruff and mypy check for and the first classifier."""
    assert PROJECT["project"]["requires-python"] == ">=3.11"
    assert PROJECT["tool"]["mypy"]["python_version"] == "3.11"
    assert PROJECT["tool"]["ruff"]["target-version"] == "py311"
    assert "Programming Language :: Python :: 3.11" in PROJECT["project"]["classifiers"]


class Installed:
    """A virtual environment that holds the built wheel and its dependencies alone."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.wheel = wheel
        self.home = folder / "home"
        self.home.mkdir()
        venv.create(folder / "env", with_pip=True)
        self.python = folder / "env" / "bin" / "python"
        self.pip("install", str(wheel))

    def pip(self, *arguments: str) -> None:
        command = [str(self.python), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
        subprocess.run(command, check=True, timeout=300)

    def run(self, script: str, **environ: str) -> Any:
        """Run `script` away from the sources and give back the JSON it prints."""
        plain = {"PATH": os.environ["PATH"], "HOME": str(self.home), **environ}
        done = subprocess.run([str(self.python), "-I", "-c", script], capture_output=True, text=True, timeout=60, cwd=self.home, env=plain)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel, built by way of the source distribution from a copy of the sources, in an environment of its own."""
    folder = tmp_path_factory.mktemp("packaging")
    source = folder / "source"
    skipped = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__", "build", "dist", "tests")
    shutil.copytree(ROOT, source, ignore=skipped)
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist"), str(source)]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    (wheel,) = (folder / "dist").glob("*.whl")
    return Installed(folder, wheel)


STATES = """
import json
from ccc_hookspecs.manager import PluginManager
manager = PluginManager()
print(json.dumps({status.name: status.state for status in manager.load()}))
"""

AT_RUN_TIME = """
import json
from ccc_hookspecs.manager import PluginManager
manager = PluginManager()
manager.load()
found = {}
for name in [status.name for status in manager.plugins()]:
    manager.disable(name)
    found[name] = {status.name: status.state for status in manager.plugins()}
    manager.enable(name)
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_wheel_is_whole(installed: Installed) -> None:
    """It holds both packages with their type marker, the licence and the documentation's metadata, and no test."""
    with zipfile.ZipFile(installed.wheel) as archive:
        names = set(archive.namelist())
        (metadata_name,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(metadata_name))
    sources = {str(file.relative_to(ROOT)) for top in ("ccc_hookspecs", "ccc_plugins") for file in (ROOT / top).rglob("*.py")}
    assert sources <= names
    assert {"ccc_hookspecs/py.typed", "ccc_plugins/retire_stale/py.typed"} <= names
    assert "ccc_plugins/__init__.py" not in names
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert {name.partition("/")[0] for name in names} == {"ccc_hookspecs", "ccc_plugins", metadata_name.partition("/")[0]}
    assert (metadata["Name"], metadata["License-Expression"], metadata["Requires-Python"]) == ("ccc-retire-stale", "MIT", ">=3.11")
    assert set(metadata.get_all("Provides-Extra", [])) == {"cli", "test", "dev"}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_three_mechanisms_are_found(installed: Installed) -> None:
    """In an environment that holds nothing else, three entry points are found, loaded and active."""
    assert installed.run(STATES) == dict.fromkeys(MECHANISMS, "active")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", MECHANISMS)
def test_each_mechanism_has_its_own_switches(installed: Installed, name: str, tmp_path: Path) -> None:
    """Its flag in a file, its flag in the environment and a block each switch it off and leave the other two."""
    file = tmp_path / "plugins.toml"
    file.write_text(f'[plugins]\n"{name}" = false\n', encoding="utf-8")
    variable = "CCC_PLUGIN_ENABLE__" + name.upper().replace(".", "__")
    others = dict.fromkeys(MECHANISMS, "active")
    assert installed.run(STATES, CCC_PLUGINS_FILE=str(file)) == {**others, name: "disabled"}
    assert installed.run(STATES, **{variable: "false"}) == {**others, name: "disabled"}
    assert installed.run(STATES, CCC_PLUGINS_BLOCK=name) == {**others, name: "blocked"}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_each_mechanism_can_be_switched_off_at_run_time(installed: Installed) -> None:
    """A host that disables one at run time keeps the other two."""
    others = dict.fromkeys(MECHANISMS, "active")
    assert installed.run(AT_RUN_TIME) == {name: {**others, name: "disabled"} for name in MECHANISMS}
