"""What code that is not ours raised or gave, put into words without trusting it.

An exception may raise from its own `str()`, a value from its `repr()`, and the report of a failure must not fail over either.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import Final

LIMIT: Final = 1_000
"""The most characters of somebody else's words in a message of ours."""


def said(error: BaseException) -> str:
    """An exception's type and text, at most `LIMIT` characters; the type alone when there is no text, or `str()` raises."""
    name, text = type(error).__name__, _words(str, error)
    return _cut(f"{name}: {text}" if text else name)


def text_of(error: BaseException) -> str:
    """An exception's text without its type, at most `LIMIT` characters; the type when there is no text, or `str()` raises."""
    return _cut(_words(str, error) or type(error).__name__)


def shown(value: object) -> str:
    """`repr(value)`, at most `LIMIT` characters; the type in angle brackets when `repr()` raises."""
    return _cut(_words(repr, value) or f"<{type(value).__name__}>")


def name_of(function: object) -> str:
    """The name of a function or method; the type's for an object that has none."""
    try:
        name = getattr(function, "__qualname__", None)
    except Exception:  # noqa: BLE001 - a made-up attribute may raise anything
        name = None
    return name if isinstance(name, str) and name else type(function).__name__


def traceable(error: BaseException) -> BaseException | None:
    """The exception as `exc_info` of a log call; None when no traceback can be made of it, over which the call would raise."""
    try:
        traceback.format_exception(error)
    except Exception:  # noqa: BLE001 - notes and causes are the exception's own code
        return None
    return error


def meant_for_host(error: BaseException) -> bool:
    """Whether an exception that came out of a plugin's code may have been raised at the host, and must reach it.

    An interrupt, and on the main thread, where signal handlers run, an exit. On any other thread only the plugin can have raised it.
    """
    if isinstance(error, Exception):
        return False
    return isinstance(error, KeyboardInterrupt) or threading.get_ident() == threading.main_thread().ident


def _words(how: Callable[[object], str], subject: object) -> str | None:
    try:
        return how(subject)
    except Exception:  # noqa: BLE001 - whatever it raises, there are no words
        return None


def _cut(text: str) -> str:
    return text if len(text) <= LIMIT else text[: LIMIT - 1] + "…"
