"""The fronts for people: an interactive line loop, and one prompt given on the command line."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from typing import Any

from ccc_hookspecs.testing.simulator import slash
from ccc_hookspecs.testing.simulator.agent import Agent, Input
from ccc_hookspecs.testing.simulator.commands import command_of
from ccc_hookspecs.testing.simulator.inbox import Terminated
from ccc_hookspecs.testing.simulator.lines import new_id
from ccc_hookspecs.testing.simulator.turn import Turn

PROMPT = "> "


class Terminal:
    """One line, one prompt; `/exit` or the end of input leaves. Lines typed during a turn wait for its end."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._typed: list[Input] = []
        self._asking = False
        agent.on_line = self._line
        agent.ask = self._ask
        agent.waiting = lambda: bool(self._typed)

    def run(self) -> int:
        """Returns the exit code. Raises Terminated."""
        _take_terminal()
        if self.agent.release.has("summary"):
            self.agent.journal.summary()
        self.agent.status("idle")
        _print(PROMPT)
        while True:
            while not self._typed and not self.agent.inbox.closed:
                self.agent.listen(None)
            if not self._typed:
                return 0
            given = self._typed.pop(0)
            if given.content in {"/exit", "/quit"}:
                self._leave(given.content)
                return 0
            self._take(given)

    def _line(self, line: str) -> None:
        """A line that was typed; one typed during a turn is queued, and the transcript notes it."""
        queued = self.agent.in_turn and not self._asking
        if queued:
            self.agent.journal.queue("enqueue", line.strip())
        origin = {"kind": "human"} if self.agent.release.has("origin_human") else None
        self._typed.append(Input(content=line.strip(), source="queued" if queued else "typed", origin=origin))

    def _take(self, given: Input) -> None:
        if given.content:
            self.agent.inbox.interrupted = False
            self.agent.status("busy")
            self.agent.in_turn = True
            answer = self._turn(given)
            self.agent.in_turn = False
            self.agent.inbox.interrupted = False
            self.agent.status("idle")
            _print(answer + "\n")
        else:
            self.agent.tell()
        _print(PROMPT)

    def _turn(self, given: Input) -> str:
        agent = self.agent
        if (command := command_of(agent, given.content)) is not None:
            given.input_id = new_id()
            agent.journal.snapshot(given.input_id)
            slash.run(agent, given, command)
            return ""
        answer = Turn(agent, [given]).run()
        if agent.release.has("turn_duration"):
            agent.journal.system("turn_duration", durationMs=1, messageCount=1, isMeta=False)
        self._turn_trailers()
        return answer

    def _turn_trailers(self) -> None:
        journal = self.agent.journal
        if self.agent.release.has("last_prompt"):
            journal.last_prompt_trailer()
        for feature, name in (("mode_record", "-mode"), ("permission_mode_record", "-permission-mode"), ("atis_latch", "-atis-latch")):
            if self.agent.release.has(feature):
                journal.named(name)

    def _leave(self, text: str) -> None:
        """Leaving by `/exit` appends records without conversation: always trailers, on 2.1.6 also the echo of the command.

        Other releases leave the echo at times; `CCC_SIM_EXIT_ECHO=1` asks for it.
        """
        journal = self.agent.journal
        if journal.leaf is not None and (self.agent.release.has("echoes_exit") or self.agent.settings.exit_echo):
            record_id = new_id()
            journal.snapshot(record_id)
            slash.echo(self.agent, text, record_id, "Bye!")
        elif journal.leaf is not None:
            self._exit_trailers()
        _print("\n")

    def _exit_trailers(self) -> None:
        release, journal = self.agent.release, self.agent.journal
        if release.has("exit_snapshot"):
            journal.snapshot(new_id())
        for feature, name in (("mode_record", "-mode"), ("permission_mode_record", "-permission-mode"), ("cost_state", "-cost-state")):
            if release.has(feature):
                journal.named(name)

    def _ask(self, name: str, given: dict[str, Any], tool_use_id: str) -> str | None:
        _print(f"Allow {name} {json.dumps(given)}? [y/n] ")
        self._asking = True
        try:
            while not self._typed:
                if self.agent.inbox.closed:
                    raise Terminated(signal.SIGHUP)
                self.agent.listen(None)
                self.agent.check_interrupt()
        finally:
            self._asking = False
        return None if self._typed.pop(0).content.lower().startswith("y") else "denied"


def one_shot(agent: Agent) -> int:
    """Run one prompt and print its answer; returns the exit code."""
    agent.status("busy")
    agent.in_turn = True
    given = Input(content=agent.settings.text or "", source="sdk")
    agent.journal.queue("enqueue", given.content)
    answer = Turn(agent, [given]).run()
    if agent.settings.output_format == "json":
        answer = json.dumps({"type": "result", "subtype": "success", "result": answer, "session_id": agent.journal.session_id})
    if agent.stream.quiet:
        _print(answer + "\n")
    return 0


def _take_terminal() -> None:
    """Make a terminal on standard input the controlling one, when this process leads a session that has none yet."""
    if os.isatty(0) and os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError):
            os.close(os.open(os.ttyname(0), os.O_RDWR))


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
