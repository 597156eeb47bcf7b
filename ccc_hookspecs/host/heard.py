"""What plugins broadcast while the host asks them: who ended which process, and which hold was announced."""

from __future__ import annotations

import threading

from ccc_hookspecs.outcomes import HeldInjection, Retirement
from ccc_hookspecs.signals import headless_retired, injection_held


class Heard:
    """Listens as long as it lives. What one thread's question led to is told to that thread."""

    def __init__(self) -> None:
        self._here = threading.local()
        headless_retired.connect(self._retired)
        injection_held.connect(self._held)

    def retired_by(self, pid: int) -> str | None:
        """The mechanism that this thread's last question had this process retired by."""
        mechanisms: dict[int, str] = getattr(self._here, "mechanisms", {})
        return mechanisms.get(pid)

    def announced(self, message_id: str) -> bool:
        """Whether the hold of this message was announced in this thread's last question."""
        return message_id in getattr(self._here, "held", ())

    def forget(self) -> None:
        """A new question begins."""
        self._here.mechanisms, self._here.held = {}, set()

    def _retired(self, mechanism: str, event: Retirement) -> None:
        if hasattr(self._here, "mechanisms"):
            self._here.mechanisms[event.headless.pid] = mechanism

    def _held(self, mechanism: str, event: HeldInjection) -> None:
        if hasattr(self._here, "held"):
            self._here.held.add(event.message_id)
