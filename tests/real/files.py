"""What is on the disk in the end: the transcript as the real program wrote it, and what the API was sent.

Read with nothing of what is under test, so that a mistake there is not made here again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

CATCH_UP = "<ccc-catch-up"
CATCH_UP_END = "</ccc-catch-up>"


def json_lines(path: Path, start: int = 0) -> list[dict[str, Any]]:
    """The whole lines of a file behind `start` (in bytes) that are JSON objects; none when it is not there."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        file.seek(start)
        lines = file.read().split(b"\n")[:-1]
    return [json.loads(line) for line in lines if line.startswith(b"{")]


@dataclass(frozen=True, slots=True)
class Said:
    """A text that somebody gave to the model, where it stands in a transcript: the number of its line and what hangs it there."""

    line: int
    uuid: str
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model said, and when, in seconds since the epoch."""

    at: float
    text: str


class Transcript:
    """A session's transcript, as it was when this was made."""

    def __init__(self, config_dir: Path, session_id: str) -> None:
        paths = list(config_dir.glob(f"projects/*/{session_id}.jsonl"))
        self.records = json_lines(paths[0]) if paths else []
        self._by_uuid = {record["uuid"]: record for record in self.records if record.get("uuid")}
        self.said = tuple(self._said())

    def _said(self) -> list[Said]:
        found = []
        for line, record in enumerate(self.records):
            texts = given_texts(record)
            if texts:
                found.append(Said(line, record.get("uuid") or "", own_words(texts[-1])))
        return found

    def of(self, text: str) -> list[Said]:
        """Every place where exactly this text was said. A record that was given to another process as history was said before."""
        found = {said.uuid: said for said in reversed(self.said) if said.text == text.strip() and not _is_copy(said.uuid)}
        return sorted(found.values(), key=lambda said: said.line)

    def above(self, uuid: str) -> set[str]:
        """The record and everything that it hangs below."""
        found: set[str] = set()
        above: str | None = uuid
        while above is not None and above not in found and above in self._by_uuid:
            found.add(above)
            record = self._by_uuid[above]
            above = record.get("parentUuid") or record.get("logicalParentUuid")
        return found

    def answered(self, text: str) -> bool:
        """Whether an answer of the model hangs below this text, with no other text of a person between."""
        return bool(self.answers_to(text))

    def answers_to(self, text: str) -> list[Answer]:
        """Those answers."""
        tops = {said.uuid for said in self.of(text)}
        others = {said.uuid for said in self.said} - tops
        return [_answer(record) for record in self.records if _is_answer(record) and self._is_below(record, tops, others)]

    def is_typed(self, text: str) -> bool:
        """Whether this text was said in a terminal, as far as the release notes that."""
        places = {said.uuid for said in self.of(text)}
        return any(record.get("uuid") in places and record.get("entrypoint") == "cli" for record in self.records)

    def _is_below(self, record: dict[str, Any], tops: set[str], others: set[str]) -> bool:
        above: str | None = record.get("parentUuid")
        while above is not None and above not in tops:
            if above in others or above not in self._by_uuid:
                return False
            above = self._by_uuid[above].get("parentUuid")
        return above is not None

    def answers(self) -> list[Answer]:
        """What the model answered since the last compaction, whoever asked."""
        records = self.records[max(self.compactions(), default=0) :]
        return [_answer(record) for record in records if _is_answer(record)]

    def compactions(self) -> list[int]:
        """The numbers of the lines at which the conversation was compacted."""
        return [line for line, record in enumerate(self.records) if record.get("subtype") == "compact_boundary"]

    def summaries(self) -> list[Answer]:
        """What compactions told of what was said before."""
        return [_answer(record) for record in self.records if record.get("isCompactSummary")]

    def forks(self, texts: set[str]) -> int:
        """How many branches there are besides one, counted by those of these texts that no other of them hangs below."""
        places = [said for said in self.said if said.text in texts]
        inner = {uuid for said in places for uuid in self.above(said.uuid) - {said.uuid}}
        return len([said for said in places if said.uuid not in inner]) - 1


def _is_copy(uuid: str) -> bool:
    """Claude Code's own ids are of version 4."""
    return uuid[14:15] == "5"


def own_words(text: str) -> str:
    """What a person said in a text that may begin with a catch-up, in which an answer may recite another."""
    return text.rpartition(CATCH_UP_END)[2].strip() if text.startswith(CATCH_UP) else text.strip()


def given_texts(record: dict[str, Any]) -> list[str]:
    """The texts that a record gives to the model in the name of a person; none when it is of another kind."""
    if record.get("isSidechain") or record.get("isMeta"):
        return []
    if record.get("type") == "attachment":
        attachment = record.get("attachment") or {}
        return _texts(attachment.get("prompt")) if attachment.get("type") == "queued_command" else []
    return _texts((record.get("message") or {}).get("content")) if record.get("type") == "user" else []


def _texts(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    return [block["text"] for block in blocks if isinstance(block, dict) and block.get("type") == "text"]


def _is_answer(record: dict[str, Any]) -> bool:
    """A message of the model with a text; one that Claude Code made up itself, as a notice that a request failed, is none."""
    if record.get("type") != "assistant" or record.get("isSidechain") or record["message"].get("model") == "<synthetic>":
        return False
    return bool(_texts(record["message"].get("content")))


def _answer(record: dict[str, Any]) -> Answer:
    return Answer(_seconds(record["timestamp"]), "".join(_texts(record["message"]["content"])))


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()
