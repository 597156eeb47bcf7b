"""Any interleaving of a headless and a terminal: stale if and only if the terminal said something that the headless has not seen."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.retire_stale.builders import RELEASES, Head, Session, call, said

STEPS = (
    "head turn",
    "head tool",
    "head command",
    "head unknown command",
    "head compacts",
    "head is interrupted",
    "terminal opens",
    "terminal turn",
    "terminal stops in a turn",
    "terminal compacts",
    "terminal leaves",
    "somebody renames",
    "a new head resumes",
)
FOREIGN = {"terminal turn", "terminal stops in a turn", "terminal compacts"}


class Play:
    """A session, the headless under judgement, and a terminal with a memory of its own."""

    def __init__(self, folder: Path, release: str, spaced: bool) -> None:
        self.session = Session(folder, release, spaced=spaced)
        self.head = Head(self.session)
        self.head.ask()
        self.terminal = self.session.last
        self.stale = False

    def do(self, step: str) -> None:
        getattr(self, step.replace(" ", "_"))()
        self.stale = (self.stale or step in FOREIGN) and step != "a new head resumes"

    def head_turn(self) -> None:
        self.head.ask()

    def head_tool(self) -> None:
        self.head.tool("Bash")

    def head_command(self, text: str = "<local-command-stdout>Total cost</local-command-stdout>") -> None:
        sent = self.head.send()
        self.head.lifecycle(sent, "started")
        self.session.operation("dequeue")
        caveat = self.session.user(self.head.tip, "Caveat", "sdk-cli", isMeta=True)
        self.session.user(caveat["uuid"], text, "sdk-cli")
        self.head.begin()
        self.head.finish(sent)

    def head_unknown_command(self) -> None:
        self.head_command("Unknown skill: nonsense")

    def head_compacts(self) -> None:
        sent = self.head.send()
        self.head.lifecycle(sent, "started")
        self.session.operation("dequeue")
        self._history_anew()
        boundary = self.session.system(None, "compact_boundary", logicalParentUuid=self.head.tip)
        summary = self.session.user(boundary["uuid"], "continued", "sdk-cli", isCompactSummary=True)
        self.head.print({"type": "system", "subtype": "compact_boundary", "session_id": self.session.id, "uuid": boundary["uuid"]})
        self.head.show(self.head.own(summary))
        self.head.finish(sent)

    def head_is_interrupted(self) -> None:
        sent = self.head.send()
        self.head.take("stop", sent)
        self.head.begin()
        self.head.answer(call("Bash"))
        self.head.show(self.head.own(self.session.user(self.head.tip, [said("[Request interrupted by user]")], "sdk-cli")))
        self.head.finish(sent)

    def terminal_opens(self) -> None:
        self.terminal = self.session.last

    def terminal_turn(self) -> None:
        self.terminal = self.session.turn(parent=self.terminal)[1]["uuid"]

    def terminal_stops_in_a_turn(self) -> None:
        self.terminal = self.session.user(self.terminal, "SLOW 30")["uuid"]

    def terminal_compacts(self) -> None:
        self._history_anew()
        boundary = self.session.system(None, "compact_boundary", "cli", logicalParentUuid=self.terminal)
        self.terminal = self.session.user(boundary["uuid"], "continued", isCompactSummary=True)["uuid"]

    def terminal_leaves(self) -> None:
        echoed = self.session.user(self.terminal, "<command-name>/exit</command-name>")
        self.session.user(echoed["uuid"], "<local-command-stdout>Bye!</local-command-stdout>")
        self.session.trailer("last-prompt", leafUuid=self.terminal)

    def somebody_renames(self) -> None:
        self.session.trailer("custom-title", customTitle="x")

    def a_new_head_resumes(self) -> None:
        self.session.tick(60)
        self.head = Head(self.session, resumed=True)
        self.head.tip = self.terminal if self.session.now % 2 else self.session.last
        self.head.ask()

    def _history_anew(self) -> None:
        if self.session.since("2.1.168"):
            records = [json.loads(line) for line in self.session.transcript.read_bytes().splitlines()]
            for record in [r for r in records if "uuid" in r][:8]:
                self.session.write(record)


@settings(max_examples=40)
@given(st.sampled_from(RELEASES), st.booleans(), st.lists(st.sampled_from(STEPS), min_size=1, max_size=9))
def test_stale_if_and_only_if_somebody_else_said_something(release: str, spaced: bool, steps: list[str]) -> None:
    """After each step, whether the files are followed or read anew."""
    with tempfile.TemporaryDirectory() as folder:
        play = Play(Path(folder), release, spaced)
        observer, head = play.head.observer(), play.head
        for step in steps:
            play.do(step)
            if play.head is not head:
                observer, head = play.head.observer(), play.head
            for judged in (play.head.judge(observer), play.head.judge()):
                assert judged.attribution.verdict == ("stale" if play.stale else "fresh"), (step, judged.attribution)
                assert judged.idleness.verdict != "busy", judged.idleness
            assert play.head.judge().idleness.verdict == "idle"
