"""A test's hold on simulated processes: what it sends them, reads from them and waits for."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ccc_hookspecs.host.pipe import input_of
from ccc_hookspecs.processes import start_time
from ccc_hookspecs.testing.home import PATIENCE, ClaudeHome, NotSeen, Record, parse_line, read_jsonl, recited, wait_until
from ccc_hookspecs.testing.simulator.releases import Release
from ccc_hookspecs.values import Headless, SentInput


@dataclass(slots=True)
class SimulatedProcess:
    """A started process of one release. `status` is the file in which the simulator says whether it is busy."""

    process: subprocess.Popen[bytes]
    home: ClaudeHome
    session_id: str
    status: Path
    release: Release
    inputs: int = 0

    @property
    def pid(self) -> int:
        """Its process id, also once it has ended."""
        return self.process.pid

    @property
    def alive(self) -> bool:
        """Whether it has not ended; one that has is reaped by asking."""
        return self.process.poll() is None

    def records(self) -> list[Record]:
        """The session's transcript, whoever wrote it."""
        return self.home.records(self.session_id)

    def wait_idle(self, timeout: float = PATIENCE) -> None:
        """Wait until it has taken every input so far and runs no turn. Raises NotSeen, also when it ended first."""
        wait_until(lambda: self._idle() or not self.alive, f"process {self.pid} idle", timeout)
        if not self._idle():
            raise NotSeen(f"process {self.pid} ended with exit code {self.process.poll()} before it was idle")

    def wait_busy(self, timeout: float = PATIENCE) -> None:
        """Wait until it has taken every input so far and runs a turn."""
        wait_until(self._busy, f"process {self.pid} busy", timeout)

    def wait_exit(self, timeout: float = PATIENCE) -> int:
        """Wait for its end; returns the exit code as `subprocess` gives it. Raises NotSeen."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise NotSeen(f"process {self.pid}: no exit within {timeout:g} s") from error

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to this very process, if it has not ended."""
        if self.alive:
            self.process.send_signal(number)

    def stop(self) -> int:
        """End it and whatever runs in its process group; returns the exit code. Harmless when repeated."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            return self.process.wait(1.0)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.process.wait()

    def kill(self) -> None:
        """End it at once with SIGKILL, and reap it."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()

    def _state(self) -> Record:
        return parse_line(self.status.read_bytes()) or {} if self.status.exists() else {}

    def _idle(self) -> bool:
        state = self._state()
        return state.get("busy") is False and state.get("taken") == self.inputs

    def _busy(self) -> bool:
        state = self._state()
        return state.get("busy") is True and state.get("taken") == self.inputs

    def close(self) -> None:
        """Give back what the test holds of it; the process is ended first."""
        self.stop()


@dataclass(slots=True)
class SimulatedHeadless(SimulatedProcess):
    """A headless with its FIFO and log, as a host spawns one: the child holds the FIFO open for reading and writing."""

    fifo: Path = field(default_factory=Path)
    log: Path = field(default_factory=Path)
    writer: int = -1
    sent: list[SentInput] = field(default_factory=list)
    spawned_at: float = 0.0
    resumed: bool = False
    transcript_size: int | None = None
    config_dir: Path | None = None

    @property
    def headless(self) -> Headless:
        """The value that a host hands to plugins; a fresh one each time, with what was sent so far."""
        return Headless(
            session_id=self.session_id,
            pid=self.pid,
            start_time=start_time(self.pid),
            fifo=self.fifo,
            stdout_log=self.log,
            cwd=self.home.project,
            sent=tuple(self.sent),
            spawned_at=self.spawned_at,
            resumed=self.resumed,
            transcript_size=self.transcript_size,
            config_dir=self.config_dir,
        )

    def send(self, text: str, *, message_id: str | None = None) -> str:
        """Write one message to the FIFO; returns its id."""
        message_id = message_id or str(uuid.uuid4())
        content = [{"type": "text", "text": text}]
        self.sent.append(SentInput(message_id=message_id, sent_at=time.time()))
        self.write({"type": "user", "uuid": message_id, "message": {"role": "user", "content": content}})
        return message_id

    def ask(self, text: str, *, timeout: float = PATIENCE) -> str:
        """Send a message and wait until the headless is idle; returns the last answer."""
        self.send(text)
        self.wait_idle(timeout)
        return self.answers()[-1]

    def control(self, subtype: str, **request: Any) -> str:
        """Write a control request, such as `interrupt`; returns its id."""
        request_id = str(uuid.uuid4())
        self.write({"type": "control_request", "request_id": request_id, "request": {"subtype": subtype, **request}})
        return request_id

    def reply(self, question: Record, *, allow: bool) -> None:
        """Answer a permission question, a `control_request` event of this process."""
        response = {"behavior": "allow", "updatedInput": question["request"]["input"]} if allow else {"behavior": "deny", "message": "no"}
        self.write(
            {
                "type": "control_response",
                "response": {"subtype": "success", "request_id": question["request_id"], "response": response},
            }
        )

    def feed(self, *records: Record) -> None:
        """Feed records of a transcript as history, each when the one before was taken. Raises NotSeen, also when it ends over one.

        They are not among `sent`: see `give`.
        """
        for record in records:
            self.write(as_history(record))
            self.wait_idle()

    def write(self, *messages: Record) -> None:
        """Write messages to the FIFO as they are, one line each and all at once."""
        self.write_lines(*map(json.dumps, messages))

    def write_lines(self, *lines: str) -> None:
        """Write lines to the FIFO, be they JSON or not."""
        self._put("".join(f"{line}\n" for line in lines).encode(), len(lines))

    def give(self, line: bytes) -> None:
        """Write one line, with its line break, as a host does for a plugin: the input that it is stands in `sent` from then on.

        Raises ValueError for a line that Claude Code would end at, OSError when nobody reads, and NotSeen when it is not read in time; the
        input is none then.
        """
        given, before = input_of(line), list(self.sent)
        if given is not None and given.message_id not in {one.message_id for one in before}:
            self.sent.append(given)
        try:
            self._put(line, 1)
        except (OSError, NotSeen):
            self.sent[:] = before
            raise

    def _put(self, raw: bytes, inputs: int) -> None:
        """Write all of it, as long as it is read."""
        poller, end = select.poll(), time.monotonic() + PATIENCE
        poller.register(self.writer, select.POLLOUT)
        rest = memoryview(raw)
        while rest:
            try:
                rest = rest[os.write(self.writer, rest) :]
            except BlockingIOError:
                if not poller.poll(max(0.0, end - time.monotonic()) * 1000):
                    raise NotSeen(f"process {self.pid}: {len(rest)} bytes of a line were not read within {PATIENCE:g} s") from None
        self.inputs += inputs

    def events(self, kind: str | None = None, subtype: str | None = None) -> list[Record]:
        """The events it printed so far, oldest first, all or those of this type and subtype."""
        events = read_jsonl(self.log)
        return [event for event in events if kind in (None, event.get("type")) and subtype in (None, event.get("subtype"))]

    def wait_event(self, kind: str, subtype: str | None = None, *, count: int = 1, timeout: float = PATIENCE) -> Record:
        """Wait for the `count`th event of this kind; returns it."""
        wait_until(lambda: len(self.events(kind, subtype)) >= count, f"{count} events {kind} {subtype or ''}", timeout)
        return self.events(kind, subtype)[count - 1]

    def answers(self) -> list[str]:
        """The texts of its answers, oldest first; not those of subagents."""
        messages = [event["message"] for event in self.events("assistant") if event.get("parent_tool_use_id") is None]
        return [block["text"] for message in messages for block in message["content"] if block["type"] == "text"]

    def memory(self) -> list[str]:
        """The texts that its last answer recited."""
        return recited(self.answers()[-1])

    def close(self) -> None:
        """End it, and close the FIFO's writing end. Harmless when repeated."""
        self.stop()
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1


def as_history(record: Record) -> Record:
    """The message by which a headless takes a `user` or `assistant` record of a transcript as history, from 2.1.119 on."""
    message = {"type": record["type"], "uuid": record["uuid"], "session_id": record.get("sessionId"), "parent_tool_use_id": None}
    if record["type"] == "user":
        message["shouldQuery"] = False
    return message | {"message": record["message"]}


@dataclass(slots=True)
class SimulatedTerminal(SimulatedProcess):
    """An interactive process on a terminal of its own."""

    master: int = -1
    _screen: bytes = b""

    def type(self, text: str) -> None:
        """Type a line and Enter."""
        self.inputs += 1
        os.write(self.master, text.encode() + b"\n")

    def ask(self, text: str, *, timeout: float = PATIENCE) -> str:
        """Type a line and wait until the turn is over; returns the answer."""
        before = len(self.answers())
        self.type(text)
        self.wait_idle(timeout)
        wait_until(lambda: len(self.answers()) > before, f"an answer to {text!r}", timeout)
        return self.answers()[-1]

    def exit(self) -> int:
        """Leave by `/exit`; returns the exit code."""
        self.type("/exit")
        return self.wait_exit()

    def screen(self) -> str:
        """Everything it showed so far."""
        with contextlib.suppress(OSError):
            while block := os.read(self.master, 65536):
                self._screen += block
        return self._screen.decode("utf-8", "replace").replace("\r\n", "\n")

    def answers(self) -> list[str]:
        """The recitals it showed, oldest first."""
        return [line[line.index("SEEN ") :] for line in self.screen().splitlines() if "SEEN [" in line]

    def close(self) -> None:
        """End it, and close its terminal. Harmless when repeated."""
        self.stop()
        if self.master >= 0:
            os.close(self.master)
            self.master = -1
