"""Attaching to a server module, refusing one of another shape, and letting go again."""

from __future__ import annotations

import ast
import inspect
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ccc_hookspecs.config import Config
from ccc_hookspecs.integrations.command_center import AttachError, attach
from ccc_hookspecs.integrations.command_center.attach import PATH_VARIABLE
from ccc_hookspecs.integrations.command_center.names import ENGINE_HOST, SERVER, Name, check
from ccc_hookspecs.manager import PluginManager
from tests.ccc_hookspecs.integrations.conftest import Ccc, Home, disk_full


def functions(server: Any) -> dict[str, object]:
    return {name: value for name, value in vars(server).items() if callable(value)}


@pytest.mark.parametrize("name", [name.name for name in SERVER])
def test_a_missing_name_is_named_and_nothing_is_changed(home: Home, name: str) -> None:
    """One error says what is missing and of which CCC; the module is as it was."""
    ccc = home.start(attached=False)
    value = vars(ccc.server).pop(name)
    before = dict(vars(ccc.server))
    with pytest.raises(AttachError, match=rf"CCC 5\.25\.2 lacks {name}.*runs on") as raised:
        ccc.attach()
    assert vars(ccc.server) == before
    assert (raised.value.version, len(raised.value.problems)) == ("5.25.2", 1)
    setattr(ccc.server, name, value)


def test_a_name_of_another_shape_is_named(home: Home) -> None:
    """A function that no longer takes what we give it, or a list that is none, counts as missing."""
    ccc = home.start(attached=False)
    ccc.server._write_via_spawn_fd = lambda target, data: True
    ccc.server._spawned_sessions = {}  # no list
    ccc.server._log_activity = 5
    with pytest.raises(AttachError) as raised:
        ccc.attach()
    text = str(raised.value)
    assert "_write_via_spawn_fd (takes no line, timeout)" in text
    assert "_spawned_sessions (is a dict, expected a list)" in text
    assert "_log_activity(category, verb, detail) (is a int)" in text


def test_the_worker_s_side_is_checked_too(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the worker, its engine host must be there in its shape as well."""
    ccc = home.start(attached=False)
    engines = ModuleType("worker_engines")
    engines.EngineHost = object  # type: ignore[attr-defined] # a module made up for this test
    monkeypatch.setitem(sys.modules, "worker_engines", engines)
    with pytest.raises(AttachError, match="query"):
        ccc.attach()


@pytest.mark.case("C93")
def test_attaching_twice_is_harmless(ccc: Ccc) -> None:
    """The second call gives the same attachment, and every text is asked about once."""
    assert attach(ccc.server) is ccc.attachment
    session_id, _ = ccc.spawn()
    ccc.server._inject_text_into_session(session_id, "second")
    assert len(ccc.plugin.asked) == 1


def test_detaching_puts_everything_back(home: Home) -> None:
    """After `detach` every function is CCC's own again, and nobody listens."""
    ccc = home.start(attached=False)
    before = functions(ccc.server)
    ccc.attach().detach()
    assert functions(ccc.server) == before
    session_id, _ = ccc.spawn()
    ccc.server._inject_text_into_session(session_id, "second")
    assert ccc.plugin.asked == []


def test_a_function_that_somebody_replaced_later_stays(home: Home) -> None:
    """Taking ours back does not undo what was put on top of it."""
    ccc = home.start(attached=False)
    attachment = ccc.attach()

    def own(entry: object) -> bool:
        return True

    ccc.server._headless_turn_in_progress = own
    attachment.detach()
    assert ccc.server._headless_turn_in_progress is own


def test_a_fault_while_attaching_leaves_nothing_behind(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """When something unforeseen happens half-way, CCC has its own functions and no thread of ours."""
    ccc = home.start(attached=False)
    before = functions(ccc.server)

    def fail(*_: object) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr("ccc_hookspecs.ticker.Ticker.start", fail)
    with pytest.raises(RuntimeError):
        ccc.attach()
    assert functions(ccc.server) == before


def test_the_ticker_runs_at_the_configured_pace(home: Home) -> None:
    """A host without a ticker of its own gets one, with the interval of the configuration."""
    ccc = home.start(attached=False)
    attachment = attach(ccc.server, PluginManager(Config()))
    try:
        assert attachment.ticker.running
        assert attachment.ticker.interval == Config().ticker.interval
    finally:
        attachment.detach()
    assert not attachment.ticker.running


def test_a_fault_of_ours_never_stops_a_message(ccc: Ccc, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """When our own code fails, the text is written as it would be without us, and the fault is logged."""
    session_id, _ = ccc.spawn()

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr("ccc_hookspecs.integrations.command_center.judge.Judge.ask", fail)
    assert ccc.server._inject_text_into_session(session_id, "second")["ok"]
    ccc.heard(session_id, "second")
    assert "was not judged" in caplog.text


@pytest.mark.parametrize("fault", ["writer.Writer._settle", "adapter.CommandCenterHost.session_of"])
def test_a_fault_of_ours_doubles_no_message(ccc: Ccc, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """When our own code fails before or after the writing, CCC hears that the text was written, which it was, once."""
    session_id, _ = ccc.spawn()

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(f"ccc_hookspecs.integrations.command_center.{fault}", fail)
    assert ccc.server._inject_text_into_session(session_id, "second")["ok"]
    ccc.heard(session_id, "second")
    assert ccc.texts(session_id) == [["first"], ["second"]]


def test_a_full_disk_costs_no_message(ccc: Ccc, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a session is owed is then kept in memory."""
    session_id, _ = ccc.spawn()
    monkeypatch.setattr("ccc_hookspecs.integrations.command_center.debts.Debts._write", disk_full)
    ccc.plugin.retire(catch_up="lacked")
    ccc.server._inject_text_into_session(session_id, "second")
    assert ccc.heard(session_id, "second") == ["lacked", "second"]
    assert ccc.attachment.host.debts.get(session_id) is None


def test_a_headless_and_its_tools_are_not_ccc(ccc: Ccc, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `retire-stale run` put into CCC's environment does not reach the processes that CCC spawns; the user's own does."""
    from ccc_hookspecs.integrations.command_center.launcher import STARTUP

    monkeypatch.setenv(PATH_VARIABLE, "/somewhere")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(STARTUP), "/own"]))
    environment = ccc.server._question_relay_env()
    assert (environment["PYTHONPATH"], environment["CCC_QUESTION_RELAY"]) == ("/own", "1")
    assert PATH_VARIABLE not in environment
    monkeypatch.setenv("PYTHONPATH", str(STARTUP))
    assert "PYTHONPATH" not in ccc.server._question_relay_env()


def test_without_us_the_environment_is_left_alone(ccc: Ccc, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PYTHONPATH that `retire-stale run` did not set is passed on as it is."""
    monkeypatch.setenv("PYTHONPATH", "/own")
    assert ccc.server._question_relay_env()["PYTHONPATH"] == "/own"


def source_names(path: Path) -> dict[str, ast.AST]:
    """The names that a module's source binds at its top level."""
    found: dict[str, ast.AST] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update({target.id: node for target in targets if isinstance(target, ast.Name)})
    return found


def parameters(node: ast.AST) -> set[str]:
    assert isinstance(node, ast.FunctionDef)
    return {argument.arg for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]}


@pytest.mark.ccc
def test_a_checkout_of_ccc_has_every_name_in_its_shape() -> None:
    """The names this integration relies on are in the checkout of CCC that CCC_CHECKOUT names, with these parameters."""
    if not os.environ.get("CCC_CHECKOUT"):
        pytest.skip("CCC_CHECKOUT names no checkout of the real CCC")
    checkout = Path(os.environ["CCC_CHECKOUT"])
    server, engines = source_names(checkout / "server.py"), source_names(checkout / "worker_engines.py")
    host = engines["EngineHost"]
    assert isinstance(host, ast.ClassDef)
    methods: dict[str, ast.AST] = {node.name: node for node in host.body if isinstance(node, ast.FunctionDef)}
    problems = [*lacking(SERVER, server), *lacking(ENGINE_HOST, methods)]
    assert problems == []


def lacking(names: tuple[Name, ...], found: dict[str, ast.AST]) -> list[str]:
    missing = [name.name for name in names if name.name not in found]
    shapes = [name.name for name in names if name.shape is None and name.name in found]
    return missing + [
        f"{name} takes no {', '.join(sorted(wanted))}"
        for name in shapes
        if (wanted := {p for one in names if one.name == name for p in one.parameters} - parameters(found[name]))
    ]


def test_the_stand_in_has_the_names_and_no_more_is_used(ccc: Ccc) -> None:
    """The list is complete: what the integration reads of the server module is in it, and nothing else."""
    listed = {name.name for name in SERVER} | {"__version__"}
    folder = Path(inspect.getfile(attach)).parent
    used = set()
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and _is_server(node.value):
                used.add(node.attr)
    assert used <= listed
    assert check(ccc.server) == ()


def _is_server(node: ast.AST) -> bool:
    return (isinstance(node, ast.Name) and node.id == "server") or (isinstance(node, ast.Attribute) and node.attr == "_server")
