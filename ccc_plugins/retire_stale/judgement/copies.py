"""The ids of copies: a record that a process cannot take under its own id is given to it under one made from that.

So whoever reads the transcript later knows what was given back, from the ids alone, and none is given back twice.
"""

from __future__ import annotations

import uuid
from collections.abc import Set
from typing import Final

_NAMESPACE: Final = uuid.UUID("5f9dbb0e-6d0b-4c3c-9e0a-0c8c8f6a1d10")
_VERSION_AT: Final = 14


def copy_id(record_id: str) -> str:
    """The id of the copy of a record."""
    return str(uuid.uuid5(_NAMESPACE, record_id.lower()))


def is_copy_id(record_id: str) -> bool:
    """Whether `copy_id` may have made this id: those that Claude Code makes are of another version."""
    return record_id[_VERSION_AT : _VERSION_AT + 1] == "5"


def is_copied(record_id: str, among: Set[str]) -> bool:
    """Whether these ids hold that of a record's copy, or of the record that it is a copy of."""
    if is_copy_id(record_id):
        return any(copy_id(other) == record_id for other in among)
    return any(map(is_copy_id, among)) and copy_id(record_id) in among
