"""The recorded situations, played again with the simulator."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ccc_hookspecs.testing.harness import ClaudeHome, Record, SimulatedHeadless, Simulator, as_history, simulated, wait_until

ENVIRONMENT = {"CCC_SIM_TASK_AFTER": "0.3"}
"""A command counts as a task early, so that none has to run for long."""


@dataclass(frozen=True, slots=True)
class Played:
    """What a situation left: the records of the session's transcript and the events of its headless."""

    records: list[Record]
    events: list[Record]


def play(name: str, release: str, root: Path) -> Played:
    """Play one situation in a home of its own below `root`."""
    with simulated(ClaudeHome(root / release / name), release=release) as simulator:
        head = SITUATIONS[name](simulator)
        return Played(head.records(), head.events())


def first(simulator: Simulator, **environ: str) -> SimulatedHeadless:
    head = simulator.headless(environ={**ENVIRONMENT, **environ})
    head.ask("first from headless")
    return head


def lone(simulator: Simulator) -> SimulatedHeadless:
    """One headless through everything that its recording went through, in that order; 2.1.6 does not survive the end of
    a background command."""
    commands = simulator.home.config_dir / "commands"
    commands.mkdir()
    (commands / "hello.md").write_text("---\ndescription: hi\n---\nSay hello custom\n")
    head = first(simulator)
    for text in ("second from headless", "third from headless", "SLOW 0.1"):
        head.ask(text)
    _queued(head)
    for text in ("TWO:", "THINK please", "TASK: go", "/hello", "/context", "/cost", "FAIL400"):
        head.send(text)
        head.wait_idle()
    head.send("SLOW 60")
    head.wait_busy()
    head.control("interrupt")
    head.wait_idle()
    _background(head)
    if simulator.release != "2.1.6":
        head.send("/compact")
        head.wait_idle()
        head.ask("after compact")
    return head


def _queued(head: SimulatedHeadless) -> None:
    seen = len(head.events("assistant"))
    head.send("RUN: sleep 0.6; echo hi")
    head.wait_event("assistant", count=seen + 1)
    head.send("typed while busy")
    head.wait_idle()


def _background(head: SimulatedHeadless) -> None:
    results = len(head.events("result"))
    head.send("BG: sleep 0.4; echo done")
    head.wait_event("result", count=results + 1)
    reports = int(head.release.has("reports_background"))
    wait_until(lambda: len(head.events("result")) >= results + 1 + reports, "the report of the background command")
    head.wait_idle()
    if not reports:
        wait_until(lambda: "task-notification" in str(head.records()) or not head.release.has("notes_background"), "the notification")


def states(simulator: Simulator) -> SimulatedHeadless:
    return first(simulator, CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS="1")


def cleared(simulator: Simulator) -> SimulatedHeadless:
    head = first(simulator)
    head.send("/clear")
    head.wait_idle()
    head.ask("after clear")
    return head


def one_shot(simulator: Simulator) -> SimulatedHeadless:
    head = first(simulator)
    simulator.one_shot(head.session_id, "from another one-shot")
    return head


def terminal_turn(simulator: Simulator) -> SimulatedHeadless:
    head = first(simulator)
    simulator.terminal(head.session_id).exit()
    terminal = simulator.terminal(head.session_id)
    terminal.ask("from terminal")
    terminal.exit()
    return head


def fresh_resume(simulator: Simulator) -> SimulatedHeadless:
    head = terminal_turn(simulator)
    head.ask("second from headless")
    head.stop()
    fresh = simulator.headless(head.session_id)
    fresh.ask("after resume")
    return fresh


def terminal_compacted(simulator: Simulator) -> SimulatedHeadless:
    head = first(simulator)
    terminal = simulator.terminal(head.session_id)
    terminal.type("/compact")
    terminal.wait_idle()
    terminal.exit()
    return head


def interleaved(simulator: Simulator) -> SimulatedHeadless:
    head = first(simulator)
    gate = simulator.home.root / "terminal-left"
    head.send(f"UNTIL {gate}")
    head.wait_event("system", "init", count=2)
    terminal = simulator.terminal(head.session_id)
    terminal.ask("from terminal")
    terminal.exit()
    gate.touch()
    head.wait_idle()
    return head


SITUATIONS: dict[str, Callable[[Simulator], SimulatedHeadless]] = {
    "lone-after-compact": lone,
    "states-idle": states,
    "cleared": cleared,
    "one-shot-writer": one_shot,
    "terminal-turn": terminal_turn,
    "fresh-resume": fresh_resume,
    "terminal-compacted": terminal_compacted,
    "interleaved": interleaved,
}


def healed(simulator: Simulator) -> SimulatedHeadless:
    """Fed with another process's turn, once more with its prompt, and with an input during an answer; see `healed/README.md`."""
    head = simulator.headless(environ={"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"})
    say(head, "first from headless")
    before = len(head.records())
    simulator.one_shot(head.session_id, "RUN: echo hi")
    foreign = [record for record in head.records()[before:] if record["type"] in {"user", "assistant"}]
    head.feed(*foreign, foreign[0])
    gate = simulator.home.root / "fed"
    head.write(typed(f"UNTIL {gate}"))
    head.wait_event("system", "init", count=4)
    head.write(as_history(typed("history")))
    head.wait_busy()
    gate.touch()
    head.wait_idle()
    say(head, "after")
    head.stop()
    return head


def say(head: SimulatedHeadless, text: str) -> None:
    head.write(typed(text))
    head.wait_idle()


def typed(text: str) -> Record:
    """An input whose text is a plain string."""
    return {"type": "user", "uuid": str(uuid.uuid4()), "message": {"role": "user", "content": text}}
