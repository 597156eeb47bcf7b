"""What the host must know of a release of Claude Code, as measured on eight releases from 2.0.42 to 2.1.332."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ccc_hookspecs.claude.jsonl import lines_backward, parse

KEEPS_MID_TURN: Final = (2, 1, 119)
"""The first release known to keep a record of a text that comes in the middle of a turn; to older ones it is given after the turn."""

KEEPS_BLOCKS: Final = (2, 1, 61)
"""The first release known to leave a message of two text blocks as it is.

2.0.42 and 2.1.6 take it apart at the next `--resume` and append copies of everything after it, under new ids, to the
transcript; then no id tells any more who wrote what. To these a catch-up goes in one block with the text.
"""

KNOWS_TERMINALS: Final = (2, 1, 119)
"""The first release known to keep the live-session registry."""

SAYS_WHERE_IT_IS: Final = (2, 1, 168)
"""The first release known to name the session that it went on to by `/clear` in the live-session registry; 2.1.119 keeps the old name."""


NAMES_MESSAGES: Final = (2, 1, 216)
"""The first release known to name the messages that its `command_lifecycle` and `result` events are about."""


def is_before(release: str | None, first: tuple[int, int, int]) -> bool:
    """Whether a release such as `2.1.6` is older than `first`; False when it is not known."""
    numbers = _numbers(release)
    return numbers is not None and numbers < first


def is_from(release: str | None, first: tuple[int, int, int]) -> bool:
    """Whether a release is `first` or newer; False when it is not known."""
    numbers = _numbers(release)
    return numbers is not None and numbers >= first


def _numbers(release: str | None) -> tuple[int, ...] | None:
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", release or "")
    return None if found is None else tuple(int(number) for number in found.groups())


def last_writer(transcript: Path) -> str | None:
    """The release that wrote the last record of a transcript which names one."""
    for line in lines_backward(transcript):
        for record in parse(line):
            if isinstance(record.data.get("version"), str):
                return str(record.data["version"])
    return None
