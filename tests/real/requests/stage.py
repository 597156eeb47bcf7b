"""Where requests are compared: a session of a host in this process, other writers on it, and copies of it for a fresh process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ccc_hookspecs.claude.paths import find_transcript
from ccc_hookspecs.host.host import EmbeddedHost
from ccc_hookspecs.host.spawn import command
from ccc_hookspecs.manager import PluginManager
from tests.real.files import json_lines
from tests.real.requests.recorder import Recorder, Sent
from tests.real.waiting import PATIENCE, wait_until
from tests.real.world import World

COMMAND = "hello"
"""A slash command of the person's own, which is there from the start."""

OPTIONS = ("--dangerously-skip-permissions",)


class Stage:
    """`root`: a directory for it alone, that is not there yet. `HOME` of this process is within it from then on, for the host's sake.

    `heal`: the plugin's setting. `plugin` False: no plugin is asked. `host`: the kind of host.
    """

    def __init__(
        self,
        root: Path,
        claude: Path,
        recorder: Recorder,
        *,
        heal: str = "held",
        plugin: bool = True,
        host: type[EmbeddedHost] = EmbeddedHost,
    ) -> None:
        self.world = World(root, claude)
        self.world.custom_command(COMMAND, "Say hello custom")
        self.release = claude.parents[2].name
        self.recorder = recorder
        os.environ.update(HOME=str(root), CCC_PLUGIN__RETIRE_STALE__HEAL=heal)
        manager = PluginManager()
        if plugin:
            manager.load()
        self.host = host(root / "state", manager=manager, claude=str(claude))
        self.session = self.host.begin(self.world.project, OPTIONS)
        self.session_id = self.world.session_id = self.session.session_id

    # --- the host

    def say(self, text: str) -> None:
        """A text by the host, until its answer is on the disk."""
        self.host.send(self.session_id, text)
        wait_until(self.delivered, f"the delivery of {text!r}")
        wait_until(lambda: self.world.transcript().answered(text), f"the answer to {text!r} in the transcript")

    def ask(self, text: str) -> Sent:
        """The request that a text by the host leads to. What comes behind it is not waited for."""
        start = len(self.recorder.sent)
        self.host.send(self.session_id, text)
        wait_until(lambda: self.delivered() or self.recorder.for_text(text, start) is not None, f"a process that is given {text!r}")
        return self.request(text, start)

    def delivered(self) -> bool:
        """Whether the host keeps no message any more; goes on with those that it keeps."""
        self.host.drive(self.session_id)
        return not self.host.store.outbox.open_of(self.session_id)

    def request(self, text: str, start: int = 0) -> Sent:
        """The first request for this text, from number `start` on; waits for it."""
        wait_until(lambda: self.recorder.for_text(text, start) is not None, f"a request for {text!r}")
        sent = self.recorder.for_text(text, start)
        assert sent is not None
        return sent

    # --- other writers

    def one_shot(self, content: object, *options: str) -> None:
        """Another program resumes the session, says this and goes."""
        with self.writer(*options) as writer:
            writer.say(content)

    def turn(self, writer: Writer, content: object) -> None:
        """A turn of another program, until its end."""
        before = writer.results()
        writer.say(content)
        wait_until(lambda: writer.results() > before, f"the end of the turn of {content!r}")

    @contextmanager
    def writer(self, *options: str) -> Iterator[Writer]:
        """Another program that resumes the session; it goes when all that it was told is answered."""
        with Writer([*command(self.session, resume=True), *options], self.world.project, self.world.environ) as writer:
            yield writer

    def enqueued(self) -> int:
        """How many inputs were put into a queue so far, by what the transcript tells."""
        return sum(record.get("operation") == "enqueue" for record in self.world.transcript().records)

    # --- fresh processes

    def copy(self, name: str) -> Path:
        """A home with a copy of the session as it is on the disk now."""
        transcript = find_transcript(self.world.home / ".claude", self.session_id, self.world.project)
        assert transcript is not None
        home = self.world.home / name
        target = home / transcript.relative_to(self.world.home)
        target.parent.mkdir(parents=True)
        shutil.copyfile(transcript, target)
        shutil.copyfile(self.world.home / ".claude.json", home / ".claude.json")
        return home

    def fresh(self, home: Path, text: str) -> Sent:
        """The request of a fresh process on the copy in a home, which is given this text and ended then."""
        start = len(self.recorder.sent)
        writer = Writer(command(self.session, resume=True), self.world.project, {**self.world.environ, "HOME": str(home)})
        try:
            writer.say(text)
            return self.request(text, start)
        finally:
            writer.kill()

    def close(self) -> None:
        """End what was started."""
        self.world.close()


class Writer:
    """A process on a session that is fed as a host's is. On leaving its input ends, and then so does the process."""

    def __init__(self, arguments: list[str], cwd: Path, environ: Mapping[str, str]) -> None:
        self._log = Path(environ["HOME"]) / f"writer-{uuid.uuid4().hex[:8]}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(arguments, cwd=cwd, env=environ, stdin=subprocess.PIPE, stdout=log, stderr=log)

    def say(self, content: object) -> None:
        """Give it a text, or blocks."""
        given = [{"type": "text", "text": content}] if isinstance(content, str) else content
        line = {"type": "user", "uuid": str(uuid.uuid4()), "message": {"role": "user", "content": given}}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line).encode() + b"\n")
        self._process.stdin.flush()

    def results(self) -> int:
        """How many turns it has ended so far, by what it prints."""
        return sum(event.get("type") == "result" for event in json_lines(self._log))

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(PATIENCE)
        assert code == 0 or any(exception), f"a writer ended with {code}: {self._log.read_text(errors='replace')[-2000:]}"
