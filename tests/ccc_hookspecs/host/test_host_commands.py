"""`ccc-host` from a shell: what it prints, what it exits with, and that a text is never lost."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ccc_hookspecs.host.commands import command_line
from ccc_hookspecs.host.demo_stage import ON_A_TERMINAL
from ccc_hookspecs.host.errors import ExitCode
from ccc_hookspecs.testing.harness import wait_until
from tests.ccc_hookspecs.host.world import CCC_HOST, World, end_process

DOC = (Path(__file__).parents[3] / "docs" / "host.md").read_text("utf-8")


def test_start_prints_the_answer_and_the_session(world: World) -> None:
    """The answer on standard output, the id on standard error."""
    done = world.run("start", "first words")
    session_id = world.host().store.sessions.all()[0].session_id
    assert (done.returncode, done.stdout) == (0, 'SEEN ["first words"]\n')
    assert f"session {session_id}" in done.stderr


def test_a_session_may_be_named_by_the_beginning_of_its_id(world: World) -> None:
    session = world.started()
    done = world.run("send", session.session_id[:6], "second")
    assert (done.returncode, done.stdout) == (0, 'SEEN ["first", "second"]\n')


def test_a_text_may_come_from_standard_input(world: World) -> None:
    session = world.started()
    done = world.run("send", session.session_id, "-", given="from a pipe")
    assert done.stdout == 'SEEN ["first", "from a pipe"]\n'
    assert world.run("start", "-", given=" \n").returncode == ExitCode.USAGE


def test_a_clear_is_told_to_empty_the_process_and_not_the_session(world: World) -> None:
    """The next text finds every turn again, so nobody may take the session for empty; other texts are told nothing."""
    session = world.started()
    cleared = world.run("send", session.session_id, "/clear")
    assert cleared.returncode == 0
    assert "ccc-host start" in cleared.stderr
    after = world.run("send", session.session_id, "second")
    assert (after.stdout, "ccc-host start" in after.stderr) == ('SEEN ["first", "second"]\n', False)


def test_arguments_after_two_dashes_go_to_claude(world: World) -> None:
    """And nothing else does that would widen what it may do."""
    world.run("start", "first", "--", "--model", "opus")
    host = world.host()
    (session,) = host.store.sessions.all()
    assert session.arguments == ("--model", "opus")
    assert [event["model"] for event in world.log(host, session) if event.get("subtype") == "init"] == ["opus"]
    assert [event["permissionMode"] for event in world.log(host, session) if event.get("subtype") == "init"] == ["default"]


def test_json_is_all_there_is_on_standard_output(world: World) -> None:
    """Of each command, before or after its name; nothing is told on standard error."""
    first = world.run("start", "first", "--json")
    told = json.loads(first.stdout)
    assert (told["state"], told["ending"], told["answer"], first.stderr) == ("delivered", "answered", 'SEEN ["first"]', "")
    sent = world.json("send", told["session_id"], "second", "--no-wait")
    assert sent["state"] in ("written", "delivered")
    (listed,) = world.json("list")
    assert (listed["session_id"], listed["cwd"], listed["terminal"]) == (told["session_id"], str(world.home.project.resolve()), None)
    assert {row["name"]: row["state"] for row in world.json("plugins")}["retire_stale.use_time"] == "active"


def test_no_wait_returns_at_once_and_keeps_the_text(world: World) -> None:
    """While a long turn runs, the texts are kept behind it, and delivered in order once the process is free, or gone."""
    session = world.started()
    world.run("send", session.session_id, "SLOW 90", "--no-wait")
    told = [world.json("send", session.session_id, text, "--no-wait") for text in ("second", "third")]
    assert [one["state"] for one in told] == ["written", "queued"]
    host = world.host()
    end_process(world.headless(host, session).pid)
    wait_until(lambda: host.drive(session.session_id) and not host.store.outbox.open_of(session.session_id), "all delivered")
    assert world.prompts(session)[2:] == [one["message_id"] for one in told]


def test_a_held_text_tells_what_it_waits_for_and_now_tells_the_cost(world: World) -> None:
    """A terminal outside tmux has the session: the text is held, the person sees why, and overrules it knowingly."""
    session = world.started()
    host = world.host()
    end_process(world.headless(host, session).pid)
    terminal = world.simulator.terminal(session.session_id)
    told = world.json("send", session.session_id, "second", "--no-wait")
    assert told["state"] == "held"
    assert f"process {terminal.pid}" in told["hold"]["signs"]
    listed = world.run("list")
    assert f"waits for: process {terminal.pid}" in listed.stdout
    overruled = world.run("send", session.session_id, "--now")
    assert overruled.returncode == 0
    assert f"the cost: {told['hold']['cost']}" in overruled.stderr
    assert world.prompts(session)[-1] == told["message_id"]


def test_list_shows_what_is_kept_and_drop_gives_it_up(world: World) -> None:
    """A message that cannot be delivered stays, with its error, until somebody drops it."""
    session = world.started()
    host = world.host()
    end_process(world.headless(host, session).pid)
    done = world.run("--claude", "/nowhere/claude", "send", session.session_id, "second", "--no-wait")
    assert done.returncode == 0
    assert "/nowhere/claude" in done.stderr
    (message,) = world.json("list")[0]["messages"]
    assert (message["state"], "/nowhere/claude" in message["error"]) == ("queued", True)
    assert world.run("drop", message["message_id"][:8]).returncode == 0
    assert world.json("list")[0]["messages"] == []
    assert world.run("drop", message["message_id"][:8]).returncode == ExitCode.UNKNOWN_SESSION


def test_every_error_is_one_line(world: World) -> None:
    """It names the program and says what to do; there is no traceback."""
    for arguments, code in (
        (("send", "nosuch", "text"), ExitCode.UNKNOWN_SESSION),
        (("terminal", "nosuch"), ExitCode.UNKNOWN_SESSION),
        (("drop", "nosuch"), ExitCode.UNKNOWN_SESSION),
        (("--claude", "/nowhere/claude", "start", "text"), ExitCode.CLAUDE),
        (("--state", "/proc/nowhere", "list"), ExitCode.STATE),
        (("list",), ExitCode.STATE),
    ):
        done = world.run(*arguments, **({"CCC_HOST_STATE": "~nobody-of-this-name/x"} if arguments == ("list",) else {}))
        assert done.returncode == code, done.stderr
        assert re.fullmatch(r"ccc-host: .+\n", done.stderr), done.stderr


def test_a_misspelt_setting_stops_the_command_before_anything_is_sent(world: World) -> None:
    """A protection must not be off by mistake; the line names the key and what was probably meant."""
    done = world.run("start", "first", CCC_PLUGIN__RETIRE_STALE__MODDE="shadow")
    assert done.returncode == ExitCode.CONFIG
    assert re.fullmatch(r"ccc-host: .+\n", done.stderr)
    assert "did you mean mode?" in done.stderr
    assert world.host().store.sessions.all() == ()


@pytest.mark.case("C92")
def test_plugins_says_by_what_one_is_blocked(world: World) -> None:
    """Blocked by name it is not imported, and the host runs without it."""
    done = world.run("plugins", CCC_PLUGINS_BLOCK="retire_stale.watcher", CCC_PLUGIN_ENABLE__RETIRE_STALE__USE_TIME="false")
    assert done.returncode == 0
    assert re.search(r"retire_stale.watcher\s+blocked\s+blocked by CCC_PLUGINS_BLOCK", done.stdout)
    assert re.search(r"retire_stale.use_time\s+disabled\s+.*CCC_PLUGIN_ENABLE__RETIRE_STALE__USE_TIME", done.stdout)


def test_terminal_becomes_claude_on_this_session(world: World) -> None:
    """The idle headless is retired first; the same process then is the terminal, in the session's directory."""
    session = world.started()
    host = world.host()
    headless = world.headless(host, session)
    master, slave = pty.openpty()
    command = [sys.executable, "-c", ON_A_TERMINAL, *CCC_HOST, "terminal", session.session_id]
    process = subprocess.Popen(command, env=world.environ(), stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    try:
        wait_until(lambda: host.headless_for(session.session_id) is None, f"process {headless.pid} retired")
        shown = b""
        while b"> " not in shown:
            shown += os.read(master, 4096)
        assert world.json("list")[0]["terminal"] == {"pid": process.pid}
        os.write(master, b"/exit\n")
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(master)


def test_without_the_extra_a_line_says_what_to_install(world: World) -> None:
    """The library itself needs neither click nor rich."""
    script = "import sys; sys.modules['rich'] = None\nfrom ccc_hookspecs.host.cli import main\nmain()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "ccc-host needs the extra 'cli': pip install 'ccc-retire-stale[cli]'\n")
    library = "import sys; sys.modules['rich'] = sys.modules['click'] = None\nimport ccc_hookspecs.host.host"
    assert subprocess.run([sys.executable, "-c", library]).returncode == 0


def test_the_exit_codes_are_those_of_the_document() -> None:
    """The table of docs/host.md has each code once, and no other."""
    rows = re.findall(r"^\| (\d+) \| ", DOC, re.MULTILINE)
    assert [int(row) for row in rows] == [int(code) for code in ExitCode]


def test_every_command_and_option_is_in_the_document() -> None:
    for name, command in command_line.commands.items():
        assert f"`ccc-host {name}" in DOC, name
        for parameter in command.params:
            for option in parameter.opts:
                assert not option.startswith("--") or option in DOC, option
        assert CliRunner().invoke(command_line, [name, "--help"]).exit_code == 0


def test_the_program_is_on_the_path() -> None:
    """As the packaging says."""
    program = shutil.which("ccc-host", path=str(Path(sys.executable).parent))
    assert program is not None
    assert re.match(r"ccc-host, version \d", subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout)
