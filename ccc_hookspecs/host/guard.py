"""One of many that goes wrong stops none of the others."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)


@contextmanager
def guarded(what: str, session_id: str | None = None) -> Iterator[None]:
    """Whatever is raised within is logged with its traceback, as `what` that failed, and goes no further.

    What is kept stays kept: a full disk or the like passes, and the next look takes on from there.
    """
    try:
        yield
    except Exception:
        log.exception("%s failed%s", what, f" for session {session_id}" if session_id else "", extra={"ccc_session": session_id})
