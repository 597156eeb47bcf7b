"""Generated stories: a person's day with one session, drawn from a seed.

A key is `day:SEED`, or `day:SEED:0,2,5` for some of its acts alone; a `+` at its end has `heal` be `always`. An act that makes no sense
where it comes is left out, so any part of a day is a day. A `ccc-host serve` runs all the while.
"""

from __future__ import annotations

import random
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

from tests.real.stories.commands import local_outputs
from tests.real.stories.healing import compact
from tests.real.stories.registry import Story, family
from tests.real.terminal import Terminal
from tests.real.waiting import PATIENCE, wait_until
from tests.real.world import CCC_HOST, LONG_SECONDS, World

ACTS: Final = 10
"""How many acts are drawn for a day."""

WEIGHTS: Final = {
    "text": 5,
    "tools": 1,
    "long text": 3,
    "release": 3,
    "local command": 2,
    "compact": 1,
    "background task": 2,
    "terminal opens": 4,
    "terminal is launched": 2,
    "terminal turn": 5,
    "long terminal turn": 3,
    "terminal compacts": 1,
    "terminal goes back": 2,
    "terminal leaves": 4,
    "terminal is killed": 1,
    "another program": 3,
    "text now": 1,
    "host is killed": 2,
}
"""How often each act is drawn, beside the others."""

FIXED: Final = {
    "2.0.42": (4, 6, 9, 11, 12),
    "2.1.119": (4, 6, 9, 11, 12),
    "2.1.216": (7, 9, 15, 96, 98),
    "2.1.332": (7, 15, 21, 41, 76),
}
"""The days that are always played, by release."""

TOOLS: Final = ("RUN: echo one", "TWO:", "THINK")
COMPACTS_SHORT: Final = ("2.0.42", "2.1.61", "2.1.119", "2.1.275", "2.1.332")
"""The releases that compact a session as short as these."""

GOES_BACK: Final = ("2.1.275", "2.1.332")
"""The releases of which the choices of `/rewind` are known here."""

TAKES_HISTORY: Final = (2, 1, 119)
"""From then on a stale process with work is healed. A text is held while a terminal is open; before, terminals are not found."""

TAKES_TEXTS: Final = (2, 1, 168)
"""From then on a text is typed into the terminal that has the session open."""


def acts_of(seed: int) -> list[str]:
    """The acts of a day."""
    drawn = random.Random(seed)
    return ["start", *drawn.choices(list(WEIGHTS), list(WEIGHTS.values()), k=ACTS)]


def numbered(key: str) -> tuple[int, list[tuple[int, str]]]:
    """The seed of a key, and its acts with their numbers in the whole day."""
    seed, _, numbers = key.rstrip("+").removeprefix("day:").partition(":")
    acts = list(enumerate(acts_of(int(seed))))
    kept = {0, *map(int, numbers.split(","))} if numbers else {number for number, _ in acts}
    return int(seed), [(number, act) for number, act in acts if number in kept]


@family("day")
def day(key: str) -> Story:
    """The day of a key as a story."""
    seed, acts = numbered(key)

    def play(world: World) -> None:
        if key.endswith("+"):
            world.environ["CCC_PLUGIN__RETIRE_STALE__HEAL"] = "always"
        Person(world, seed).lives(acts)

    return Story(key, "a generated day", play, core=False, control=False, unfit={})


class Person:
    """Somebody at the host's command line and at a terminal.

    `waiting`: the texts to the headless that are not answered yet. `typing`: the terminal's turn under way.
    """

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._random = random.Random(-seed)
        self._release = world.release_name()
        self._number = 0
        self._server: subprocess.Popen[bytes]
        self._terminal: Terminal | None = None
        self._typed: list[str] = []
        self.typing: str | None = None
        self.waiting: list[str] = []
        self._acts: dict[str, Callable[[], None]] = {
            "start": self._start,
            "text": self._text,
            "tools": lambda: self._text(self._random.choice(TOOLS)),
            "long text": self._long_text,
            "release": self._release_all,
            "local command": self._local_command,
            "compact": self._compact,
            "background task": lambda: self._text(f"BG: sleep 36{self._number:02}"),
            "terminal opens": lambda: self._open(launched=False),
            "terminal is launched": lambda: self._open(launched=True),
            "terminal turn": self._turn,
            "long terminal turn": self._long_turn,
            "terminal compacts": self._terminal_compacts,
            "terminal goes back": self._goes_back,
            "terminal leaves": self._leave,
            "terminal is killed": self._kill_terminal,
            "another program": self._another_program,
            "text now": self._text_now,
            "host is killed": self._kill_host,
        }

    def lives(self, acts: Sequence[tuple[int, str]]) -> None:
        """Play the acts, and two texts more when everything has come to its end."""
        # Where a terminal and a headless are at work at once, and where a terminal goes back, there are branches; what they hold is judged.
        self._world.forks = len(acts)
        done: list[str] = []
        self._world.facts["acts"] = done
        with self._serving():
            for number, act in acts:
                self._number = number
                if self._fits(act):
                    done.append(act)
                    self._acts[act]()
            self._release_all()
            if self._terminal is not None:
                self._leave()
            for self._number in (98, 99):
                self._text()
                self._answered(self.waiting)
            self._world.wait_settled()

    def _fits(self, act: str) -> bool:
        """Whether an act makes sense now."""
        opened, quiet = self._terminal is not None, not self.waiting
        takes_history = self._at_least(TAKES_HISTORY)
        # A text that waits in a process does not know what is said elsewhere from then on.
        given_all = len(self.waiting) <= 1
        match act:
            case "local command" | "tools":
                return quiet and not opened
            case "compact":
                return quiet and not opened and self._release in COMPACTS_SHORT
            case "background task":
                # Before, a text for a stale process with one is held until a person decides.
                return quiet and not opened and takes_history
            case "long text":
                return quiet and not opened
            case "terminal opens" | "terminal is launched":
                return not opened and (quiet or takes_history)
            case "another program":
                return given_all
            case "terminal turn" | "long terminal turn":
                return opened and self.typing is None and given_all and (quiet or not self._types())
            case "terminal leaves":
                return opened and self.typing is None and (quiet or not self._types())
            case "terminal compacts":
                return opened and self.typing is None and quiet and self._release in COMPACTS_SHORT
            case "terminal goes back":
                return opened and self.typing is None and quiet and bool(self._typed) and self._release in GOES_BACK
            case "terminal is killed":
                return opened and (self.typing is None or takes_history) and quiet
            case "text now" | "host is killed":
                return quiet and not opened
            case "release":
                return self.typing is not None or not quiet
        return True

    # --- texts by the host

    def _start(self) -> None:
        self._world.start(self._words("by ccc"))

    def _text(self, words: str = "") -> None:
        """A text is seen through where nothing is under way; else it waits."""
        text = f"{words} {self._words('by ccc')}".strip() if words in ("", "THINK") else words
        if any(given.text == text for given in self._world.given):
            return
        self._send(text)
        if self.typing is None and not self._is_held() and not any(one.startswith("SLOW") for one in self.waiting):
            self._answered([text])

    def _send(self, text: str, *options: str) -> None:
        self._world.send(text, "--no-wait", *options)
        self.waiting.append(text)
        if self._types() and not options:
            # The terminal answers it from its own memory, which is nobody's to heal.
            self._world.given[-1] = replace(self._world.given[-1], by_ccc=False)

    def _long_text(self) -> None:
        self.waiting.append(self._world.keep_busy(self._words("by ccc")))

    def _text_now(self) -> None:
        self._send(self._words("now by ccc"), "--now")
        self._answered(self.waiting)

    def _release_all(self) -> None:
        """Whatever lasts comes to its end; but what is held waits until the terminal is gone."""
        self._world.release()
        if self.typing is not None:
            self._answered([self.typing])
            self.typing = None
        if not self._is_held():
            self._answered(self.waiting)

    def _answered(self, texts: Sequence[str]) -> None:
        for text in tuple(texts):
            wait_until(lambda: self._world.transcript().answered(text), f"the answer to {text!r} in the transcript")  # noqa: B023 - waited for here
            if text in self.waiting:
                self.waiting.remove(text)

    def _local_command(self) -> None:
        before = len(local_outputs(self._world.transcript()))
        self._world.ccc("send", self._world.session_id, "/cost", "--no-wait")
        wait_until(lambda: len(local_outputs(self._world.transcript())) > before, "the outcome of /cost")

    def _compact(self) -> None:
        before = self._world.transcript().compactions()
        self._world.ccc("send", self._world.session_id, "/compact", "--no-wait")
        wait_until(lambda: self._world.transcript().compactions() > before, "the compaction by the host")

    # --- the terminal

    def _open(self, *, launched: bool) -> None:
        self._terminal, self._typed = self._world.terminal(launched=launched), []

    def _turn(self) -> None:
        if self._terminal is not None:
            self._typed.append(self._words("in a terminal"))
            self._world.ask(self._terminal, self._typed[-1])

    def _long_turn(self) -> None:
        if self._terminal is not None:
            self.typing = f"SLOW {LONG_SECONDS} {self._words('in a terminal')}"
            self._typed.append(self.typing)
            self._world.type(self._terminal, self.typing)

    def _terminal_compacts(self) -> None:
        if self._terminal is not None:
            compact(self._world, self._terminal)
            self._typed = []

    def _goes_back(self) -> None:
        if self._terminal is not None:
            self._terminal.rewind(1, "Restore conversation")
            self._world.take_back(self._typed.pop())

    def _leave(self) -> None:
        if self._terminal is not None:
            self._terminal.leave()
            self._terminal = None

    def _kill_terminal(self) -> None:
        if self._terminal is not None:
            self._terminal.close()
            self._terminal, self.typing = None, None

    # --- others

    def _another_program(self) -> None:
        self._world.one_shot(self._words("by another program"))

    def _kill_host(self) -> None:
        """`kill -9` of the host while it is given a text, which counts when it was kept; then it is started anew."""
        world, text = self._world, self._words("by ccc")
        kept = {message["message_id"] for message in world.row()["messages"]}
        command = [CCC_HOST, "--json", "send", world.session_id, text, "--no-wait"]
        sender = subprocess.Popen(command, cwd=world.project, env=world.environ, stdout=subprocess.DEVNULL)
        with suppress(subprocess.TimeoutExpired):
            sender.wait(self._random.uniform(0.05, 0.6))
        sender.kill()
        sender.wait()
        self._server.kill()
        self._server.wait()
        if {message["message_id"] for message in world.row()["messages"]} - kept or world.asked(text) or world.transcript().of(text):
            world.gave(text)
            self.waiting.append(text)
        self._server = self._serve()
        self._answered(self.waiting)

    @contextmanager
    def _serving(self) -> Iterator[None]:
        self._server = self._serve()
        try:
            yield
        finally:
            self._server.send_signal(signal.SIGTERM)
            self._server.wait(PATIENCE)

    def _serve(self) -> subprocess.Popen[bytes]:
        world = self._world
        with (world.home / "serve.jsonl").open("ab") as output, world.log.open("a") as log:
            return subprocess.Popen([CCC_HOST, "-v", "--json", "serve"], cwd=world.project, env=world.environ, stdout=output, stderr=log)

    # --- what is known

    def _words(self, whose: str) -> str:
        return f"d{self._number} {whose}"

    def _types(self) -> bool:
        """Whether a text for the session would be typed into its terminal."""
        return self._terminal is not None and self._at_least(TAKES_TEXTS)

    def _is_held(self) -> bool:
        """Whether a text for the session would be held while its terminal is open."""
        return self._terminal is not None and self._at_least(TAKES_HISTORY) and not self._types()

    def _at_least(self, numbers: tuple[int, ...]) -> bool:
        return tuple(map(int, self._release.split("."))) >= numbers
