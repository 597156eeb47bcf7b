"""The documents say what the code does: names, arguments, payloads, tables and examples are held against it."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
import types
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest

import ccc_hookspecs
from ccc_hookspecs import Decision, Deliver, config, signals, specs
from ccc_hookspecs.config import TickerSettings, load_config
from ccc_hookspecs.errors import ConfigError
from ccc_hookspecs.isolation import HOOKS
from ccc_hookspecs.manager import PluginManager
from ccc_hookspecs.outcomes import Facts, Retirement
from tests.ccc_hookspecs.samples import HOST, INJECTION, LAUNCH

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
WRITING = (ROOT / "docs" / "writing-plugins.md").read_text(encoding="utf-8")
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
FACTS = Facts(attribution="stale", attribution_reason="one foreign record", idleness="idle")
OURS = ("retire_stale.use_time", "retire_stale.terminal_launch", "retire_stale.watcher")


def spec(hook: str) -> types.FunctionType:
    found = getattr(specs, hook)
    assert isinstance(found, types.FunctionType)
    return found


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the first table after `heading`, without its two head lines."""
    table = re.search(r"(?:^\|.*\n)+", text[text.index(heading) :], re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.group().splitlines()[2:]]


def test_the_hooks_are_these() -> None:
    """The specs module declares these hooks and no other."""
    declared = [name for name, value in vars(specs).items() if hasattr(value, f"{specs.PROJECT}_spec")]
    assert tuple(declared) == HOOKS


@pytest.mark.parametrize("hook", HOOKS)
def test_each_hook_is_documented_with_its_exact_arguments(hook: str) -> None:
    """A heading of the guide shows the hook's own signature; the text below says what it returns and on which thread it runs."""
    arguments = ", ".join(inspect.signature(spec(hook)).parameters)
    heading = f"### `{hook}({arguments})`\n"
    assert heading in WRITING
    section = WRITING.split(heading)[1].split("\n#")[0]
    assert section.strip().startswith("Returns")
    assert "thread" in section


@pytest.mark.parametrize("hook", HOOKS)
def test_each_hook_says_when_by_whom_with_what_and_since_when(hook: str) -> None:
    """A hook's docstring begins with when it is called, names every argument and ends with the version that brought it."""
    doc = inspect.getdoc(spec(hook)) or ""
    assert doc.startswith("Called ")
    assert "thread" in doc.split("\n\n")[0]
    assert all(f"`{argument}`" in doc for argument in inspect.signature(spec(hook)).parameters)
    assert re.search(r"^versionadded: \d+\.\d+$", doc, re.MULTILINE)


@pytest.mark.parametrize("hook", HOOKS)
def test_each_hook_has_a_test_of_its_name(hook: str) -> None:
    """Somewhere in the tests of the contract there is a test called after the hook."""
    files = (ROOT / "tests" / "ccc_hookspecs").glob("test_*.py")
    tests = {node.name for file in files for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)}
    assert f"test_{hook}" in tests


def test_each_decision_is_documented_with_its_fields() -> None:
    """The table of answers lists every member of the union, with all of its fields, and no other."""
    listed = {row[0].strip("`") for row in rows(WRITING, "### `pre_inject")}
    assert listed == {f"{kind.__name__}({', '.join(field.name for field in fields(kind))})" for kind in get_args(Decision)}


def test_each_function_of_a_plugin_besides_its_hooks_is_documented() -> None:
    """The table of the guide lists what the manager calls of a plugin, with its arguments."""
    assert [row[0] for row in rows(WRITING, "| optional function |")] == ["`configure(settings)`", "`unconfigure()`"]


def test_what_a_host_offers_is_documented() -> None:
    """The table of the guide lists every member of `Host` with its exact arguments."""
    listed = {row[0].strip("`") for row in rows(WRITING, "## What `ccc` offers")}
    members = set()
    for name, member in vars(specs.Host).items():
        if isinstance(member, property):
            members.add(name)
        elif not name.startswith("_") and isinstance(member, types.FunctionType):
            members.add(f"{name}({', '.join(list(inspect.signature(member).parameters)[1:])})")
    assert listed == members


def test_each_signal_is_documented_with_its_payload() -> None:
    """The table of the guide lists every signal with the type that the signal's own doc names."""
    listed = {row[0].strip("`"): row[1].strip("`") for row in rows(WRITING, "## Signals")}
    described = {name: re.findall(r"`event` is an? (\w+)", signal.__doc__ or "")[0] for name, signal in signals.namespace.items()}
    assert listed == described


def test_every_public_name_of_the_package_can_be_found_in_the_guide() -> None:
    """What `ccc_hookspecs` exports is for plugin authors, so the guide mentions each name, and each exists."""
    for name in ccc_hookspecs.__all__:
        assert getattr(ccc_hookspecs, name) is not None
    mentioned = {"Decision", "Deliver", "Hold", "Injection", "Respawn", "Veto", "hookimpl"}
    assert mentioned <= set(ccc_hookspecs.__all__)
    assert all(re.search(rf"\b{name}\b", WRITING) for name in mentioned)


def test_the_examples_of_the_guide_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The plugin shown is accepted and asked, the settings shown are built, and the receiver shown hears while its plugin is on."""
    plugin, settings, receiver = (types.ModuleType(f"example{number}") for number in range(3))
    for module, source in zip((plugin, settings, receiver), blocks(WRITING, "python"), strict=True):
        exec(compile(source, module.__name__, "exec", dont_inherit=True), vars(module))
    manager = PluginManager(load_config(environ={}))
    vars(plugin)["FREEZE"] = Path("/")
    assert manager.register(plugin, "my_company.freeze").state == "active"
    assert "release" in repr(manager.pre_inject(HOST, INJECTION))
    vars(plugin)["FREEZE"] = Path("/nowhere")
    assert manager.pre_inject(HOST, INJECTION) == Deliver()
    manager = PluginManager(load_config(environ={"CCC_PLUGIN__MY_COMPANY__LIMIT": "0"}))
    assert manager.register(settings, "my_company.other").state == "active"
    assert vars(settings)["settings"].limit == 0
    gone = Retirement(headless=INJECTION.headless, mechanism="m", reason="stale", facts=FACTS, rung="terminate", seconds=0.1)

    def heard() -> str:
        signals.emit(signals.headless_retired, "m", gone)
        return capsys.readouterr().out

    assert heard() == ""
    assert manager.register(receiver, "my_company.ear").state == "active"
    assert heard() == f"m retired {gone.headless.pid}: stale\n"
    manager.disable("my_company.ear")
    assert heard() == ""


def test_the_host_of_the_readme_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code shown for a host finds the installed mechanisms, starts a ticker and gets a decision."""
    for name in OURS:
        monkeypatch.setenv(f"CCC_PLUGIN_ENABLE__{name.upper().replace('.', '__')}", "off")
    (source,) = blocks(README, "python")
    names: dict[str, Any] = {"ccc": HOST, "injection": INJECTION, "launch": LAUNCH}
    exec(compile(source, "README.md", "exec", dont_inherit=True), names)
    assert names["ticker"].stop() is True
    assert names["decision"] == Deliver()
    assert {status.name for status in names["manager"].plugins()} >= set(OURS)


def test_the_example_entry_point_names_the_group() -> None:
    """The TOML of the guide is a `pyproject.toml` table of the group that is searched."""
    document = tomllib.loads(blocks(WRITING, "toml")[0])
    assert document["project"]["entry-points"]["ccc.plugins"] == {"my_company.freeze": "my_plugin"}


def test_the_example_configuration_is_accepted(tmp_path: Path) -> None:
    """The file shown is read without error and switches what it says."""
    file = tmp_path / "plugins.toml"
    file.write_text(blocks(CONFIGURATION, "toml")[0])
    read = load_config(file, {})
    read.check(OURS)
    assert read.flag("retire_stale.watcher").value is False
    assert read.settings_for("retire_stale.watcher").values == {"mode": "shadow"}
    assert read.ticker.interval == 7.5


def test_the_example_variables_are_accepted() -> None:
    """Each variable of the table, with the value shown, is one the configuration understands, and none is left out."""
    shown = [row[0].strip("`").partition("=") for row in rows(CONFIGURATION, "| variable |")]
    environ = {name: value for name, _, value in shown if value}
    read = load_config(environ=environ)
    read.check(OURS)
    assert read.flag("retire_stale.watcher").value is False
    assert read.settings_for("retire_stale.watcher").values == {"mode": "shadow"}
    assert (read.trace, read.ticker.interval, read.blocked) == (True, 7.5, frozenset({"name"}))
    assert {config.FILE_VARIABLE, config.BLOCK_VARIABLE, config.TRACE_VARIABLE} <= {name for name, _, _ in shown}


def test_the_ticker_table_is_the_codes() -> None:
    """Key, default, unit, range and meaning of `[ticker]` are those of the dataclass."""
    told = rows(CONFIGURATION, "## `[ticker]`")
    held = []
    for field in fields(TickerSettings):
        low, high = field.metadata["range"]
        held.append([f"`{field.name}`", f"`{field.default}`", field.metadata["unit"], f"{low} to {high}", field.metadata["doc"]])
    assert told == held


def test_the_example_of_a_mistake_is_the_real_message(tmp_path: Path) -> None:
    """The error shown is, but for the path, the one that the mistake brings."""
    file = tmp_path / "plugins.toml"
    file.write_text('[plugins]\n"retire_stale.wacher" = false\n')
    with pytest.raises(ConfigError) as caught:
        load_config(file, {}).check(OURS)
    assert str(caught.value).replace(str(file), "/home/me/.config/ccc/plugins.toml") in CONFIGURATION


def test_links_between_documents_lead_somewhere() -> None:
    """Each relative link of the README and of a document names a file that exists."""
    for document in (ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"
