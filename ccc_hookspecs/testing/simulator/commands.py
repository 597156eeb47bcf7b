"""Which inputs are slash commands: those that Claude Code answers itself, and the person's own in `<config>/commands/`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ccc_hookspecs.testing.simulator import branch
from ccc_hookspecs.testing.simulator.agent import Agent

LOCAL = {"/context", "/cost", "/usage"}


def command_of(agent: Agent, content: Any) -> str | None:
    """The first word of an input that is run as a command; None for a text, as an unknown command is from 2.1.275 on."""
    word = _slashed(content)
    return None if word is None or _stands_as_text(agent, word) else word


def own_file(agent: Agent, command: str) -> Path:
    """Where a command of the person's own would be."""
    return agent.settings.config_dir / "commands" / f"{command[1:]}.md"


def note_unknown(agent: Agent, content: Any) -> None:
    """The attachment below a text that begins like a command but is none, in releases that let it stand."""
    word = _slashed(content)
    if word is not None and _stands_as_text(agent, word):
        agent.journal.attachment("unknown_command_fallback")


def _slashed(content: Any) -> str | None:
    """The first word of a text that looks like a command; a path has a second slash and is none."""
    texts = branch.content_texts(content)
    word = texts[0].split(maxsplit=1)[0] if texts and texts[0].strip() else ""
    return word if word.startswith("/") and "/" not in word[1:] else None


def _stands_as_text(agent: Agent, word: str) -> bool:
    return agent.release.has("unknown_command_is_text") and not _is_known(agent, word)


def _is_known(agent: Agent, word: str) -> bool:
    return word in LOCAL | {"/compact", "/clear"} or own_file(agent, word).is_file()
