"""A host that sends texts to a session and kills itself with SIGKILL at a step: `crash_driver.py STATE SESSION STEP TEXT...`.

STEP counts the checkpoints from 1; 0 never dies. A text that begins with `stale` finds its headless stale: it is ended, and a fresh one
is asked for.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from ccc_hookspecs import Decision, Injection, Respawn, hookimpl
from ccc_hookspecs.host.host import EmbeddedHost
from ccc_hookspecs.manager import PluginManager
from ccc_hookspecs.specs import Host
from tests.ccc_hookspecs.host.world import end_process


class Stale:
    """Ends the headless of a `stale` text, as long as it is one that had other texts before."""

    @hookimpl
    def pre_inject(self, ccc: Host, injection: Injection) -> Decision | None:
        sent = {one.message_id for one in injection.headless.sent or ()} - {injection.message_id}
        if not injection.text.startswith("stale") or not sent:
            return None
        end_process(injection.headless.pid)
        ccc.released(injection.headless)
        return Respawn(reason="stale", catch_up="what was said elsewhere")


class Dying(EmbeddedHost):
    """Dies at its `step`th checkpoint."""

    step = 0

    def checkpoint(self, name: str) -> None:
        self.step -= 1
        if self.step == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Send each text when the one before was delivered."""
    state, session_id, step, *texts = sys.argv[1:]
    manager = PluginManager()
    manager.register(Stale(), "test.stale")
    host = Dying(Path(state), manager=manager)
    host.step = int(step)
    for text in texts:
        host.send(session_id, text)
        while host.store.outbox.open_of(session_id):
            time.sleep(0.01)
            host.drive(session_id)


if __name__ == "__main__":
    main()
