"""What proves that a message arrived: its id in the transcript, or in what its headless printed.

Measured on eight releases from 2.0.42 to 2.1.332: a message's id becomes the `uuid` of its `user` record. Taken up in the
middle of a turn it becomes the `source_uuid` of a `queued_command` attachment instead (2.1.119 and later). `command_lifecycle` and
`result` events name it (2.1.216 and later); a `user` event replays it when `--replay-user-messages` was given. On releases that
print no lifecycle, a slash command leaves no id anywhere: there the next `result` has to do, so they are given one between turns only.

That it is in a process's own queue (lifecycle `queued` or `started`, the `init` of its turn) is no proof: it is gone with the process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from ccc_hookspecs.claude.jsonl import JsonlFollower, parse
from ccc_hookspecs.claude.text import texts_in
from ccc_hookspecs.host.records import Head, Message
from ccc_hookspecs.host.releases import NAMES_MESSAGES, is_from
from ccc_hookspecs.host.tmux import typable

_TELLING: Final = re.compile(rb'"(result|command_lifecycle)"')
_PASTE: Final = re.compile(r"</?pasted_content[^>]*>")


class Watch:
    """Looks for the proof of one message, each byte once.

    `accepted`: the process says that it has the message. `blind`: a file that is there and could not be read at the last look, so that
    no proof means nothing; or None.
    """

    def __init__(self, message: Message, head: Head | None, transcript: Callable[[], Path | None]) -> None:
        self.message = message
        self.accepted = False
        self.blind: str | None = None
        self.release: str | None = None
        self._transcript = transcript
        self._log = None if head is None else JsonlFollower(head.log, start=message.log_offset)
        self._file: JsonlFollower | None = None
        self._needle = message.message_id.encode()
        self._result_will_do = message.is_command and not is_from(None if head is None else head.release, NAMES_MESSAGES)

    def look(self) -> str | None:
        """The proof in words, or None. To be asked again as long as the process lives, and once after it is gone."""
        self.blind = None
        for event in self._events():
            if (proof := self._by_event(event)) is not None:
                return proof
        proof = next((proof for record in self._records() if (proof := self._by_record(record)) is not None), None)
        if proof is not None and self.release is None:
            # The record came after the release was said, but that may have been printed after the log was read.
            for event in self._events():
                self._by_event(event)
        return proof

    def _events(self) -> Iterator[dict[str, Any]]:
        if self._log is None or not self._has_news(self._log):
            return
        for line in self._log.lines():
            if self._needle in line.data or b'"init"' in line.data or (self._result_will_do and _TELLING.search(line.data)):
                yield from (record.data for record in parse(line))

    def _has_news(self, file: JsonlFollower) -> bool:
        growth = file.poll()
        if growth == "unreadable":
            self.blind = file.path
        return growth in ("grown", "replaced")

    def _by_event(self, event: dict[str, Any]) -> str | None:
        kind, ours = event.get("type"), self.message.message_id
        names = _names(event)
        named = ours in names
        if kind == "system" and isinstance(event.get("claude_code_version"), str):
            self.release = event["claude_code_version"]
        # Where events name the messages that they are about, one that does not name this one is about another.
        self._result_will_do &= not names and kind != "command_lifecycle" and not is_from(self.release, NAMES_MESSAGES)
        if kind == "user" and event.get("uuid") == ours:
            return "replayed on its output"
        if kind == "result" and (named or (self._result_will_do and event.get("subtype") != "error_during_execution")):
            return "answered on its output"
        if kind == "command_lifecycle" and named and event.get("state") == "completed":
            return "completed on its output"
        self.accepted |= named
        return None

    def _records(self) -> Iterator[dict[str, Any]]:
        follower = self._follower()
        if follower is None or not self._has_news(follower):
            return
        typed = self.message.terminal is not None
        for line in follower.lines():
            if typed or self._needle in line.data:
                yield from (record.data for record in parse(line))

    def _follower(self) -> JsonlFollower | None:
        if self._file is None and (path := self._transcript()) is not None:
            size = path.stat().st_size if path.exists() else 0
            # A file shorter than what was there before is another one, of which everything counts.
            self._file = JsonlFollower(path, start=self.message.transcript_offset if size >= self.message.transcript_offset else 0)
        return self._file

    def _by_record(self, record: dict[str, Any]) -> str | None:
        attachment = record.get("attachment")
        queued = attachment if isinstance(attachment, dict) and attachment.get("type") == "queued_command" else {}
        if record.get("type") == "user" and record.get("uuid") == self.message.message_id:
            return "a record of the transcript"
        if queued.get("source_uuid") == self.message.message_id:
            return "taken up in a turn under way"
        if self.message.terminal is not None and self._is_typed(record, queued):
            return "taken by the terminal"
        return None

    def _is_typed(self, record: dict[str, Any], queued: dict[str, Any]) -> bool:
        """Whether this is the text as a terminal records it, which gives it an id of its own."""
        content = queued.get("prompt")
        if record.get("type") == "user" and not record.get("isMeta") and isinstance(record.get("message"), dict):
            content = record["message"].get("content")
        return content is not None and squeezed("".join(texts_in(content))) == squeezed(typable(self.message.text))


def squeezed(text: str) -> str:
    """A text without what a terminal's input field may change: its white space, and what marks a paste (2.1.332)."""
    return "".join(_PASTE.sub("", text).split())


def _names(event: dict[str, Any]) -> list[object]:
    """The ids of the messages that an event says it is about."""
    several = event.get("user_message_uuids")
    one = (event.get("command_uuid"), event.get("user_message_uuid"))
    return [*(name for name in one if name is not None), *(several if isinstance(several, list) else ())]
