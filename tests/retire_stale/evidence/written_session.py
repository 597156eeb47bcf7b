"""A session's files as Claude Code writes them, record by record, for tests that stage what two writers leave behind."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from ccc_hookspecs.values import Headless, SentInput
from ccc_plugins.retire_stale.evidence.observer import Judgement, Observer, Surroundings

NOW = 1_800_000_000.0


def new_id() -> str:
    return str(uuid.uuid4())


class WrittenSession:
    """A transcript and a stdout log in one directory. `leaf` is what the headless hangs its next record on."""

    def __init__(self, folder: Path, **headless: Any) -> None:
        self.id = new_id()
        self.transcript = folder / f"{self.id}.jsonl"
        self.log = folder / "stdout.log"
        self.log.touch()
        self.sent: list[SentInput] = []
        self.leaf: str | None = None
        self._headless = headless
        self._clock = NOW
        self._observer: Observer | None = None

    def write(self, kind: str, *, stamp: float | None = None, **fields: Any) -> str:
        """Append a record with a new `uuid`; returns that."""
        self._clock += 1
        uid = fields.pop("uuid", None) or new_id()
        made = {
            "type": kind,
            "uuid": uid,
            "sessionId": self.id,
            "timestamp": iso(self._clock if stamp is None else stamp),
            "version": "2.1.332",
        }
        self.raw({**made, "isSidechain": False, **fields})
        return uid

    def raw(self, record: dict[str, Any]) -> None:
        """Append a record as it is."""
        with self.transcript.open("ab") as file:
            file.write(json.dumps(record).encode() + b"\n")

    def say(self, kind: str, **fields: Any) -> None:
        """Append an event to the log."""
        with self.log.open("ab") as file:
            file.write(json.dumps({"type": kind, "session_id": self.id, "uuid": new_id(), **fields}).encode() + b"\n")

    def prompt(self, text: str = "ask") -> str:
        """The headless takes an input and begins a turn."""
        uid = new_id()
        self.sent.append(SentInput(message_id=uid, sent_at=self._clock))
        for state in ("queued", "started"):
            self.say("command_lifecycle", command_uuid=uid, state=state)
        self.say("system", subtype="init")
        self.leaf = self.write("user", uuid=uid, parentUuid=self.leaf, message={"role": "user", "content": text}, entrypoint="sdk-cli")
        return uid

    def answer(self, text: str = "reply", *, printed: str | None = None, written: bool = True) -> str:
        """The headless answers; `printed`: another `uuid` in the log than in the transcript; `written`: also in the transcript."""
        uid, message = new_id(), {"id": f"msg_{new_id()}", "role": "assistant", "content": [{"type": "text", "text": text}]}
        self.say("assistant", message=message, parent_tool_use_id=None, uuid=printed or uid)
        if written:
            self.leaf = self.write("assistant", uuid=uid, parentUuid=self.leaf, message=message, entrypoint="sdk-cli")
        return uid

    def end(self, subtype: str = "success", **fields: Any) -> None:
        """The turn is over."""
        self.say("result", subtype=subtype, is_error=subtype != "success", **fields)
        if self.sent:
            self.say("command_lifecycle", command_uuid=self.sent[-1].message_id, state="completed")

    def turn(self) -> str:
        """A whole turn of the headless; returns its answer's `uuid`."""
        self.prompt()
        answer = self.answer()
        self.end()
        return answer

    def foreign(self, parent: str | None = None, **fields: Any) -> tuple[str, str]:
        """A turn of a terminal on `parent`, or on the headless's leaf; returns its prompt's and its answer's `uuid`."""
        base = {"entrypoint": "cli", **fields}
        asked = self.write("user", parentUuid=parent or self.leaf, message={"role": "user", "content": "typed"}, **base)
        message = {"id": f"msg_{new_id()}", "role": "assistant", "content": [{"type": "text", "text": "told"}]}
        return asked, self.write("assistant", parentUuid=asked, message=message, **base)

    def judge(self, **around: Any) -> Judgement:
        """Look at everything new, with these surroundings instead of quiet ones."""
        headless = Headless(
            session_id=self.id, pid=4242, start_time=1.0, stdout_log=self.log, sent=tuple(self.sent), **{"resumed": False, **self._headless}
        )
        if self._observer is None:
            self._observer = Observer(headless, NOW)
        self._observer.read(headless, self.transcript if self.transcript.exists() else None)
        quiet: dict[str, Any] = {"now": self._clock + 60, "unread": 0, "tools": (), "children": 0, "registered": True, "others": True}
        return self._observer.judge(Surroundings(**{**quiet, **around}))

    def verdicts(self, **around: Any) -> tuple[str, str]:
        """Staleness and idleness."""
        judgement = self.judge(**around)
        return judgement.attribution.verdict, judgement.idleness.verdict


def iso(moment: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")
