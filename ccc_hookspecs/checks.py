"""What a value object refuses where it is made, with an error that names its field and what was given."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from pathlib import Path
from typing import Final

from ccc_hookspecs.errors import InvalidValueError

_UUID: Final = re.compile("[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def require(condition: bool, owner: object, name: str, expected: str) -> None:
    """Raise `InvalidValueError` for the field `name` of `owner` unless the condition holds."""
    if not condition:
        raise InvalidValueError(type(owner).__name__, name, getattr(owner, name), expected)


def is_uuid(value: object) -> bool:
    """True when `value` is a UUID in its canonical 36-character text form, in either case."""
    return isinstance(value, str) and _UUID.fullmatch(value) is not None


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


def check_optional_text(owner: object, *names: str) -> None:
    """Refuse what is neither a text that is not empty nor None."""
    for name in names:
        value = getattr(owner, name)
        require(value is None or (isinstance(value, str) and bool(value.strip())), owner, name, "a text that is not empty, or None")


def check_quoted(owner: object, *names: str) -> None:
    """Refuse what is neither a text nor None. For what is quoted from files of others: whatever text stands there is right."""
    for name in names:
        value = getattr(owner, name)
        require(value is None or isinstance(value, str), owner, name, "a text or None")


def check_hidden_text(owner: object, *names: str) -> None:
    """The same for what may hold conversation text: the error, which reaches logs, shows only its type."""
    for name in names:
        value = getattr(owner, name)
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise InvalidValueError(type(owner).__name__, name, type(value), "a text that is not empty, or None")


def check_flag(owner: object, *names: str) -> None:
    """Refuse what is neither True nor False: a text such as `"no"` would count as True."""
    for name in names:
        require(isinstance(getattr(owner, name), bool), owner, name, "True or False")


def check_optional_flag(owner: object, *names: str) -> None:
    """Refuse what is neither True, False nor None."""
    for name in names:
        value = getattr(owner, name)
        require(value is None or isinstance(value, bool), owner, name, "True, False or None")


def check_one_of(owner: object, name: str, known: Collection[str]) -> None:
    """Refuse a text that is not among the known ones."""
    value = getattr(owner, name)
    require(isinstance(value, str) and value in known, owner, name, "one of " + ", ".join(known))


def check_kind(owner: object, name: str, kind: type) -> None:
    """Refuse what is no instance of `kind`."""
    require(isinstance(getattr(owner, name), kind), owner, name, f"a {kind.__name__}")


def check_optional_kind(owner: object, name: str, kind: type) -> None:
    """Refuse what is neither an instance of `kind` nor None."""
    value = getattr(owner, name)
    require(value is None or isinstance(value, kind), owner, name, f"a {kind.__name__} or None")


def check_tuple(owner: object, name: str, kind: type) -> None:
    """Refuse what is neither a tuple of `kind` nor None. One pass over the types, since there may be thousands."""
    value = getattr(owner, name)
    good = value is None or (isinstance(value, tuple) and all(issubclass(found, kind) for found in set(map(type, value))))
    require(good, owner, name, f"a tuple of {kind.__name__}, or None")
