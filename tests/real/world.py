"""What a story plays in: a home of its own, a session, the host by its command line, and terminals beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.real.files import Transcript, json_lines, own_words
from tests.real.inside import API_LOG, FIRST_PROCESS
from tests.real.isolation import KEY
from tests.real.terminal import Terminal
from tests.real.waiting import PATIENCE, NotSeen, wait_until

MECHANISMS = ("use_time", "terminal_launch", "watcher")
LONG_SECONDS = 120
CCC_HOST = str(Path(sys.executable).with_name("ccc-host"))


@dataclass(frozen=True, slots=True)
class Text:
    """A text that the session was given. `by_ccc`: through the host."""

    text: str
    by_ccc: bool = False


class World:
    """A story's own corner of the namespace. `plugin` False: with every mechanism blocked."""

    def __init__(self, root: Path, claude: Path, *, plugin: bool = True) -> None:
        self.claude, self.home, self.project = str(claude), root, root / "project"
        self.log = root / "ccc-host.log"
        self.session_id = ""
        self.given: list[Text] = []
        self.taken_back: list[str] = []
        self.forks = 0
        self.facts: dict[str, Any] = {}
        self._api_log = Path.home() / API_LOG
        self._api_start = self._api_log.stat().st_size
        self._terminals: list[Terminal] = []
        self._make_home()
        self.environ = {**os.environ, "HOME": str(root), "TMUX_TMPDIR": str(root), "CCC_HOST_CLAUDE": self.claude}
        self.environ["CCC_PLUGINS_BLOCK"] = "" if plugin else ",".join(f"retire_stale.{name}" for name in MECHANISMS)

    def _make_home(self) -> None:
        """Onboarding, trust and key as they are after a person went through them."""
        self.project.mkdir(parents=True)
        known = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "bypassPermissionsModeAccepted": True,
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {str(self.project): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
        }
        (self.home / ".claude.json").write_text(json.dumps(known))

    def custom_command(self, name: str, text: str) -> None:
        """Make a slash command of the person's own."""
        file = self.home / ".claude" / "commands" / f"{name}.md"
        file.parent.mkdir(parents=True)
        file.write_text(f"---\ndescription: custom\n---\n{text}\n")

    def only(self, *mechanisms: str) -> None:
        """From now on the other mechanisms are off, by their flags."""
        for name in MECHANISMS:
            self.environ[f"CCC_PLUGIN_ENABLE__RETIRE_STALE__{name.upper()}"] = str(name in mechanisms).lower()

    def check_plugins(self) -> None:
        """A plugin that cannot be loaded is left out by the host, which would make every story one without it."""
        broken = [row for row in self.ccc("plugins")[0] if row["state"] not in ("active", "blocked")]
        assert not broken, broken

    # --- the host

    def ccc(self, *arguments: str, seconds: float = PATIENCE) -> list[Any]:
        """Run `ccc-host` to its end; returns the JSON values that it printed. Any exit code will do, but what it says otherwise not."""
        command = [CCC_HOST, "-v", "--json", *arguments]
        with self.log.open("a") as log:
            print("$", *command, file=log, flush=True)
            done = subprocess.run(
                command, cwd=self.project, env=self.environ, stdout=subprocess.PIPE, stderr=log, text=True, timeout=seconds, check=False
            )
        values = [json.loads(line) for line in done.stdout.splitlines()]
        assert values, f"ccc-host {' '.join(arguments)}: exit code {done.returncode}, see {self.log}"
        return values

    def start(self, text: str, *options: str) -> dict[str, Any]:
        """Begin the session."""
        return self._told(text, "start", text, *options, "--", "--dangerously-skip-permissions")

    def send(self, text: str, *options: str) -> dict[str, Any]:
        """Send a message and see it through, unless an option says otherwise."""
        return self._told(text, "send", self.session_id, text, *options)

    def _told(self, text: str, *arguments: str) -> dict[str, Any]:
        said: dict[str, Any] = self.ccc(*arguments)[-1]
        self.session_id = said["session_id"]
        self.gave(text)
        return said

    def gave(self, text: str) -> None:
        """The host was given a text for the session."""
        self.given.append(Text(text, by_ccc=True))

    def take_back(self, text: str) -> None:
        """A person went back before this turn: it is not in what follows."""
        self.given = [given for given in self.given if given.text != text]
        self.taken_back.append(text)

    def keep_busy(self, name: str) -> str:
        """Send a message whose turn lasts until `release`, and wait until it is under way; returns its text."""
        text = f"SLOW {LONG_SECONDS} {name}"
        self.send(text, "--no-wait")
        self.wait_asked(text)
        return text

    def release(self) -> None:
        """Let every turn that lasts come to its end."""
        urllib.request.urlopen(f"{self.environ['ANTHROPIC_BASE_URL']}/release", b"", timeout=PATIENCE).close()

    def command(self, command: str) -> dict[str, Any]:
        """Send a slash command, which is no turn of the conversation, and see it through."""
        said: dict[str, Any] = self.ccc("send", self.session_id, command)[-1]
        assert said["ending"] == "answered", said
        return said

    def killed_send(self, text: str, after: float) -> str | None:
        """Send a message with a host that is killed after so many seconds; where the message stood then, None when it was not kept yet.

        Whether it was delivered is the API's to say: the transcript comes later.
        """
        process = subprocess.Popen(
            [CCC_HOST, "--json", "send", self.session_id, text], cwd=self.project, env=self.environ, stdout=subprocess.DEVNULL
        )
        time.sleep(after)
        process.kill()
        process.wait()
        waiting = self.row()["messages"]
        state = waiting[0]["state"] if waiting else "delivered" if self.asked(text) else None
        if state is not None:
            self.given.append(Text(text, by_ccc=True))
        return state

    def row(self) -> dict[str, Any]:
        """The session as the host lists it."""
        found: dict[str, Any] = next(row for row in self.ccc("list")[0] if row["session_id"] == self.session_id)
        return found

    def head(self) -> int | None:
        """The pid of the session's headless, as the host knows it."""
        found = self.row()["headless"]
        return None if found is None else int(found["pid"])

    def fifo(self) -> Path:
        """The FIFO of the session's headless, which holds it open as its standard input."""
        return Path(os.readlink(f"/proc/{self.head()}/fd/0"))

    def settled(self) -> bool:
        """Whether the host keeps no message any more."""
        return not self.row()["messages"]

    @contextmanager
    def serving(self) -> Iterator[Path]:
        """`ccc-host serve` meanwhile; yields the file of its events."""
        events = self.home / f"serve-{time.monotonic_ns()}.jsonl"
        with events.open("wb") as output, self.log.open("a") as log:
            process = subprocess.Popen([CCC_HOST, "-v", "--json", "serve"], cwd=self.project, env=self.environ, stdout=output, stderr=log)
        try:
            yield events
        finally:
            process.terminate()
            process.wait(PATIENCE)

    # --- others on the session

    def terminal(self, *, launched: bool = False) -> Terminal:
        """A terminal on the session, ready for keys; `launched`: by the host, which so gets to tell the plugins."""
        command = [CCC_HOST, "terminal", self.session_id] if launched else [self.claude, "--resume", self.session_id]
        opened = Terminal(command, self.project, self.environ)
        self._terminals.append(opened)
        opened.wait_ready()
        return opened

    def ask(self, terminal: Terminal, text: str) -> None:
        """A turn in a terminal, until its answer is on the disk."""
        self.type(terminal, text)
        wait_until(lambda: self.transcript().answered(text), f"the terminal's answer to {text!r} in the transcript")

    def type(self, terminal: Terminal, text: str) -> None:
        """The beginning of a turn in a terminal, until the API was asked."""
        self.given.append(Text(text))
        terminal.type(text)
        self.wait_asked(text)

    def takes_a_turn(self, text: str) -> None:
        """A terminal comes, takes one turn and goes."""
        terminal = self.terminal()
        self.ask(terminal, text)
        terminal.leave()

    def one_shot(self, text: str) -> None:
        """Another program runs `claude -p --resume`."""
        self.given.append(Text(text))
        subprocess.run(
            [self.claude, "-p", "--resume", self.session_id, text],
            cwd=self.project,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=True,
        )

    # --- what can be seen

    def release_name(self) -> str:
        """The release of Claude Code, by where `.ci/claude` installs it."""
        return Path(self.claude).parents[2].name

    def transcript(self) -> Transcript:
        return Transcript(self.home / ".claude", self.session_id)

    def check_order(self, *texts: str) -> None:
        """These texts stand in the transcript one behind another. A text gets there after its answer was printed."""
        wait_until(lambda: all(self.transcript().of(text) for text in texts), f"{texts} in the transcript")
        lines = [self.transcript().of(text)[0].line for text in texts]
        assert lines == sorted(lines), "the messages are out of order"

    def requests(self) -> list[dict[str, Any]]:
        """The turns that the API was asked for since the story began."""
        return [one for one in json_lines(self._api_log, self._api_start) if one["stream"] and one["tools"]]

    def asked(self, text: str) -> list[dict[str, Any]]:
        """Those that end with this text."""
        return [one for one in self.requests() if own_words(one["asked"]) == text]

    def request_of(self, text: str) -> dict[str, Any] | None:
        """The first request that ends with this text; of one that was taken up in the middle of a turn, the first that holds it."""
        asked = self.asked(text) or [one for one in self.requests() if any(text in part for part in one["texts"])]
        return asked[0] if asked else None

    def wait_asked(self, text: str) -> None:
        wait_until(lambda: bool(self.asked(text)), f"a request for {text!r}")

    def wait_settled(self) -> None:
        wait_until(self.settled, "the delivery of every message")

    # --- the end

    def close(self) -> None:
        """End what the story started."""
        for terminal in self._terminals:
            with suppress(NotSeen):
                terminal.close()
        first = psutil.Process(int(os.environ[FIRST_PROCESS]))
        for process in first.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if process.environ().get("HOME") == str(self.home):
                    process.kill()
