"""The host of the guide to calling the hooks from one's own host: the guide's code, with a plugin and with what it leaves to the host."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from ccc_hookspecs import Decision, Deliver, Headless, Injection, Respawn, TerminalLaunch, hookimpl
from ccc_hookspecs.outcomes import Facts, Retirement
from ccc_hookspecs.signals import emit, headless_healed, headless_kept, headless_retired, retirement_deferred, retirement_failed
from ccc_hookspecs.specs import Host
from ccc_hookspecs.values import Tick
from tests.ccc_hookspecs.integrations.test_integration_docs import DOCS, blocks

INTEGRATING = (DOCS / "integrating.md").read_text(encoding="utf-8")
SESSION = "7713fc42-3b60-46cb-a3fb-0fcfcfc4e913"
OTHER = "8813fc42-3b60-46cb-a3fb-0fcfcfc4e913"
FACTS = Facts(attribution="stale", attribution_reason="a terminal wrote", idleness="idle")

Answer: TypeAlias = Decision | Callable[[Host, Injection], Decision | None] | None


def respawn(host: Host, injection: Injection, catch_up: str | None = None) -> Decision | None:
    """As a mechanism does it: nobody but the process that was given something before is retired; the next one lacks `catch_up`."""
    if not injection.headless.sent:
        return Deliver(catch_up=catch_up)
    host.released(injection.headless)
    event = Retirement(headless=injection.headless, mechanism="m", reason="stale", facts=FACTS, rung="released", seconds=0.1)
    emit(headless_retired, "m", event)
    return Respawn(reason="stale")


class Guide:
    """The code of the guide, with a plugin and with what it leaves to the host. `gone`: the pids of processes that ended by themselves."""

    def __init__(self, state_dir: Path) -> None:
        self.answer: Answer = None
        self.asked: list[Injection] = []
        self.launches: list[TerminalLaunch] = []
        self.ticks = 0
        self.written: list[tuple[int, list[str]]] = []
        self.forgotten: list[Headless] = []
        self.broken: set[str] = set()
        self.pid = 100
        self.gone: set[int] = set()
        self.names: dict[str, Any] = {
            "state_dir": state_dir,
            "forget_handles": self.forgotten.append,
            "put": self._put,
            "resume": self._resume,
            "start_terminal": lambda session_id, cwd: self.written.append((0, [f"terminal {session_id}"])),
        }
        for source in blocks(INTEGRATING):
            exec(compile(source, "integrating.md", "exec"), self.names)  # the guide's own code
        # Its processes are numbers.
        self.names["has_ended"] = lambda pid, started: pid in self.gone
        self.host, self.queue = self.names["host"], self.names["queue"]
        self.names["manager"].register(self, "guide")

    @hookimpl
    def pre_inject(self, ccc: Host, injection: Injection) -> Decision | None:
        self.asked.append(injection)
        return self.answer(ccc, injection) if callable(self.answer) else self.answer

    @hookimpl
    def on_terminal_launch(self, ccc: Host, launch: TerminalLaunch) -> None:
        self.launches.append(launch)

    @hookimpl
    def on_tick(self, ccc: Host, tick: Tick) -> None:
        self.ticks += 1

    def send(self, text: str, session_id: str = SESSION) -> None:
        self.names["send"](session_id, text)

    def tick(self) -> None:
        self.names["tick"](Tick(number=self.ticks + 1, monotonic=1.0, interval=5.0))

    @property
    def texts(self) -> list[str]:
        return [given[-1] for _, given in self.written]

    def waiting(self, session_id: str = SESSION) -> list[str]:
        rows: list[tuple[str]] = self.queue.run("SELECT text FROM texts WHERE session_id = ? ORDER BY number", session_id)
        return [text for (text,) in rows]

    def _put(self, headless: Headless, line: bytes) -> None:
        if "put" in self.broken:
            raise BrokenPipeError("no reader")
        message = json.loads(line)
        # It was noted before.
        assert message["uuid"] in [one.message_id for one in self.host.rows[headless.session_id].sent]
        self.written.append((headless.pid, [block["text"] for block in message["message"]["content"]]))

    def _resume(self, session_id: str) -> Headless:
        if "resume" in self.broken:
            raise FileNotFoundError("claude")
        self.pid += 1
        found = self.host.rows[session_id] = Headless(session_id=session_id, pid=self.pid, start_time=float(self.pid), sent=())
        return found

    def close(self) -> None:
        """The guide's functions hear no signals any more."""
        headless_retired.disconnect(self.names["note_who"])
        retirement_deferred.disconnect(self.names["begin_wait"])
        for signal in (headless_kept, headless_healed, headless_retired, retirement_failed):
            signal.disconnect(self.names["end_wait"])
