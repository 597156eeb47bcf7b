"""Which Claude Code is started."""

from __future__ import annotations

import os
import shutil
from typing import Final

from ccc_hookspecs.host.errors import ClaudeError

CLAUDE_VARIABLE: Final = "CCC_HOST_CLAUDE"


def chosen(claude: str | None) -> str | None:
    """The program to start everywhere: `claude`, else `$CCC_HOST_CLAUDE`, or None; a relative path is made to hold in every directory."""
    program = claude or os.environ.get(CLAUDE_VARIABLE) or None
    return os.path.abspath(program) if program is not None and os.sep in program else program


def found(program: str) -> str:
    """The absolute path of a program. Raises `ClaudeError` when there is none."""
    path = shutil.which(program)
    if path is None:
        raise ClaudeError(f"{program}: no such program; name it with --claude or ${CLAUDE_VARIABLE}")
    return os.path.abspath(path)
