"""Sessions on disk, written the way a chosen release of Claude Code writes them, for tests of evidence and judgement.

Time is made up: every record is one second later than the one before.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ccc_hookspecs.values import Headless, SentInput
from ccc_plugins.retire_stale.evidence.observer import Judgement, Observer, Surroundings
from ccc_plugins.retire_stale.judgement.branches import release_numbers

RELEASES = ("2.0.42", "2.1.6", "2.1.61", "2.1.119", "2.1.168", "2.1.216", "2.1.275", "2.1.332")
START = 1_796_000_000.0
QUIET = Surroundings(now=START + 10_000, unread=0, tools=(), children=0, registered=True, others=False)
"""Nothing outside the files says that the headless works."""

Json = dict[str, Any]


def new_id() -> str:
    return str(uuid.uuid4())


def stamp(at: float) -> str:
    """Epoch seconds as Claude Code stamps records."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Session:
    """A transcript, and everybody who writes to it. `spaced`: JSON with spaces after its separators, as nothing writes it but may."""

    def __init__(self, folder: Path, release: str = "2.1.332", *, spaced: bool = False) -> None:
        self.id = new_id()
        self.folder = folder
        self.release = release
        self.spaced = spaced
        self.transcript = folder / f"{self.id}.jsonl"
        self.now = START
        self.last: str | None = None

    def since(self, release: str) -> bool:
        """Whether this session's release is that one or a later one."""
        return (release_numbers(self.release) or ()) >= (release_numbers(release) or ())

    def tick(self, seconds: float = 1.0) -> float:
        self.now += seconds
        return self.now

    def dump(self, record: Json) -> bytes:
        separators = (", ", ": ") if self.spaced else (",", ":")
        return json.dumps(record, separators=separators, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"

    def raw(self, data: bytes) -> None:
        with self.transcript.open("ab") as file:
            file.write(data)

    def write(self, record: Json) -> Json:
        """Append a record as it is."""
        self.raw(self.dump(record))
        self.last = record.get("uuid") or self.last
        return record

    def trailer(self, kind: str, **fields: Any) -> Json:
        """A record without a `uuid`."""
        return self.write({"type": kind, **fields, "sessionId": self.id})

    def operation(self, operation: str, **fields: Any) -> Json:
        """A queue operation, now."""
        return self.write(
            {"type": "queue-operation", "operation": operation, "timestamp": stamp(self.tick()), "sessionId": self.id, **fields}
        )

    def envelope(self, entrypoint: str) -> Json:
        named = {"entrypoint": entrypoint} if self.since("2.1.119") else {}
        return {"userType": "external", **named, "cwd": "/home/user/project", "sessionId": self.id, "version": self.release}

    def user(self, parent: str | None, content: object, entrypoint: str = "cli", **fields: Any) -> Json:
        record = {"parentUuid": parent, "isSidechain": False, "type": "user", "message": {"role": "user", "content": content}}
        return self.write({**record, **self._identity(entrypoint), **fields})

    def assistant(self, parent: str | None, *blocks: Json, entrypoint: str = "cli", message_id: str | None = None, **fields: Any) -> Json:
        message = {"id": message_id or f"msg_{uuid.uuid4().hex[:20]}", "type": "message", "role": "assistant", "model": "claude-x"}
        record = {"parentUuid": parent, "isSidechain": False, "message": {**message, "content": list(blocks)}, "type": "assistant"}
        return self.write({**record, **self._identity(entrypoint), **fields})

    def attachment(self, parent: str | None, kind: str, entrypoint: str = "sdk-cli", **fields: Any) -> Json:
        record = {"parentUuid": parent, "isSidechain": False, "attachment": {"type": kind, **fields}, "type": "attachment"}
        return self.write({**record, **self._identity(entrypoint)})

    def system(self, parent: str | None, subtype: str, entrypoint: str = "sdk-cli", **fields: Any) -> Json:
        record = {"parentUuid": parent, "isSidechain": False, "type": "system", "subtype": subtype, **fields}
        return self.write({**record, **self._identity(entrypoint)})

    def turn(self, text: str = "from terminal", *, parent: str | None = None, entrypoint: str = "cli") -> tuple[Json, Json]:
        """A whole turn of a terminal below `parent`, or below what was written last."""
        asked = self.user(parent or self.last, text, entrypoint)
        return asked, self.assistant(asked["uuid"], said(f"SEEN {text}"), entrypoint=entrypoint)

    def _identity(self, entrypoint: str) -> Json:
        return {"uuid": new_id(), "timestamp": stamp(self.tick()), **self.envelope(entrypoint)}


def said(text: str) -> Json:
    return {"type": "text", "text": text}


def call(name: str, given: Json | None = None) -> Json:
    return {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:16]}", "name": name, "input": given or {}}


class Head:
    """A headless on a session: what it is sent, takes, writes and prints."""

    def __init__(self, session: Session, *, resumed: bool = False) -> None:
        self.session = session
        self.log = session.folder / f"head-{new_id()[:8]}.log"
        self.log.touch()
        self.tip = session.last if resumed else None
        self.spawned_at: float | None = session.tick()
        self.sent: list[SentInput] = []
        self.about: list[str] = []

    def print(self, event: Json) -> Json:
        """Print an event on stdout."""
        with self.log.open("ab") as file:
            file.write(self.session.dump(event))
        return event

    def event(self, kind: str, subtype: str | None = None, **fields: Any) -> Json:
        named = {} if subtype is None else {"subtype": subtype}
        return self.print({"type": kind, **named, **fields, "session_id": self.session.id, "uuid": new_id()})

    def send(self, at: float | None = None) -> SentInput:
        """An input is written to the FIFO; nothing shows it yet."""
        self.sent.append(SentInput(message_id=new_id(), sent_at=at or self.session.tick()))
        return self.sent[-1]

    def lifecycle(self, sent: SentInput, state: str) -> None:
        """Say where an input is, on releases that say it."""
        if self.session.since("2.1.216"):
            self.event("command_lifecycle", command_uuid=sent.message_id, state=state)

    def take(self, text: str = "from headless", sent: SentInput | None = None) -> Json:
        """Take an input from the queue, and write the record that it becomes."""
        sent = sent or self.send()
        self.lifecycle(sent, "queued")
        if self.session.release != "2.1.6":
            self.session.operation("enqueue")
        self.session.operation("dequeue")
        self.lifecycle(sent, "started")
        return self.own(self.session.user(self.tip, [said(text)], "sdk-cli", uuid=sent.message_id))

    def own(self, record: Json) -> Json:
        """This record is the last that the headless knows."""
        self.tip = record["uuid"]
        return record

    def begin(self) -> None:
        self.event("system", "init", cwd="/home/user/project")

    def answer(self, *blocks: Json, printed: bool = True) -> Json:
        """Write an answer and print it."""
        record = self.own(self.session.assistant(self.tip, *(blocks or (said("SEEN"),)), entrypoint="sdk-cli"))
        if printed:
            self.show(record)
        return record

    def show(self, record: Json) -> None:
        """Print what stands in the transcript."""
        event = {"type": record["type"], "message": record["message"], "parent_tool_use_id": None, "session_id": self.session.id}
        self.print({**event, "uuid": record["uuid"], **({"timestamp": record["timestamp"]} if self.session.since("2.1.119") else {})})

    def result_of(self, called: Json, text: str = "done", *, failed: bool = False, **said_beside: Any) -> Json:
        """Write and print the result of a tool call."""
        block = {"tool_use_id": called["id"], "type": "tool_result", "content": text, "is_error": failed}
        record = self.own(self.session.user(self.tip, [block], "sdk-cli"))
        event = {"type": "user", "message": record["message"], "parent_tool_use_id": None, "session_id": self.session.id}
        beside = {"tool_use_result": said_beside} if said_beside else {}
        self.print({**event, "uuid": record["uuid"], "timestamp": record["timestamp"], **beside})
        return record

    def finish(self, *sent: SentInput) -> None:
        """Print a result, and that these inputs are finished."""
        self.event("result", "success", is_error=False)
        for one in sent or tuple(self.sent):
            self.lifecycle(one, "completed")

    def ask(self, text: str = "from headless") -> tuple[Json, Json]:
        """A whole turn."""
        sent = self.send()
        asked = self.take(text, sent)
        self.begin()
        answered = self.answer()
        self.finish(sent)
        return asked, answered

    def tool(self, name: str, given: Json | None = None, text: str = "done", *, failed: bool = False, **said_beside: Any) -> Json:
        """A whole turn with one tool call; the call."""
        sent, called = self.send(), call(name, given)
        self.take(f"use {name}", sent)
        self.begin()
        self.answer(called)
        self.result_of(called, text, failed=failed, **said_beside)
        self.answer()
        self.finish(sent)
        return called

    def headless(self, **changes: Any) -> Headless:
        known = Headless(
            session_id=self.session.id,
            pid=4242,
            start_time=1.0,
            stdout_log=self.log,
            sent=tuple(self.sent),
            spawned_at=self.spawned_at,
        )
        return replace(known, **changes)

    def observer(self, **changes: Any) -> Observer:
        headless = self.headless(**changes)
        return Observer(headless, headless.spawned_at)

    def judge(
        self, observer: Observer | None = None, *, path: Path | None = None, around: Surroundings = QUIET, **changes: Any
    ) -> Judgement:
        """What a first look says, or a further one by this observer. `changes`: of what the host knows of the headless."""
        headless = self.headless(**changes)
        observer = observer or Observer(headless, headless.spawned_at)
        path = path or self.session.transcript
        observer.read(headless, path if path.exists() else None)
        return observer.judge(around)


def verdicts(judgement: Judgement) -> tuple[str, str]:
    """Attribution and idleness."""
    return judgement.attribution.verdict, judgement.idleness.verdict
