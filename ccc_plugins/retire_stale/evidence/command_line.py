"""What the command line of a process says about Claude Code: whether it is that program, in which role, and on which session.

Forms that were seen: `claude` by its name, by a path, by the path of an installed version, and as a script run by node. Releases up to
2.1.61 replace their command line by the one word `claude`, about a second after their start.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["terminal", "print", "stream", "service"]
"""`terminal`: a person types into it. `print`: it answers one prompt and ends. `stream`: fed with `stream-json`, as a headless is.
`service`: it holds no conversation of its own (a daemon, a pty host, a spare, an MCP server, an update)."""

_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_SESSION = re.compile(rf"(?:.*/)?({_UUID})(?:\.jsonl)?", re.DOTALL)
_RESUME_SHORT = re.compile(r"-[cpdv]*r(?P<value>.*)", re.DOTALL)
_PRINT_SHORT = re.compile(r"-[cdv]*p[cdvr]*")
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:-[\w.]+)?")
_INSTALLED = re.compile(
    r"/claude/versions/\d+\.\d+\.\d+[^/]*$|/@anthropic-ai/claude-code(?:-[\w-]+)?/(?:.*/)?(?:claude(?:\.exe)?|cli\.js)$"
)
_PROGRAMS = frozenset({"claude", "claude.exe", ".claude-wrapped"})
_INTERPRETERS = frozenset({"node", "nodejs", "bun", "deno"})
_LEADING = 6
"""Words among which the program must show, after an interpreter and its own flags."""
_EVALUATING = frozenset({"-e", "--eval", "-p", "--print"})
_TAKING_A_VALUE = frozenset({"-r", "--require", "--import", "--loader", "-C", "--conditions"})
"""What node itself may be told before the script."""
_SERVICES = frozenset({"--bg-pty-host", "--bg-spare", "--daemon-worker"})
_SUBCOMMANDS = frozenset({"daemon", "mcp", "doctor", "update", "upgrade", "install", "config", "plugin", "setup-token", "auth", "agents"})


@lru_cache(maxsize=8192)
def claude_arguments(argv: tuple[str, ...], exe: str | None = None) -> tuple[str, ...] | None:
    """The arguments that Claude Code was given; None when this is another program.

    A shell, an editor or a `grep` with `claude` or a session id among its arguments is another program, and so is one that merely
    calls itself like a version.
    """
    if not argv:
        return None
    if os.path.basename(argv[0]) in _PROGRAMS or _INSTALLED.search(argv[0]):
        return argv[1:]
    if os.path.basename(argv[0]) in _INTERPRETERS:
        return _script_arguments(argv)
    return argv[1:] if named_by_version(argv[0]) and exe is not None and _INSTALLED.search(exe) else None


def named_by_version(name: str) -> bool:
    """Whether a program is called like a version, as an installed release is, and some others are."""
    return _VERSION.fullmatch(os.path.basename(name)) is not None


def _script_arguments(argv: tuple[str, ...]) -> tuple[str, ...] | None:
    """The arguments after the script that an interpreter runs, when the script is Claude Code."""
    words = enumerate(argv[1:], 1)
    for position, word in words:
        if word in _EVALUATING:
            return None
        if word in _TAKING_A_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            is_claude = os.path.basename(word) == "claude" or _INSTALLED.search(word) is not None
            return argv[position + 1 :] if is_claude else None
    return None


def may_be_claude(name: str, argv: tuple[str, ...] | None) -> bool:
    """Whether a closer look is worth it: cheap, and true for every form of the program, also when only its name can be read."""
    if any("claude" in word or named_by_version(word) for word in (argv or ())[:_LEADING]):
        return True
    return not argv and (name.startswith("claude") or _VERSION.fullmatch(name) is not None or name.startswith("/"))


@lru_cache(maxsize=8192)
def sessions_in_argv(argv: tuple[str, ...]) -> frozenset[str]:
    """The ids of the sessions that a `claude` with this command line writes to, as far as it names them.

    Every form of `--resume`, `-r` and `--session-id`, with the id or with the path of its transcript. `--continue` names none. With
    `--fork-session` the resumed session is only read. Nothing after `--` is a flag.
    """
    words = _flags(argv)
    resumed: set[str] = set()
    chosen: set[str] = set()
    for word, following in _pairs(words):
        flag, _, value = word.partition("=")
        if flag == "--session-id":
            chosen |= _session(value or following)
        elif flag == "--resume":
            resumed |= _session(value or following)
        elif short := _RESUME_SHORT.fullmatch(word):
            resumed |= _session(short["value"].removeprefix("=") or following)
    return frozenset(chosen if "--fork-session" in words else chosen | resumed)


def _flags(argv: tuple[str, ...]) -> list[str]:
    words = list(argv)
    return words[: words.index("--")] if "--" in words else words


def _pairs(words: list[str]) -> Iterator[tuple[str, str]]:
    """Each word with the one that follows it, or nothing."""
    return zip(words, [*words[1:], ""], strict=False)


def _session(value: str) -> set[str]:
    found = _SESSION.fullmatch(value)
    return set() if found is None else {found[1].lower()}


@lru_cache(maxsize=8192)
def role(arguments: tuple[str, ...]) -> Role | None:
    """What a Claude Code with these arguments does; None when it has none, as every process of a release up to 2.1.61."""
    words = _flags(arguments)
    if not arguments:
        return None
    if words and (words[0] in _SUBCOMMANDS or not _SERVICES.isdisjoint(words)):
        return "service"
    if is_stream_json(arguments):
        return "stream"
    return "print" if any(word == "--print" or _PRINT_SHORT.fullmatch(word) for word in words) else "terminal"


def is_stream_json(arguments: tuple[str, ...]) -> bool | None:
    """Whether it is fed with `--input-format stream-json`, as only a headless is; None when there are no arguments to tell it by."""
    if not arguments:
        return None
    return any(
        word == "--input-format=stream-json" or (word, following) == ("--input-format", "stream-json")
        for word, following in _pairs(_flags(arguments))
    )
