"""Putting a function of ours in the place of one of a module's, and taking it back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

Function: TypeAlias = Callable[..., Any]
Wrapper: TypeAlias = Callable[..., Any]
"""Called as the original is, with the original in front of its arguments."""


class Patches:
    """The functions that were replaced, with their originals."""

    def __init__(self) -> None:
        self._replaced: list[tuple[object, str, Function, Function]] = []

    def wrap(self, owner: object, name: str, wrapper: Wrapper) -> Function:
        """Replace `owner.name` so that each call of it becomes `wrapper(original, ...)`; returns the original."""
        original: Function = getattr(owner, name)

        @functools.wraps(original)
        def replacement(*args: Any, **kwargs: Any) -> Any:
            return wrapper(original, *args, **kwargs)

        setattr(owner, name, replacement)
        self._replaced.append((owner, name, original, replacement))
        return original

    def undo(self) -> None:
        """Put every original back; one that somebody else has replaced since then is left as it is."""
        while self._replaced:
            owner, name, original, replacement = self._replaced.pop()
            if getattr(owner, name, None) is replacement:
                setattr(owner, name, original)
