"""A host that sends texts to a session and kills itself with SIGKILL at a step: `crash_driver.py STATE SESSION STEP TEXT...`.

STEP counts the checkpoints from 1; 0 never dies. A text that begins with `stale` finds its headless stale: it is ended, and a fresh one
is asked for. Before one that begins with `fed` the headless is given `HISTORY`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from ccc_hookspecs import Decision, Deliver, Injection, Respawn, hookimpl
from ccc_hookspecs.host.host import EmbeddedHost
from ccc_hookspecs.manager import PluginManager
from ccc_hookspecs.specs import Host
from tests.ccc_hookspecs.host.world import end_process


class Stale:
    """Ends the headless of a `stale` text, as long as it is one that had other texts before."""

    @hookimpl
    def pre_inject(self, ccc: Host, injection: Injection) -> Decision | None:
        sent = {one.message_id for one in injection.headless.sent or ()} - {injection.message_id}
        if not injection.text.startswith("stale"):
            return None
        if not sent:
            return Deliver(catch_up="what was said elsewhere")
        end_process(injection.headless.pid)
        ccc.released(injection.headless)
        return Respawn(reason="stale")


HISTORY = "3d3f6d6c-6f57-4c53-8a55-6d0b38f1c0a1"


def history(text: str, message_id: str = HISTORY, **fields: object) -> bytes:
    """The line that tells a headless what a person said elsewhere."""
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    line = {"type": "user", "uuid": message_id, "parent_tool_use_id": None, "shouldQuery": False, "message": message}
    return json.dumps({**line, **fields}).encode() + b"\n"


class Feeding:
    """Gives the headless of a `fed` text what was said elsewhere."""

    @hookimpl
    def pre_inject(self, ccc: Host, injection: Injection) -> None:
        if injection.text.startswith("fed"):
            ccc.write(injection.headless, history("from elsewhere"))


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
    manager.register(Feeding(), "test.feeding")
    host = Dying(Path(state), manager=manager)
    host.step = int(step)
    for text in texts:
        host.send(session_id, text)
        while host.store.outbox.open_of(session_id):
            time.sleep(0.01)
            host.drive(session_id)


if __name__ == "__main__":
    main()
