"""What a value object refuses where it is made, with an error that names its field and what was given."""

from __future__ import annotations

import math
import uuid
from pathlib import Path

from ccc_hookspecs.errors import InvalidValueError


def require(condition: bool, owner: object, name: str, expected: str) -> None:
    """Raise `InvalidValueError` for the field `name` of `owner` unless the condition holds."""
    if not condition:
        raise InvalidValueError(type(owner).__name__, name, getattr(owner, name), expected)


def is_uuid(value: object) -> bool:
    """True when `value` is a UUID in its canonical 36-character text form, in either case."""
    if not isinstance(value, str) or len(value) != 36:
        return False
    try:
        return str(uuid.UUID(value)) == value.lower()
    except ValueError:
        return False


def check_uuid(owner: object, *names: str) -> None:
    """Refuse what is no UUID."""
    for name in names:
        require(is_uuid(getattr(owner, name)), owner, name, "a UUID such as 72350742-dff3-4ee0-a645-6602d6d2b86e")


def check_path(owner: object, *names: str) -> None:
    """Refuse what is neither an absolute path nor None."""
    for name in names:
        value = getattr(owner, name)
        require(value is None or (isinstance(value, Path) and value.is_absolute()), owner, name, "an absolute pathlib.Path or None")


def check_seconds(owner: object, *names: str) -> None:
    """Refuse what is neither a number of seconds nor None."""
    for name in names:
        value = getattr(owner, name)
        good = value is None or (isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0)
        require(good, owner, name, "a finite number of seconds, 0 or more, or None")


def check_count(owner: object, *names: str) -> None:
    """Refuse what is neither a count nor None."""
    for name in names:
        value = getattr(owner, name)
        good = value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0)
        require(good, owner, name, "a whole number, 0 or more, or None")


def check_texts(owner: object, *names: str) -> None:
    """Refuse what is no tuple of texts."""
    for name in names:
        value = getattr(owner, name)
        require(isinstance(value, tuple) and all(isinstance(one, str) for one in value), owner, name, "a tuple of texts")


def check_text(owner: object, *names: str) -> None:
    """Refuse an empty text."""
    for name in names:
        value = getattr(owner, name)
        require(isinstance(value, str) and bool(value.strip()), owner, name, "a text that is not empty")
