"""A state directory, a home with a simulated Claude Code, and what the host's tests do with them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from ccc_hookspecs import Decision, Injection, TerminalLaunch, Tick, hookimpl
from ccc_hookspecs.host.host import EmbeddedHost
from ccc_hookspecs.host.liveness import presence
from ccc_hookspecs.host.records import Message, Session
from ccc_hookspecs.host.spawn import MARK
from ccc_hookspecs.host.stream import Answer
from ccc_hookspecs.manager import PluginManager
from ccc_hookspecs.specs import Host
from ccc_hookspecs.testing.harness import ClaudeHome, Simulator, wait_until
from ccc_hookspecs.values import Headless

CCC_HOST = [sys.executable, "-m", "ccc_hookspecs.host.cli"]


class Answering:
    """A plugin that answers with what it was given, one answer a question, and then with None. Keeps the questions."""

    def __init__(self, *answers: Decision | Callable[[Host, Injection], Decision | None] | None) -> None:
        self.answers = list(answers)
        self.asked: list[Injection] = []
        self.launches: list[TerminalLaunch] = []
        self.ticks: list[Tick] = []

    @hookimpl
    def pre_inject(self, ccc: Host, injection: Injection) -> Decision | None:
        self.asked.append(injection)
        answer = self.answers.pop(0) if self.answers else None
        return answer(ccc, injection) if callable(answer) else answer

    @hookimpl
    def on_terminal_launch(self, ccc: Host, launch: TerminalLaunch) -> None:
        self.launches.append(launch)

    @hookimpl
    def on_tick(self, ccc: Host, tick: Tick) -> None:
        self.ticks.append(tick)


def end_process(pid: int) -> None:
    """SIGTERM a process that this test's host started, and wait until it is gone."""
    started = psutil.Process(pid)
    started.terminate()
    wait_until(lambda: not started.is_running() or started.status() == psutil.STATUS_ZOMBIE, f"process {pid} gone")


@dataclass
class World:
    """`hosts` are the hosts of this process; `state` is shared with every command that `run` starts."""

    simulator: Simulator
    state: Path
    hosts: list[EmbeddedHost] = field(default_factory=list)
    commands: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def home(self) -> ClaudeHome:
        return self.simulator.home

    @property
    def claude(self) -> str:
        return str(self.simulator.program())

    def host(self, *plugins: object, kind: type[EmbeddedHost] = EmbeddedHost) -> EmbeddedHost:
        """A host with these plugins, asked in this order."""
        manager = PluginManager()
        for number, plugin in enumerate(reversed(plugins)):
            manager.register(plugin, f"test.plugin{number}")
        host = kind(self.state, manager=manager, claude=self.claude)
        self.hosts.append(host)
        return host

    def session(self, host: EmbeddedHost, *texts: str, arguments: Sequence[str] = ()) -> Session:
        """A session in which these texts were delivered and answered."""
        session = host.begin(self.home.project, arguments)
        for text in texts:
            self.answered(host, host.send(session.session_id, text))
        return session

    def resumable(self) -> Session:
        """A session with one turn and no headless."""
        host = self.host()
        session = self.session(host, "first")
        end_process(self.headless(host, session).pid)
        host.recover()
        return session

    def until(self, host: EmbeddedHost, message: Message, state: str = "delivered") -> Message:
        """Drive a message on until it is in this state; returns it."""

        def there() -> bool:
            host.drive(message.session_id)
            return self.now(host, message).state == state

        wait_until(there, f"message {state}")
        return self.now(host, message)

    def now(self, host: EmbeddedHost, message: Message) -> Message:
        """The message as it is kept now."""
        found = host.store.outbox.get(message.message_id)
        assert found is not None
        return found

    def answered(self, host: EmbeddedHost, message: Message) -> Message:
        """Drive a message on until its headless has finished with it."""
        message = self.until(host, message)
        assert message.head_id is not None
        head = host.store.heads.get(message.head_id)
        assert head is not None
        answer = Answer(message.message_id, head.log, message.log_offset)

        def done() -> bool:
            answer.poll(delivered=True)
            return answer.done

        wait_until(done, "the turn's end")
        return message

    def log(self, host: EmbeddedHost, session: Session) -> list[dict[str, Any]]:
        """The events that the session's present headless printed."""
        head = host.agents.known(session.session_id)
        assert head is not None
        return [json.loads(line) for line in head.log.read_text("utf-8").splitlines() if line.startswith("{")]

    def memory(self, host: EmbeddedHost, session: Session) -> list[str]:
        """What the last answer of the session's headless recited."""
        texts = [
            block["text"]
            for event in self.log(host, session)
            if event["type"] == "assistant"
            for block in event["message"]["content"]
            if block["type"] == "text"
        ]
        recited: list[str] = json.loads(texts[-1].partition("SEEN ")[2])
        return recited

    def headless(self, host: EmbeddedHost, session: Session) -> Headless:
        """The session's live headless."""
        found = host.headless_for(session.session_id)
        assert found is not None
        return found

    def prompts(self, session: Session) -> list[str]:
        """The ids of everything a person said, in the order of the transcript; what came in mid-turn among it."""
        found = []
        for record in self.home.records(session.session_id):
            attachment = record.get("attachment") or {}
            content = (record.get("message") or {}).get("content")
            said = isinstance(content, list) and content and content[0].get("type") == "text"
            if record["type"] == "user" and said and not record.get("isMeta"):
                found.append(record["uuid"])
            elif attachment.get("type") == "queued_command":
                found.append(attachment["source_uuid"])
        return found

    # --- the command line

    def environ(self, **extra: str) -> dict[str, str]:
        return self.home.environ({"CCC_HOST_STATE": str(self.state), "CCC_HOST_CLAUDE": self.claude, **extra})

    def popen(self, *arguments: str, **extra: str) -> subprocess.Popen[str]:
        """`ccc-host` with these arguments, running."""
        process = subprocess.Popen(
            [*CCC_HOST, *arguments],
            cwd=self.home.project,
            env=self.environ(**extra),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.commands.append(process)
        return process

    def run(self, *arguments: str, given: str | None = None, **extra: str) -> subprocess.CompletedProcess[str]:
        """`ccc-host` with these arguments, to its end."""
        return subprocess.run(
            [*CCC_HOST, *arguments],
            cwd=self.home.project,
            env=self.environ(**extra),
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def started(self) -> Session:
        """A session with one turn, begun from the command line."""
        done = self.run("start", "first")
        assert done.returncode == 0, done.stderr
        (session,) = self.host().store.sessions.all()
        return session

    def json(self, *arguments: str, **extra: str) -> Any:
        """What `ccc-host --json` with these arguments prints."""
        done = self.run("--json", *arguments, **extra)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    # --- the end

    def close(self) -> None:
        """End every process that was started in this world, and forget it."""
        for command in self.commands:
            if command.poll() is None:
                command.kill()
            command.communicate()
        for pid in self._heads():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        for host in self.hosts:
            end = time.monotonic() + 10
            while any(presence(*head) == "alive" for head in self._rows(host)):
                assert time.monotonic() < end, "a headless outlived its test"
                time.sleep(0.01)
            host.agents.spawner.reap()

    def _rows(self, host: EmbeddedHost) -> list[tuple[int, float | None]]:
        with host.store.database.reading() as db:
            rows = db.execute("SELECT pid, start_time FROM headless WHERE pid IS NOT NULL")
            return [(row["pid"], row["start_time"]) for row in rows]

    def _heads(self) -> list[int]:
        """The processes that carry a mark of this world's state directory."""
        marks = {path.stem for path in (self.state / "heads").glob("*")}
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.environ().get(MARK) in marks and os.getsid(process.pid) == process.pid:
                    found.append(process.pid)
        return found


def in_threads(*acts: Callable[[], object]) -> None:
    """Run these at once, to their ends; an exception of one fails the test by the thread's own report."""
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
