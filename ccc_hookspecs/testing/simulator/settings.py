"""What the simulator was asked to be: its command line and the `CCC_SIM_*` variables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from ccc_hookspecs.testing.simulator.releases import NEWEST, Release, parse

Mode: TypeAlias = Literal["headless", "one-shot", "terminal", "version"]

_WITH_VALUE = {
    "--resume": "resume",
    "-r": "resume",
    "--session-id": "session_id",
    "--input-format": "input_format",
    "--output-format": "output_format",
    "--sim-release": "release",
    "--permission-mode": "permission_mode",
    "--permission-prompt-tool": "permission_tool",
    "--model": "model",
}


class UsageError(Exception):
    """An argument that Claude Code would refuse."""


@dataclass(frozen=True, slots=True)
class Settings:
    """`startup`, `late_flush` and `slow_exit` are seconds; `deaf`: SIGTERM and SIGHUP are ignored from the start.

    `task_after`: seconds that a command in the foreground runs before it is announced as a task.

    `status_file`: where the process says after each change whether it is busy and how many inputs it took, for tests that wait.
    """

    mode: Mode
    release: Release
    config_dir: Path
    cwd: Path
    resume: str | None = None
    session_id: str | None = None
    text: str | None = None
    output_format: str = "text"
    model: str = ""
    permission_mode: str = "default"
    asks: bool = False
    replays: bool = False
    states: bool = False
    startup: float = 0.0
    late_flush: float | None = None
    slow_exit: float = 0.0
    task_after: float = 2.0
    deaf: bool = False
    exit_echo: bool = False
    status_file: Path | None = None


def read(arguments: Sequence[str], environ: Mapping[str, str] | None = None) -> Settings:
    """Settings from the arguments after the program's name. Raises UsageError."""
    environ = os.environ if environ is None else environ
    values, flags, texts = _split(arguments)
    try:
        release = parse(values.get("release") or environ.get("CCC_SIM_RELEASE") or NEWEST)
    except ValueError as error:
        raise UsageError(str(error)) from error
    skip = "--dangerously-skip-permissions" in flags
    return Settings(
        mode=_mode(values, flags),
        release=release,
        config_dir=_config_dir(environ),
        cwd=Path(os.path.realpath(os.getcwd())),
        resume=values.get("resume"),
        session_id=values.get("session_id"),
        text=" ".join(texts) or None,
        output_format=values.get("output_format", "text"),
        model=values.get("model", release.model),
        permission_mode="bypassPermissions" if skip else values.get("permission_mode", "default"),
        asks=values.get("permission_tool") == "stdio" and not skip,
        replays="--replay-user-messages" in flags,
        states=environ.get("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS") == "1",
        startup=_seconds(environ, "CCC_SIM_STARTUP") or 0.0,
        late_flush=_seconds(environ, "CCC_SIM_LATE_FLUSH"),
        task_after=_seconds(environ, "CCC_SIM_TASK_AFTER") or 2.0,
        slow_exit=_seconds(environ, "CCC_SIM_SLOW_EXIT") or 0.0,
        status_file=Path(environ["CCC_SIM_STATUS_FILE"]) if environ.get("CCC_SIM_STATUS_FILE") else None,
        exit_echo=environ.get("CCC_SIM_EXIT_ECHO") == "1",
        deaf=environ.get("CCC_SIM_DEAF") == "1",
    )


def _split(arguments: Sequence[str]) -> tuple[dict[str, str], set[str], list[str]]:
    values: dict[str, str] = {}
    flags: set[str] = set()
    texts: list[str] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        name, equals, value = argument.partition("=")
        if name in _WITH_VALUE:
            if not equals and not rest:
                raise UsageError(f"error: option '{name} <value>' argument missing")
            values[_WITH_VALUE[name]] = value if equals else rest.pop(0)
        elif argument.startswith("-"):
            flags.add(argument)
        else:
            texts.append(argument)
    return values, flags, texts


def _mode(values: Mapping[str, str], flags: set[str]) -> Mode:
    if flags & {"--version", "-v"}:
        return "version"
    if not flags & {"-p", "--print"}:
        return "terminal"
    return "headless" if values.get("input_format") == "stream-json" else "one-shot"


def _config_dir(environ: Mapping[str, str]) -> Path:
    given = environ.get("CLAUDE_CONFIG_DIR")
    return Path(given) if given else Path(environ.get("HOME") or os.path.expanduser("~")) / ".claude"


def _seconds(environ: Mapping[str, str], name: str) -> float | None:
    text = environ.get(name)
    if not text:
        return None
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(f"{name} is {text!r}, expected seconds such as 2.5") from error
