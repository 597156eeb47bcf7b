"""One of many that goes wrong stops none of the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeAlias

log = logging.getLogger(__name__)


Tell: TypeAlias = Callable[[str, str | None, Exception], object]
"""Is told what failed, for which session if for one, and with what."""


@contextmanager
def guarded(what: str, session_id: str | None = None, tell: Tell | None = None) -> Iterator[None]:
    """Whatever is raised within is logged with its traceback, as `what` that failed, told, and goes no further.

    What is kept stays kept: a full disk or the like passes, and the next look takes on from there.
    """
    try:
        yield
    except Exception as error:
        log.exception("%s failed%s", what, f" for session {session_id}" if session_id else "", extra={"ccc_session": session_id})
        if tell is not None:
            with suppress(Exception):
                tell(what, session_id, error)
