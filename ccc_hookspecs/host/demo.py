"""The story of a stale headless, played: without the plugin, and then with each of its mechanisms.

ccc-host demo                      # or: python -m ccc_hookspecs.host.demo
ccc-host demo --claude PATH        # on the real Claude Code, which gets a network that leads nowhere
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

from ccc_hookspecs.errors import CccError
from ccc_hookspecs.host.demo_isolation import play_isolated, settle
from ccc_hookspecs.host.demo_stage import NotAsTold, Stage, Terminal, delivered, texts_of
from ccc_hookspecs.host.host import EmbeddedHost
from ccc_hookspecs.host.records import Session
from ccc_hookspecs.host.serving import Events
from ccc_hookspecs.testing.api import MessagesApi
from ccc_hookspecs.testing.simulator import NEWEST, install
from ccc_hookspecs.values import Tick

MECHANISMS: Final = ("retire_stale.use_time", "retire_stale.terminal_launch", "retire_stale.watcher")
CAT, DOG, QUESTION = "My cat is called Nero.", "My dog is called Rex.", "Which animals do I have?"
TICKS: Final = 20


class Story:
    """Plays the acts on a stage and tells them. Each act raises `NotAsTold` when something else happens than is told."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._events = Events(self._signal)

    def play(self) -> None:
        """Every act, in order."""
        self.forgotten()
        self.at_use()
        self.held()
        self.at_launch()
        self.watched()
        say("\nAs told: with the plugin nothing that was said is forgotten, and no busy process was ended.")

    def forgotten(self) -> None:
        """Without the plugin."""
        host, session = self._act("Without the plugin: the terminal's turn is forgotten", "without", ())
        self._terminal_turn(session)
        _expect(DOG not in self._send(host, session, QUESTION), "the stale headless does not know of the dog")
        say("    The headless never read what the terminal said, and its answer hangs on the old turn:")
        _show_fork(self._stage.records(session))
        self._end(host, session, "The headless ends, and a fresh `claude --resume` takes over:")
        _expect(DOG not in self._send(host, session, "And now?"), "the fresh process follows the forked branch")
        say("    It follows the branch that was added last. The dog is out of the conversation for good.")

    def at_use(self) -> None:
        """The use-time mechanism alone, with an idle headless."""
        title = "With retire_stale.use_time: looked at before the text goes in"
        host, session = self._act(title, "use-time", MECHANISMS[:1])
        self._terminal_turn(session)
        _expect(DOG in self._send(host, session, QUESTION), "the fresh process knows of the dog")
        _expect(not _forks(self._stage.records(session)), "no branch was added")

    def held(self) -> None:
        """The use-time mechanism alone, with a headless that is busy when the terminal takes its turn."""
        title = "With retire_stale.use_time, while the headless is at work: the text waits, and it is given what it missed"
        host, session = self._act(title, "held", MECHANISMS[:1])
        work = f"SLOW {self._stage.slow:g}"
        say(f"    headless  > {work}   (works for {self._stage.slow:g} s)")
        host.send(session.session_id, work)
        self._terminal_turn(session)
        _expect(DOG in self._send(host, session, QUESTION), "the headless was given the terminal's turn")
        _expect(not _forks(self._stage.records(session)), "two branches became one line again")

    def at_launch(self) -> None:
        """The terminal-launch mechanism alone."""
        title = "With retire_stale.terminal_launch: the headless makes way before the terminal starts"
        host, session = self._act(title, "launch", MECHANISMS[1:2])
        say("    ccc-host terminal SESSION")
        command, _ = host.launch_terminal(session)
        _expect(host.headless_for(session.session_id) is None, "the headless is gone before the terminal starts")
        self._terminal_turn(session, command)
        _expect(DOG in self._send(host, session, QUESTION), "the fresh process knows of the dog")

    def watched(self) -> None:
        """The watcher alone."""
        title = "With retire_stale.watcher: an idle headless beside an open terminal frees its memory"
        host, session = self._act(title, "watcher", MECHANISMS[2:])
        say("    somebody opens a terminal on the session, without asking the host; the host ticks")
        terminal = self._stage.terminal(session)
        for number in range(1, TICKS + 1):
            host.tick(Tick(number=number, monotonic=float(number), interval=5.0))
            if host.headless_for(session.session_id) is None:
                break
            time.sleep(0.3)
        _expect(host.headless_for(session.session_id) is None, "the watcher retires the idle headless")
        self._turn(terminal)
        _expect(DOG in self._send(host, session, QUESTION), "the fresh process knows of the dog")

    # --- what acts are made of

    def _act(self, title: str, name: str, mechanisms: Sequence[str]) -> tuple[EmbeddedHost, Session]:
        say(f"\n{title}")
        host = self._stage.host(name, mechanisms)
        session = self._stage.begin(host)
        self._send(host, session, CAT)
        return host, session

    def _send(self, host: EmbeddedHost, session: Session, text: str) -> str:
        """Send a text through the host; returns the answer."""
        say(f"    headless  > {text}")
        answer = ""
        for step in delivered(host, host.send(session.session_id, text)):
            if step == "held":
                say("              : kept, in order, until the headless is idle")
            answer = step.removeprefix("<") if step.startswith("<") else answer
        say(f"              < {_shortened(answer)}")
        return answer

    def _terminal_turn(self, session: Session, command: Sequence[str] = ()) -> None:
        """Somebody opens a terminal, takes a turn and leaves."""
        self._turn(self._stage.terminal(session, command))

    def _turn(self, terminal: Terminal) -> None:
        say(f"    terminal  > {DOG}")
        say(f"              < {terminal.say(DOG)}")
        terminal.leave()

    def _end(self, host: EmbeddedHost, session: Session, told: str) -> None:
        say(f"    {told}")
        head = host.agents.known(session.session_id)
        _expect(head is not None and host.agents.end(head, "the demonstration ends it"), "the headless ends")

    def _signal(self, event: dict[str, Any]) -> None:
        signs = f"; {', '.join(event['signs'])}" if event["signs"] and event["what"] in ("held", "deferred") else ""
        say(f"              * {event['what']}, says {event['by']}: process {event['pid'] or '-'}: {event['reason']}{signs}")


def say(line: str) -> None:
    """Print a line at once, so that the story is seen as it happens."""
    print(line, flush=True)


def _expect(condition: bool, told: str) -> None:
    if not condition:
        raise NotAsTold(f"it was told that {told}")


def _shortened(answer: str) -> str:
    """An answer, with no more of a catch-up in it than what people said."""
    try:
        recited = json.loads(answer.partition("SEEN ")[2])
    except ValueError:
        return answer
    shown = [_given_back(text) if text.startswith("<ccc-catch-up") else json.dumps(text, ensure_ascii=False) for text in recited]
    return f"SEEN [{', '.join(shown)}]"


def _given_back(catch_up: str) -> str:
    said = [line.removeprefix("[user] ") for line in catch_up.splitlines() if line.startswith("[user] ")]
    return f"(given back: {json.dumps(said, ensure_ascii=False)})"


def _prompts(records: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    """What people said, each with the id of the record below which it hangs: the nearest one above that is a message."""
    messages = {record["uuid"]: record for record in records if record["type"] in ("user", "assistant") and record.get("uuid")}
    parents = {record["uuid"]: record.get("parentUuid") for record in records if record.get("uuid")}

    def above(uuid: str | None) -> str | None:
        while uuid is not None and uuid not in messages:
            uuid = parents.get(uuid)
        return uuid

    said = [(texts_of(record), above(record.get("parentUuid"))) for record in messages.values() if record["type"] == "user"]
    return [(texts[-1], parent) for texts, parent in said if texts]


def _forks(records: list[dict[str, Any]]) -> list[list[str]]:
    """The prompts that hang below the same message, where several do."""
    below: dict[str | None, list[str]] = {}
    for text, parent in _prompts(records):
        below.setdefault(parent, []).append(text)
    return [texts for parent, texts in below.items() if parent is not None and len(texts) > 1]


def _show_fork(records: list[dict[str, Any]]) -> None:
    forks = _forks(records)
    _expect(bool(forks), "the transcript is forked")
    say(f"        {CAT}")
    for text in forks[0]:
        say(f"          +-- {text}")


@contextmanager
def _stage(real: str | None) -> Iterator[Stage]:
    """A stage in a directory that is removed afterwards; `real`: the real Claude Code, which is isolated already."""
    root = Path(tempfile.mkdtemp(prefix="ccc-demo-")).resolve()
    try:
        with MessagesApi() if real is not None else nullcontext() as api:
            if api is not None:
                os.environ["ANTHROPIC_BASE_URL"] = api.url
            settle(root)
            claude = real if real is not None else str(install(root / "bin"))
            stage = Stage(root, claude, typing=0.1 if real is None else 0.6, slow=2.5 if real is None else 6.0)
            try:
                yield stage
            finally:
                stage.close()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def play(real: str | None = None) -> int:
    """Play the story here; returns 0 when everything happened as told, else 1."""
    # What fails is told as a signal, in one line; its traceback would bury the story.
    logging.basicConfig(level=logging.CRITICAL)
    try:
        with _stage(real) as stage:
            say(f"On {real or f'a simulated Claude Code {NEWEST}'}. Each answer recites every text that its process remembers.")
            Story(stage).play()
    except (NotAsTold, CccError) as error:
        print(f"ccc-host demo: {error}", file=sys.stderr)
        return 1
    return 0


def run(claude: str | None) -> int:
    """Play the story, on the real Claude Code `claude` when it is given; returns the exit code."""
    try:
        return play() if claude is None else play_isolated(claude)
    except NotAsTold as error:
        print(f"ccc-host demo: {error}", file=sys.stderr)
        return 1


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m ccc_hookspecs.host.demo", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--claude", metavar="PATH", default=os.environ.get("CLAUDE") or None, help="the real Claude Code to play it on")
    parser.add_argument("--inside", metavar="PATH", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    return play(given.inside) if given.inside else run(given.claude)


if __name__ == "__main__":
    sys.exit(main())
