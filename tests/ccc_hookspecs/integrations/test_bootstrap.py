"""How the hooks get into CCC's processes: `retire-stale run`, the one-line import, the worker and CCC's own restart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ccc_hookspecs.integrations.command_center import launcher
from ccc_hookspecs.integrations.command_center.launcher import STARTUP, environment
from ccc_plugins.retire_stale.cli_run import run
from tests.ccc_hookspecs.integrations.conftest import STANDIN

ROOT = Path(__file__).parents[3]

SERVER = """
import http.server, json, os, sys
if "broken" in os.environ.get("STANDIN", ""):
    COMMAND_CENTER_STATE_DIR = __version__ = "another shape"
else:
    exec(compile(open({standin!r}).read(), {standin!r}, "exec"))
def attached():
    return hasattr(globals().get("_write_stream_json_user_message"), "__wrapped__")
def main():
    before = attached()
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    server.server_close()
    print(json.dumps({{"who": "dashboard", "before": before, "attached": attached()}}), flush=True)
    if os.environ.pop("RESTART", None):
        os.execvp(sys.executable, [sys.executable, os.path.abspath(__file__)])
if __name__ == "__main__":
    main()
"""

WORKER = """
import json, os, socketserver, sys
socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler).server_close()
os.environ["CCC_WORKER_PROCESS"] = "1"
import server
print(json.dumps({"who": "worker", "attached": hasattr(server._write_stream_json_user_message, "__wrapped__")}), flush=True)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A directory that looks like CCC's: a server and a worker side by side."""
    folder = tmp_path / "ccc"
    folder.mkdir()
    (folder / "server.py").write_text(SERVER.format(standin=str(STANDIN)))
    (folder / "ccc_worker.py").write_text(WORKER)
    return folder


def started(command: list[str], home: Path, **extra: str) -> tuple[list[Any], str]:
    """What a command says on stdout, one JSON value a line, and its stderr. Our packages are found by the way of `run` alone."""
    clean = {"PATH": os.environ["PATH"], "HOME": str(home), "STANDIN_HOME": str(home), **extra}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=clean, cwd=home)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def through_run(*command: str) -> list[str]:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from ccc_plugins.retire_stale.cli_run import run; run(sys.argv[1:])"
    return [sys.executable, "-c", code, "--", *command]


def test_run_attaches_to_the_dashboard(checkout: Path, tmp_path: Path) -> None:
    """The main program `server.py` has the hooks from before it binds its port."""
    said, _ = started(through_run(sys.executable, str(checkout / "server.py")), tmp_path)
    assert [(one["before"], one["attached"]) for one in said] == [(False, True)]


def test_run_reaches_the_worker(checkout: Path, tmp_path: Path) -> None:
    """The worker, which imports the server module later, has the hooks when that import ends."""
    said, _ = started(through_run(sys.executable, str(checkout / "ccc_worker.py")), tmp_path)
    assert said == [{"who": "worker", "attached": True}]


def test_run_reaches_what_a_start_script_starts_and_every_restart(checkout: Path, tmp_path: Path) -> None:
    """CCC's `run.sh` and its own re-exec hand the hooks on."""
    script = tmp_path / "run.sh"
    script.write_text(f'#!/bin/sh\n{sys.executable} -c pass\nexec {sys.executable} "{checkout}/server.py"\n')
    script.chmod(0o755)
    said, _ = started(through_run(str(script)), tmp_path, RESTART="1")
    assert [(one["who"], one["attached"]) for one in said] == [("dashboard", True)] * 2


def test_run_replaces_itself(tmp_path: Path) -> None:
    """No parent stays behind: CCC ends processes whose command line names its server and that it does not know."""
    code = "import json, os; print(json.dumps(os.getpid()))"
    command = through_run(sys.executable, "-c", code)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert int(process.stdout.read()) == process.pid


def test_the_one_line_import_does_the_same(checkout: Path, tmp_path: Path) -> None:
    """A start script that imports one module of ours first, and then runs CCC's server, has the hooks."""
    code = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(checkout)!r}]; import ccc_hookspecs.integrations.command_center.auto; "
        f"import runpy; runpy.run_path({str(checkout / 'server.py')!r}, run_name='__main__')"
    )
    (said,), _ = started([sys.executable, "-c", code], tmp_path)
    assert (said["before"], said["attached"]) == (False, True)
    code = code.replace("import runpy; runpy.run_path", "import ccc_worker  #")
    said2, _ = started([sys.executable, "-c", code], tmp_path)
    assert said2 == [{"who": "worker", "attached": True}]


def test_the_one_line_may_stand_in_python_s_own_start(checkout: Path, tmp_path: Path) -> None:
    """The line in a `.pth` file, or in a `sitecustomize` of one's own, reaches every CCC process of that Python."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text(
        f"import sys; sys.path.append({str(ROOT)!r})\nimport ccc_hookspecs.integrations.command_center.auto"
    )
    for program in ("server.py", "ccc_worker.py"):
        (said,), _ = started([sys.executable, str(checkout / program)], tmp_path, PYTHONPATH=str(own))
        assert said["attached"] is True


def test_a_ccc_of_another_shape_runs_on(checkout: Path, tmp_path: Path) -> None:
    """One clear error on stderr names what is missing; CCC is not stopped."""
    (said,), errors = started(through_run(sys.executable, str(checkout / "server.py")), tmp_path, STANDIN="broken")
    assert said["attached"] is False
    (line,) = [line for line in errors.splitlines() if "not attached" in line]
    assert "_write_stream_json_user_message" in line
    assert "CCC another shape" in line


def test_a_wrong_configuration_is_said_before_ccc_starts(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt switch ends `run` with what is wrong, instead of starting CCC without protection."""
    monkeypatch.setenv("CCC_PLUGIN_ENABLE__RETIRE_STALE__WATCHR", "false")
    done = CliRunner().invoke(run, ["--", sys.executable, str(checkout / "server.py")])
    assert done.exit_code == 2
    assert "WATCHR" in done.output


@pytest.mark.parametrize(("command", "code"), [("/does/not/exist", 127), ("/", 126)])
def test_a_command_that_cannot_be_started_is_named(command: str, code: int) -> None:
    """The exit status is a shell's."""
    done = CliRunner().invoke(run, ["--", command])
    assert (done.exit_code, command in done.output) == (code, True)


def test_options_after_the_command_are_the_command_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--port 9000` goes to CCC."""
    seen: list[tuple[str, ...]] = []
    monkeypatch.setattr(launcher, "run", seen.append)
    assert CliRunner().invoke(run, ["python3", "server.py", "--port", "9000"]).exit_code == 0
    assert CliRunner().invoke(run, ["--", "./run.sh", "--help"]).exit_code == 0
    assert seen == [("python3", "server.py", "--port", "9000"), ("./run.sh", "--help")]


def test_other_programs_are_left_alone(checkout: Path, tmp_path: Path) -> None:
    """A Python that is not CCC loads nothing of ours, and keeps the `sitecustomize` it would have had."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys; sys.own = True")
    code = "import json, sys; print(json.dumps([hasattr(sys, 'own'), 'ccc_hookspecs' in sys.modules, sys.path]))"
    variables = environment({"PYTHONPATH": str(own)})
    (said,), _ = started([sys.executable, "-c", code], tmp_path, **variables)
    assert said[:2] == [True, False]
    assert str(STARTUP) not in said[2]
    other = tmp_path / "server.py"
    other.write_text(code)
    (said,), _ = started([sys.executable, str(other)], tmp_path, **variables)
    assert said[:2] == [True, False]


def test_the_environment_may_be_made_twice() -> None:
    """`retire-stale run` inside `retire-stale run` changes nothing more."""
    once = environment({"PYTHONPATH": "/own", "OTHER": "1"})
    assert environment(once) == once
    assert once["PYTHONPATH"].split(os.pathsep) == [str(STARTUP), "/own"]
    assert once["OTHER"] == "1"


def test_an_older_python_is_told_and_ccc_runs_on(checkout: Path, tmp_path: Path) -> None:
    """CCC runs on Python 3.9, the plugins do not: `sitecustomize` says so once."""
    code = (
        "import sys, types; sys.modules['sitecustomize'] = types.ModuleType('sitecustomize'); "
        "sys.version_info, sys.orig_argv = (3, 9), ['python', sys.argv[1]]; "
        "exec(open(sys.argv[2]).read(), {'__file__': sys.argv[2]})"
    )
    command = [sys.executable, "-c", code, str(checkout / "server.py"), str(STARTUP / "sitecustomize.py")]
    said, errors = started(command, tmp_path)
    assert said == []
    assert "Python 3.11 or later" in errors
