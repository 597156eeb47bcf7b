"""The background tasks of a headless: shells, subagents and monitors that go on after the call that began them.

Measured: 2.1.61 and later report each by events, 2.1.216 and later also by lists. 2.0.42 and 2.1.6 report none; a background agent of
2.1.6 shows only in the results of calls. When a task ends by itself, its notice begins a turn of its own, 10 to 70 ms later. A
command that takes too long is moved to the background by 2.1.61; subagents are launched there unasked by 2.1.216 and later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ccc_plugins.retire_stale.judgement.alarms import ToolResult

_AGENTS = frozenset({"Task", "Agent"})
_STOPPING = frozenset({"TaskStop", "KillShell"})
_AWAITING = frozenset({"TaskOutput", "AgentOutputTool"})
TELLING = _AGENTS | _STOPPING | _AWAITING
"""The tools whose results say something of tasks."""

_TOLD = ("completed", "failed")
_OVER = (*_TOLD, "killed", "stopped", "cancelled", "canceled", "error")
_LAUNCHED = "Async agent launched"
_AGENT_ID = re.compile(r"\bagentId: ([A-Za-z0-9_-]+)")
_STATUS = re.compile(r"<status>(\w+)</status>")


@dataclass(slots=True)
class Background:
    """A reducer. `open`: the kinds of the tasks that are open, by id. `ended`: tasks that ended by themselves and whose notice has begun
    no turn yet. `reported`: this release reports tasks by events."""

    open: dict[str, str] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    reported: bool = False
    _calls: dict[str, tuple[str, bool]] = field(default_factory=dict)

    def turn_began(self) -> None:
        """The notices that were due are told in it."""
        self.ended.clear()

    def listed(self, event: Mapping[str, Any]) -> None:
        """Take the list of all that are open."""
        tasks = event.get("tasks")
        self.reported = True
        if isinstance(tasks, list):
            listed = {str(t.get("task_id")): str(t.get("task_type")) for t in tasks if isinstance(t, Mapping)}
            self.ended.update(key for key in self.open if key not in listed)
            self.open = listed

    def event(self, event: Mapping[str, Any]) -> None:
        """Take an event about one task."""
        key, patch = str(event.get("task_id")), event.get("patch")
        self.reported = True
        status = patch.get("status") if isinstance(patch, Mapping) else event.get("status")
        if status in _TOLD and (key in self.open or key in self.ended):
            self.open.pop(key, None)
            self.ended.add(key)
        elif status in _OVER:
            self._forget(key)
        elif event.get("subtype") == "task_started":
            self.open[key] = str(event.get("task_type"))
            self._calls[key] = (str(event.get("tool_use_id")), event.get("is_backgrounded") is True)

    def result(self, result: ToolResult) -> None:
        """Take the result of a tool call."""
        launched = result.name in _AGENTS and result.text.startswith(_LAUNCHED)
        if launched and not self.reported and (named := _AGENT_ID.search(result.text)) is not None:
            self.open[named.group(1)] = "agent"
        elif not launched:
            self._settle(result)
        over = any(status in _OVER for status in _STATUS.findall(result.text[:400]))
        if (result.name in _STOPPING and not result.failed) or (result.name in _AWAITING and over):
            for name in ("task_id", "shell_id", "agentId"):
                self._forget(str(result.given.get(name)))

    def _settle(self, result: ToolResult) -> None:
        """A subagent that the turn waits for ends with its call's result, for 2.1.61 prints no other end; and what ended before
        the result of its own call was waited for, so that no notice comes."""
        for key in [key for key, (call, _) in self._calls.items() if call == result.id]:
            waited_for = result.name in _AGENTS and not self._calls[key][1]
            if waited_for or key in self.ended:
                self._forget(key)

    def _forget(self, key: str) -> None:
        self.ended.discard(key)
        self.open.pop(key, None)
        self._calls.pop(key, None)
