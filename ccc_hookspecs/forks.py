"""What must begin anew in the child of a fork: a lock that another thread held there is never released."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class OutlivesForks(Protocol):
    """Something with a lock or a thread that a fork would leave unusable."""

    def begin_anew(self) -> None:
        """In the child of a fork, before anything else runs there: make locks afresh, and forget threads."""


_subjects: weakref.WeakSet[OutlivesForks] = weakref.WeakSet()
_hooked = False
_hooking = threading.Lock()


def outlive_forks(subject: OutlivesForks) -> None:
    """Have `subject.begin_anew()` called in the child of each fork from now on, as long as it lives. Harmless when repeated."""
    # Not at import, so that importing the contract has no effect on a process.
    global _hooked
    with _hooking:
        _subjects.add(subject)
        if not _hooked:
            os.register_at_fork(after_in_child=_after_fork)
            _hooked = True


def _after_fork() -> None:
    global _hooking
    _hooking = threading.Lock()
    for subject in list(_subjects):
        subject.begin_anew()
