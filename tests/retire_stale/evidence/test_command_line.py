"""A command line tells Claude Code from what merely mentions it, and names the sessions that are written to."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccc_plugins.retire_stale.evidence.command_line import claude_arguments, is_stream_json, may_be_claude, role, sessions_in_argv

S = "7d5f2c31-4c58-4a36-9d7f-0c2d6a1b9e10"
N = "0a8e3f42-1111-4222-8333-944445555666"
BIN = "/usr/lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe"
VERSIONS = "/home/x/.local/share/claude/versions/2.1.212"


@pytest.mark.case("C05")
@pytest.mark.parametrize(
    "arguments",
    [
        ("--resume", S),
        ("-r", S),
        (f"--resume={S}",),
        (f"-r{S}",),
        (f"-r={S}",),
        ("-pr", S),
        ("--session-id", S),
        (f"--session-id={S}",),
        ("--resume", S.upper()),
        ("--resume", f"/home/x/.claude/projects/-w/{S}.jsonl"),
        (f"--resume={S}.jsonl",),
        ("-p", "--verbose", "--input-format", "stream-json", "--resume", S),
        ("--resume-session-at", N, "--resume", S),
        ("--model", "x", "-c", "--resume", S, "go on", "--", "--resume", N),
    ],
)
def test_every_form_of_the_flag_names_the_session(arguments: tuple[str, ...]) -> None:
    """The id is found after each flag, joined to it, as a path, in either case, and beside other flags."""
    assert sessions_in_argv(("claude", *arguments)) == {S}
    assert sessions_in_argv(("node", "/usr/bin/claude", *arguments)) == {S}


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("-c",),
        ("--continue",),
        ("--resume",),
        ("-r",),
        ("--resume", "-p"),
        ("--resume", "my old session"),
        ("--", "--resume", S),
        ("-p", f"what is in {S}.jsonl"),
        (S,),
        (f"--resume {S}",),
        ("--resume-session-at", S),
        ("--from", f"--resume={S} please"),
        ("--resume", f"{S}0"),
        ("--resume", f"x{S}"),
    ],
)
def test_what_is_no_such_flag_names_no_session(arguments: tuple[str, ...]) -> None:
    """Continuing, picking from a list, prompts, titles, and everything after `--` name none."""
    assert sessions_in_argv(("claude", *arguments)) == frozenset()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--resume", S, "--fork-session"), set()),
        (("--fork-session", "-r", S), set()),
        (("--resume", S, "--fork-session", "--session-id", N), {N}),
        (("--resume", S, "--", "--fork-session"), {S}),
    ],
)
def test_a_fork_does_not_write_what_it_resumes(arguments: tuple[str, ...], expected: set[str]) -> None:
    """With `--fork-session` only a session id that was chosen is written."""
    assert sessions_in_argv(("claude", *arguments)) == expected


@pytest.mark.case("C52")
@pytest.mark.parametrize(
    ("argv", "exe"),
    [
        (("claude",), None),
        (("claude",), "/usr/bin/node"),
        (("/home/x/.local/bin/claude", "--resume", S), VERSIONS),
        (("claude.exe",), None),
        ((BIN, "-p"), BIN),
        ((VERSIONS,), VERSIONS),
        (("2.1.212",), VERSIONS),
        (("node", "/opt/cc/2.1.6/node_modules/.bin/claude", "-p"), "/usr/bin/node"),
        (("/usr/bin/node", "--no-warnings", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"), "/usr/bin/node"),
        (("node", "--require", "dotenv/config", "/usr/local/bin/claude", "-c"), "/usr/bin/node"),
        (("bun", "/opt/node_modules/@anthropic-ai/claude-code/cli.js"), None),
        (("/nix/store/x/bin/.claude-wrapped",), None),
    ],
)
def test_the_program_is_known_in_every_form(argv: tuple[str, ...], exe: str | None) -> None:
    """By its name, by a path, by the path of an installed version, run by an interpreter, and with no arguments left."""
    assert claude_arguments(argv, exe) is not None
    assert may_be_claude("x", argv)


@pytest.mark.case("C52", "C58")
@pytest.mark.parametrize(
    ("argv", "exe"),
    [
        ((), None),
        (("node", "server.js"), "/usr/bin/node"),
        (("2.1.212", "server.js"), "/opt/tool/2.1.212"),
        (("2.1.212",), None),
        (("node", "/srv/claude-proxy/server.js", "--resume", S), None),
        (("node", "-e", "claude"), None),
        (("node",), None),
        (("node", "-r", "/x/claude"), None),
        (("node", "-r", "./claude", "server.js"), None),
        (("zsh", "-c", f"sleep 1; claude --resume {S}"), "/bin/zsh"),
        (("grep", S), None),
        (("vim", f"/home/x/.claude/projects/-w/{S}.jsonl"), None),
        (("tail", "-f", "/home/x/claude"), None),
        (("claude-squad",), None),
        (("script", "-qefc", f"claude --resume {S}", "/dev/null"), None),
        (("tmux", "new-session", f"claude --resume {S}"), None),
        (("python3", "/home/x/claude"), None),
    ],
)
def test_what_only_mentions_the_program_is_not_it(argv: tuple[str, ...], exe: str | None) -> None:
    """Shells, searches, editors, terminals and programs of similar or version-like names are something else."""
    assert claude_arguments(argv, exe) is None


@pytest.mark.case("C52")
@pytest.mark.parametrize("name", ["claude", "claude.exe", "2.1.212", "/home/x/.local/b"])
def test_a_name_alone_is_worth_a_closer_look(name: str) -> None:
    """When no command line can be read, each form that a name may have is a candidate, and others are not."""
    assert may_be_claude(name, None)
    assert may_be_claude(name, ())
    assert not may_be_claude(name, ("node", "server.js"))
    assert not may_be_claude("bash", None)
    assert not may_be_claude("kworker/u8:1-wri", ())


@pytest.mark.case("C53")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), None),
        (("--resume", S), "terminal"),
        (("-c",), "terminal"),
        (("fix", "the", "daemon"), "terminal"),
        (("-p", "hi"), "print"),
        (("--print",), "print"),
        (("-cp",), "print"),
        (("--resume", S, "--", "-p"), "terminal"),
        (("-p", "--input-format", "stream-json"), "stream"),
        (("-p", "--input-format=stream-json"), "stream"),
        (("-p", "--output-format", "stream-json"), "print"),
        (("daemon", "run"), "service"),
        (("mcp", "serve"), "service"),
        (("--bg-pty-host", "/run/x.sock", "80", "24", "--", VERSIONS, "--resume", S), "service"),
        (("--bg-spare",), "service"),
        (("--daemon-worker", "x"), "service"),
    ],
)
def test_a_role_is_told_by_the_flags(arguments: tuple[str, ...], expected: str | None) -> None:
    """Terminal, print mode, stream mode and service are told apart; without arguments the role is unknown."""
    assert role(arguments) == expected


@pytest.mark.case("C53")
def test_a_pty_host_is_not_on_the_session_that_it_hosts() -> None:
    """What stands after `--` belongs to the process inside."""
    inner = (VERSIONS, "--resume", S)
    assert sessions_in_argv(("claude", "--bg-pty-host", "/run/x.sock", "--", *inner)) == frozenset()
    assert sessions_in_argv(inner) == {S}


@pytest.mark.case("C85")
def test_only_the_stream_flag_makes_a_headless() -> None:
    """The input format decides; without any arguments it cannot be told."""
    assert is_stream_json(("-p", "--input-format", "stream-json", "--resume", S)) is True
    assert is_stream_json(("--resume", S)) is False
    assert is_stream_json(("--", "--input-format", "stream-json")) is False
    assert is_stream_json(()) is None


WORDS = st.sampled_from(
    ["claude", "node", "-r", "--resume", "--session-id", "--", "--fork-session", "-p", S, N, f"--resume={S}", "daemon", ""]
)


@settings(deadline=None)
@given(argv=st.lists(WORDS | st.text(max_size=8), max_size=10).map(tuple))
def test_no_command_line_raises(argv: tuple[str, ...]) -> None:
    """Any words give an answer, only sessions that stand among the words are named, and nothing after `--` matters."""
    assert sessions_in_argv(argv) <= {S, N}
    assert sessions_in_argv(argv) == sessions_in_argv((*argv, "--", "--resume", N, "--fork-session"))
    arguments = claude_arguments(argv, None)
    if arguments is not None:
        assert argv[len(argv) - len(arguments) :] == arguments
        assert role(arguments) in (None, "terminal", "print", "stream", "service")
