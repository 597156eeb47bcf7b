"""How a simulated process begins, shows, ends and refuses, as the real one does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from ccc_hookspecs.testing.harness import ClaudeHome, Record, SimulatedProcess, Simulator, recited, wait_until
from ccc_hookspecs.testing.simulator import NEWEST
from ccc_hookspecs.testing.simulator.install import install, script

some_releases = pytest.mark.parametrize("release", ["2.0.42", "2.1.119", NEWEST])
linux = pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="rewrites its command line on Linux only")


def registry(home: ClaudeHome) -> dict[int, Record]:
    """The live-session records, by pid."""
    return {int(path.stem): json.loads(path.read_text()) for path in (home.config_dir / "sessions").glob("*.json")}


@some_releases
def test_sigterm_ends_an_idle_process_with_143(simulator: Simulator, release: str) -> None:
    """The exit is clean, quick, and takes the live-session record with it."""
    head = simulator.headless(release=release)
    head.ask("first")
    assert head.stop() == 143
    assert registry(simulator.home) == {}


@pytest.mark.parametrize("release", ["2.1.119", "2.1.275"])
def test_the_live_session_record_says_who_it_is(simulator: Simulator, release: str) -> None:
    """It names the session, the process's start in ticks, and which kind of front it is."""
    head = simulator.headless(release=release)
    head.ask("first")
    terminal = simulator.terminal(head.session_id, release=release)
    records = registry(simulator.home)
    assert {record["sessionId"] for record in records.values()} == {head.session_id}
    assert (records[head.pid]["entrypoint"], records[terminal.pid]["entrypoint"]) == ("sdk-cli", "cli")
    assert records[terminal.pid]["status"] == "idle"
    assert records[head.pid].get("status") == ("idle" if head.release.has("headless_status") else None)
    if Path("/proc/self/stat").exists():
        assert int(records[head.pid]["procStart"]) / os.sysconf("SC_CLK_TCK") == head.headless.start_time


def test_sigkill_leaves_the_live_session_record(simulator: Simulator) -> None:
    """A ghost stays behind, as after a crash."""
    head = simulator.headless()
    head.ask("first")
    head.kill()
    assert list(registry(simulator.home)) == [head.pid]


def test_a_crash_leaves_an_open_turn_and_the_record(simulator: Simulator) -> None:
    """The prompt is in the transcript, no answer is, and the next process closes the turn with an answer that no model gave."""
    head = simulator.headless()
    head.ask("first")
    head.send("CRASH")
    assert head.wait_exit() == 1
    assert list(registry(simulator.home)) == [head.pid]
    fresh = simulator.headless(head.session_id)
    assert recited(fresh.ask("after")) == ["first", "CRASH", "after"]
    assert any(record.get("isApiErrorMessage") is False for record in fresh.records())


@pytest.mark.parametrize(("environ", "text"), [({"CCC_SIM_DEAF": "1"}, "first"), ({}, "DEAF")])
def test_a_deaf_process_outlives_sigterm(simulator: Simulator, environ: dict[str, str], text: str) -> None:
    """Deaf from the start or on demand, it goes on answering."""
    head = simulator.headless(environ=environ)
    head.ask(text)
    head.signal(signal.SIGTERM)
    assert recited(head.ask("still there")) == [text, "still there"]


def test_sigint_ends_the_turn_and_the_process(simulator: Simulator) -> None:
    """The headless leaves with 0, its turn cut short."""
    head = simulator.headless()
    head.ask("first")
    head.send("SLOW 60")
    head.wait_event("system", "init", count=2)
    head.signal(signal.SIGINT)
    assert head.wait_exit() == 0
    assert head.events("result")[-1]["subtype"] == "error_during_execution"


def test_a_closed_window_ends_the_terminal(simulator: Simulator) -> None:
    """SIGHUP is obeyed like SIGTERM, with its own exit code."""
    head = simulator.headless()
    head.ask("first")
    terminal = simulator.terminal(head.session_id)
    terminal.signal(signal.SIGHUP)
    assert terminal.wait_exit() == 129
    assert list(registry(simulator.home)) == [head.pid]


def test_files_are_kept_where_the_environment_says(simulator: Simulator, tmp_path: Path) -> None:
    """`CLAUDE_CONFIG_DIR` moves transcripts and live-session records."""
    elsewhere = tmp_path / "elsewhere"
    head = simulator.headless(environ={"CLAUDE_CONFIG_DIR": str(elsewhere)})
    head.ask("first")
    assert head.headless.config_dir == elsewhere
    assert [path.stem for path in elsewhere.glob("projects/*/*.jsonl")] == [head.session_id]
    assert (elsewhere / "sessions" / f"{head.pid}.json").exists()
    assert head.records() == []


def test_an_exit_can_be_slow(simulator: Simulator) -> None:
    """The exit code comes after the asked delay."""
    head = simulator.headless(environ={"CCC_SIM_SLOW_EXIT": "0.4"})
    head.ask("first")
    before = time.monotonic()
    head.signal(signal.SIGTERM)
    assert head.wait_exit() == 143
    assert time.monotonic() - before >= 0.4


def test_a_stopped_process_takes_its_input_when_it_goes_on(simulator: Simulator) -> None:
    """A line written to a frozen process is answered after SIGCONT, and SIGTERM then ends it."""
    head = simulator.headless()
    head.ask("first")
    head.signal(signal.SIGSTOP)
    wait_until(lambda: psutil.Process(head.pid).status() == psutil.STATUS_STOPPED, "the stop")
    head.send("while frozen")
    head.signal(signal.SIGCONT)
    head.wait_idle()
    assert head.memory() == ["first", "while frozen"]


def test_start_up_hooks_leave_input_unread(simulator: Simulator) -> None:
    """Until the hooks are done nothing is read from the FIFO; then the input is answered."""
    head = simulator.headless(environ={"CCC_SIM_STARTUP": "1.0"})
    head.wait_event("system", "hook_started")
    head.send("early")
    assert unread(head.fifo) > 0
    head.wait_idle()
    assert head.memory() == ["early"]
    assert unread(head.fifo) == 0


def test_what_is_no_json_ends_the_process(simulator: Simulator) -> None:
    """A malformed line is answered with exit code 1."""
    head = simulator.headless()
    head.ask("first")
    head.write_lines("not json")
    assert head.wait_exit() == 1


def test_a_clean_exit_ends_background_commands_of_later_releases_only(simulator: Simulator) -> None:
    """From 2.1.168 on a clean exit ends the commands in the background, before that they live on."""
    for release, survives in (("2.1.168", False), ("2.1.119", True)):
        head = simulator.headless(release=release)
        head.ask("BG: exec sleep 60")
        child = psutil.Process(head.pid).children()[0]
        head.stop()
        assert child.is_running() is survives
        if survives:
            child.kill()


@linux
@some_releases
def test_the_process_shows_as_the_release_does(simulator: Simulator, release: str) -> None:
    """Named `claude`; up to 2.1.61 without arguments, later with the path it was started by and all arguments."""
    head = simulator.headless(release=release)
    head.ask("first")
    shown = psutil.Process(head.pid)
    arguments = [argument for argument in shown.cmdline() if argument]
    assert shown.name() == "claude"
    if head.release.has("native_program"):
        assert os.path.samefile(arguments[0], simulator.program(release))
        assert arguments[1:4] == ["-p", "--verbose", "--session-id"]
        assert arguments[-1] == "--dangerously-skip-permissions"
        assert "" not in shown.cmdline()
    else:
        assert arguments == ["claude"]


def test_a_terminal_has_a_terminal(simulator: Simulator) -> None:
    """The process that people see owns a terminal, the headless has none."""
    head = simulator.headless()
    head.ask("first")
    terminal = simulator.terminal(head.session_id)
    assert psutil.Process(terminal.pid).terminal() is not None
    assert psutil.Process(head.pid).terminal() is None


def test_a_terminal_that_does_nothing_appends_nothing(simulator: Simulator) -> None:
    """Opened and killed, it leaves the transcript as it was."""
    head = simulator.headless()
    head.ask("first")
    before = head.records()
    simulator.terminal(head.session_id).stop()
    assert head.records() == before


def test_the_version_names_the_release(tmp_path: Path) -> None:
    """In the words of the real one, and nothing is begun."""
    program = install(tmp_path / "bin")
    done = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"{NEWEST} (Claude Code)\n", "")


def test_an_interpreter_anywhere_will_do(tmp_path: Path) -> None:
    """A path with spaces, which no interpreter line can hold, works too."""
    python = tmp_path / "with space" / "python"
    python.parent.mkdir()
    python.symlink_to(os.path.realpath(sys.executable))
    program = tmp_path / "claude"
    program.write_text(script(str(python), "2.0.42", program))
    program.chmod(0o755)
    assert subprocess.run([str(program), "--version"], capture_output=True, text=True, check=True).stdout == "2.0.42 (Claude Code)\n"


def test_a_release_is_three_numbers(tmp_path: Path) -> None:
    """Neither an installation nor a process takes a name that is none."""
    with pytest.raises(ValueError, match="three numbers"):
        install(tmp_path / "bin", release="newest")
    program = install(tmp_path / "bin")
    refused = subprocess.run([str(program), "--sim-release", "x"], capture_output=True, text=True, check=False)
    assert (refused.returncode, "three numbers" in refused.stderr) == (1, True)


def test_closing_twice_is_harmless(simulator: Simulator) -> None:
    """What a test ended itself is not ended again by the fixture."""
    heads: list[SimulatedProcess] = [simulator.headless(), simulator.headless()]
    for head in heads:
        head.close()
        head.close()
    assert not any(head.alive for head in heads)


def unread(fifo: Path) -> int:
    """Bytes that stand in a FIFO, as the kernel counts them."""
    import array
    import fcntl
    import termios

    count = array.array("i", [0])
    fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        fcntl.ioctl(fd, termios.FIONREAD, count)
    finally:
        os.close(fd)
    return count[0]
