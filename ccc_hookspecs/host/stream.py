"""The answer to one message, followed in the log of the headless that was given it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

from ccc_hookspecs.claude.jsonl import JsonlFollower, lines_backward, parse

QUIET_SECONDS: Final = 1.0
"""A log that ends with a result and stays so for this long belongs to a turn that is over."""


def turn_under_way(log: Path, given: int | None = None) -> bool:
    """Whether the last turn in a log has no result yet. A process that never began one has none.

    `given`: where the log ended when the process was given the last text that it took, or history: that is over with a result behind it.
    """
    for line in lines_backward(log):
        for record in parse(line):
            kind = record.data.get("type")
            if kind == "result":
                return given is not None and line.offset < given
            if kind in ("assistant", "user") or record.data.get("subtype") == "init":
                return True
    return given is not None


class Answer:
    """`offset`: where the log ended when the message was written.

    `done`: the turn that took the message is over. `error`: what that turn failed with, or None. `waits`: the message waits in the
    process for the end of another turn. `parts`: the texts of the answer so far.
    """

    def __init__(self, message_id: str, log: Path, offset: int) -> None:
        self.done = False
        self.error: str | None = None
        self.waits = False
        self.parts: list[str] = []
        self._message_id = message_id
        self._log = JsonlFollower(log, start=offset)
        self._named = False
        self._result: dict[str, Any] | None = None
        self._last_growth = time.monotonic()

    def poll(self, *, delivered: bool) -> list[str]:
        """What came in since the last call: texts of the answer, and lines such as `[Bash]` for tools.

        `delivered`: the message was proven delivered before this call. Releases that do not name the message in their results
        (before 2.1.216) end its turn with the first result after that, or with one that was there already and stays the last event; so
        does one that says nothing, since history that lay before the message in the process is acknowledged by such a one.
        """
        news: list[str] = []
        if self._log.poll() in ("grown", "replaced"):
            for line in self._log.lines():
                self._last_growth = time.monotonic()
                for record in parse(line):
                    news += self._take(record.data, delivered)
        if delivered and self._result is not None and time.monotonic() - self._last_growth >= QUIET_SECONDS:
            self._end(self._result)
        return news

    def _take(self, event: dict[str, Any], delivered: bool) -> list[str]:
        kind, ours = event.get("type"), self._is_ours(event)
        if kind == "command_lifecycle" and ours:
            self.waits = event.get("state") == "queued"
            self.done |= event.get("state") == "completed"
        elif kind == "result":
            self._result = event
            if ours or (delivered and not self._named and not _may_acknowledge(event)):
                self._end(event)
        elif kind == "assistant":
            self._result = None
            return self._shown(event)
        elif kind == "system" and event.get("subtype") == "init":
            self._result = None
        return []

    def _is_ours(self, event: dict[str, Any]) -> bool:
        named = [event.get("command_uuid"), event.get("user_message_uuid"), *(event.get("user_message_uuids") or ())]
        self._named |= event.get("type") == "command_lifecycle"
        return self._message_id in named

    def _end(self, event: dict[str, Any]) -> None:
        self.done = True
        if event.get("is_error"):
            self.error = str(event.get("result") or event.get("subtype") or "failed").partition("\n")[0][:200]

    def _shown(self, event: dict[str, Any]) -> list[str]:
        if self.waits or event.get("parent_tool_use_id") is not None:
            return []
        content = (event.get("message") or {}).get("content")
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
        self.parts += texts
        return texts + [f"[{block['name']}]" for block in blocks if block.get("type") == "tool_use" and isinstance(block.get("name"), str)]


def _may_acknowledge(result: dict[str, Any]) -> bool:
    """Whether a result may be that of history; some slash commands end with such a one too (2.1.119 to 2.1.332)."""
    return result.get("result") == "" and "terminal_reason" not in result
