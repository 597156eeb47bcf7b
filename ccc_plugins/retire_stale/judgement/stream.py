"""What a headless's stdout says of its work. A reducer: events in, in the order in which they were printed; no clock, no files.

Releases say different things (measured on 2.0.42 to 2.1.332): all print `init`, messages and `result`; `command_lifecycle` comes
with 2.1.216; task events with 2.1.61; session states on demand. What a release does not say stays unsaid here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ccc_plugins.retire_stale.judgement import alarms
from ccc_plugins.retire_stale.judgement.alarms import Alarm, ToolResult
from ccc_plugins.retire_stale.judgement.entries import seconds

_FIRST = 16
_FINISHED_TASK = frozenset({"completed", "failed", "killed", "stopped", "cancelled", "canceled", "error"})
_TOLD = frozenset({"completed", "failed"})
"""Ends of a background task that its process tells the model in a turn of their own."""
_OPEN_COMMAND = frozenset({"queued", "started"})
_AGENTS = frozenset({"Task", "Agent"})
_ENDING = frozenset({"TaskStop", "KillShell"})
_AWAITING = frozenset({"TaskOutput", "AgentOutputTool"})
_TELLING = alarms.TELLING | _AGENTS | _ENDING | _AWAITING
_MEANT = frozenset({"run_in_background", "delaySeconds", "id", "task_id", "shell_id", "agentId", "stop", "recurring"})
"""What of a call's input is looked at when its result comes. Nothing else is kept: it may be megabytes, and is conversation."""
_LAUNCHED = "Async agent launched"
_AGENT_ID = re.compile(r"\bagentId: ([A-Za-z0-9_-]+)")
_STATUS = re.compile(r"<status>(\w+)</status>")
_SESSIONS = 64


@dataclass(slots=True)
class Stream:
    """The state after the events fed so far.

    `session_ids`: the sessions that the events named, in order of change. `reset`: a `/clear` was reported. `turn`: why a turn
    is open, or None. `begun`: something was ever begun. `ended`: a turn or the start-up ever ended. `state`: the last reported
    session state. `commands`: inputs that the process reported and did not finish. `finished`: inputs that it did finish.
    `mentioned`: inputs that an event named. `lifecycle`: it reports commands. `tasks`: open tasks by id. `reports_tasks`: it reports them
    by events; of a release that does not, background agents are known from the results of their calls. `ended_tasks`: those that ended
    by themselves since the last turn began: their notice begins one. `requests`: questions to the host that have no answer. `alarms`:
    armed wake-ups and jobs. `last_answer`: `uuid` and `message.id` of the latest answer on the main chain; `answered_in`: the session
    that it named. `compactions`: how many it reported. `first_ids`: the first own ids. `new_ids`: own ids since `take_ids`.
    """

    session_ids: list[str] = field(default_factory=list)
    reset: bool = False
    turn: str | None = None
    begun: bool = False
    ended: bool = False
    state: str | None = None
    lifecycle: bool = False
    commands: dict[str, str] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    mentioned: set[str] = field(default_factory=set)
    tasks: dict[str, str] = field(default_factory=dict)
    reports_tasks: bool = False
    ended_tasks: set[str] = field(default_factory=set)
    requests: dict[str, str] = field(default_factory=dict)
    alarms: dict[str, Alarm] = field(default_factory=dict)
    last_answer: tuple[str | None, str | None] | None = None
    answered_in: str | None = None
    compactions: int = 0
    first_ids: list[str] = field(default_factory=list)
    new_ids: list[str] = field(default_factory=list)
    _calls: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    _task_calls: dict[str, tuple[str, bool]] = field(default_factory=dict)
    _asked_for: dict[str, str] = field(default_factory=dict)
    _lasting: set[str] = field(default_factory=set)

    def take_ids(self) -> list[str]:
        """The own `uuid`s and `message.id`s that came since the last call."""
        taken, self.new_ids = self.new_ids, []
        return taken

    def feed(self, event: Mapping[str, Any]) -> None:
        """Take one event. Events of unknown types change nothing."""
        self._note_session(event)
        self._note_inputs(event)
        match event.get("type"):
            case "assistant" | "user" | "stream_event":
                self._message(event)
            case "result":
                self._result()
            case "system":
                self._system(event)
            case "command_lifecycle":
                self._command(event)
            case "control_request":
                self._ask(event)
            case "control_response" | "control_cancel_request":
                self._answered(event)
            case "conversation_reset":
                self.reset = True
            case _:
                pass

    def _note_session(self, event: Mapping[str, Any]) -> None:
        session = event.get("session_id")
        if isinstance(session, str) and session and (not self.session_ids or self.session_ids[-1] != session):
            self.session_ids = [*self.session_ids[:1], *self.session_ids[1:][1 - _SESSIONS :], session]

    def _note_inputs(self, event: Mapping[str, Any]) -> None:
        ids = event.get("user_message_uuids")
        for uuid in ids if isinstance(ids, list) else [event.get("user_message_uuid")]:
            if isinstance(uuid, str) and uuid not in self.mentioned:
                self.mentioned.add(uuid)
                self._own(uuid)

    def _own(self, *ids: object) -> None:
        new = [i for i in ids if isinstance(i, str)]
        self.new_ids += new
        if len(self.first_ids) < _FIRST:
            self.first_ids += new

    def _open(self, reason: str) -> None:
        self.turn, self.begun = reason, True

    def _close(self) -> None:
        """A turn is over, and with it the questions that it asked: their answers go into the FIFO and are not printed."""
        self.turn, self.ended = None, True

    def _result(self) -> None:
        """The turn is over, and so are its questions: an answer goes to the process's input and is not printed."""
        self._close()
        self.requests = {key: subtype for key, subtype in self.requests.items() if key in self._lasting}
        self._asked_for.clear()
        self.requests.clear()

    def _message(self, event: Mapping[str, Any]) -> None:
        if event.get("parent_tool_use_id"):
            return
        self._open(f"{event['type']} printed, no result since")
        message = event.get("message")
        if event["type"] == "stream_event" or not isinstance(message, Mapping):
            return
        uuid, message_id = _text(event.get("uuid")), _text(message.get("id"))
        self._own(uuid, message_id)
        if event["type"] == "assistant":
            self.last_answer, self.answered_in = (uuid, message_id), _text(event.get("session_id"))
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            if isinstance(block, Mapping):
                self._block(block, event)

    def _block(self, block: Mapping[str, Any], event: Mapping[str, Any]) -> None:
        if block.get("type") == "tool_use" and isinstance(block.get("id"), str):
            given = block.get("input")
            meant = {name: given[name] for name in _MEANT & given.keys()} if isinstance(given, Mapping) else {}
            self._calls[block["id"]] = (str(block.get("name")), meant)
        elif block.get("type") == "tool_result":
            self._tool_result(self._result_of(block, event))

    def must_read(self, call: str) -> bool:
        """Whether the text of this call's result says something: of most calls, only that there is a result counts."""
        name, given = self._calls.get(call, ("", {}))
        return name in _TELLING or given.get("run_in_background") is True

    def _result_of(self, block: Mapping[str, Any], event: Mapping[str, Any]) -> ToolResult:
        call, said = str(block.get("tool_use_id")), event.get("tool_use_result")
        name, given = self._calls.pop(call, ("", {}))
        return ToolResult(
            id=call,
            name=name,
            given=given,
            text=_result_text(block),
            failed=bool(block.get("is_error")),
            said=said if isinstance(said, Mapping) else {},
            at=seconds(event.get("timestamp")),
        )

    def _tool_result(self, result: ToolResult) -> None:
        self.requests.pop(self._asked_for.pop(result.id, ""), None)
        alarms.take(self.alarms, result)
        if result.name in _AGENTS:
            self._agent(result)
        elif result.name in _ENDING and not result.failed:
            self._end_task(str(result.given.get("task_id") or result.given.get("shell_id")))
        if not result.text.startswith(_LAUNCHED):
            self._settle_call(result.id)
        elif result.name in _AWAITING and any(status in _FINISHED_TASK for status in _STATUS.findall(result.text[:400])):
            self._end_task(str(result.given.get("task_id") or result.given.get("agentId")))

    def _agent(self, result: ToolResult) -> None:
        """A subagent that the turn waits for ends with its tool result; 2.1.61 prints no other end of it.

        One that was launched in the background goes on; 2.1.6 says so in the result of the call alone.
        """
        if not result.text.startswith(_LAUNCHED):
            self._end_foreground_task(result.id)
        elif not self.reports_tasks and (named := _AGENT_ID.search(result.text)) is not None:
            self.tasks[named.group(1)] = "agent"

    def _end_foreground_task(self, call: str) -> None:
        for key in [key for key, (used, background) in self._task_calls.items() if used == call and not background]:
            self._end_task(key)

    def _settle_call(self, call: str) -> None:
        """A task that ended before its call's result was one that the turn waited for: no notice comes."""
        for key in [key for key in self.ended_tasks if self._task_calls.get(key, ("", False))[0] == call]:
            self._end_task(key)

    def _end_task(self, key: str) -> None:
        self.ended_tasks.discard(key)
        self.tasks.pop(key, None)
        self._task_calls.pop(key, None)

    def _system(self, event: Mapping[str, Any]) -> None:
        match event.get("subtype"):
            case "init":
                self._open("a turn began, no result since")
                self.ended_tasks.clear()
            case "status" if event.get("status"):
                self._open(f"status {event['status']}")
            case "compact_boundary":
                self.compactions += 1
                self._own(event.get("uuid"))
            case "session_state_changed":
                self._state(event)
            case "hook_started":
                self.begun = True
            case "background_tasks_changed":
                self._task_list(event)
            case "task_started" | "task_updated" | "task_notification" | "task_progress":
                self._task(event)
            case _:
                pass

    def _state(self, event: Mapping[str, Any]) -> None:
        self.state = str(event.get("state"))
        if self.state == "idle":
            self._close()
        else:
            self._open(f"session state {self.state}")

    def _task_list(self, event: Mapping[str, Any]) -> None:
        tasks = event.get("tasks")
        self.reports_tasks = True
        if isinstance(tasks, list):
            listed = {str(t.get("task_id")): str(t.get("task_type")) for t in tasks if isinstance(t, Mapping)}
            self.ended_tasks.update(key for key in self.tasks if key not in listed)
            self.tasks = listed

    def _task(self, event: Mapping[str, Any]) -> None:
        key, patch = str(event.get("task_id")), event.get("patch")
        self.reports_tasks = True
        status = patch.get("status") if isinstance(patch, Mapping) else event.get("status")
        if status in _TOLD and (key in self.tasks or key in self.ended_tasks):
            self.tasks.pop(key, None)
            self.ended_tasks.add(key)
        elif status in _FINISHED_TASK:
            self._end_task(key)
        elif event.get("subtype") == "task_started":
            self.tasks[key] = str(event.get("task_type"))
            self._task_calls[key] = (str(event.get("tool_use_id")), event.get("is_backgrounded") is True)

    def _command(self, event: Mapping[str, Any]) -> None:
        uuid, state = event.get("command_uuid"), str(event.get("state"))
        self.lifecycle = True
        alarms.fired(self.alarms, event.get("scheduled_for"))
        if not isinstance(uuid, str):
            return
        if uuid not in self.mentioned:
            self.mentioned.add(uuid)
            self._own(uuid)
        if state in _OPEN_COMMAND:
            self.commands[uuid] = state
            self.begun = True
        else:
            self.commands.pop(uuid, None)
            self.finished.add(uuid)

    def _ask(self, event: Mapping[str, Any]) -> None:
        """A question of the main turn is settled by the result of the tool call that it is about; a subagent's may outlast the turn."""
        key, request = str(event.get("request_id")), event.get("request")
        about = request if isinstance(request, Mapping) else {}
        self.requests[key] = str(about.get("subtype") or "question")
        if isinstance(about.get("tool_use_id"), str):
            self._asked_for[about["tool_use_id"]] = key
        if about.get("agent_id"):
            self._lasting.add(key)

    def _answered(self, event: Mapping[str, Any]) -> None:
        response = event.get("response")
        key = response.get("request_id") if isinstance(response, Mapping) else event.get("request_id")
        self.requests.pop(str(key), None)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _result_text(block: Mapping[str, Any]) -> str:
    content = block.get("content")
    if isinstance(content, list):
        return " ".join(str(b.get("text", "")) for b in content if isinstance(b, Mapping))
    return content if isinstance(content, str) else ""
