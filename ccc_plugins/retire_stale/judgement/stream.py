"""What a headless's stdout says of its work. A reducer: events in, in the order in which they were printed; no clock, no files.

Releases say different things (measured on 2.0.42 to 2.1.332): all print `init`, messages and `result`; `command_lifecycle` comes
with 2.1.216; task events with 2.1.61; session states on demand. What a release does not say stays unsaid here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ccc_plugins.retire_stale.judgement import alarms, background
from ccc_plugins.retire_stale.judgement.alarms import Alarm, ToolResult
from ccc_plugins.retire_stale.judgement.background import Background
from ccc_plugins.retire_stale.judgement.entries import seconds

_FIRST = 16
_OPEN_COMMAND = frozenset({"queued", "started"})
_TELLING = alarms.TELLING | background.TELLING
_MEANT = frozenset({"run_in_background", "delaySeconds", "id", "task_id", "shell_id", "agentId", "stop", "recurring"})
"""What of a call's input is looked at when its result comes. Nothing else is kept: it may be megabytes, and is conversation."""
_SESSIONS = 64


@dataclass(slots=True)
class Stream:
    """The state after the events fed so far.

    `session_ids`: the sessions that the events named, in order of change. `reset`: a `/clear` was reported. `turn`: why a turn is open,
    or None. `closing`: the last event ended a turn. `closes`: how many did. `begun`: something was ever begun. `ended`: a turn or the
    start-up ever ended. `state`: the last reported session state. `commands`: inputs that the process reported and did not finish.
    `finished`: inputs that it did finish. `mentioned`: inputs that an event named. `lifecycle`: it reports commands. `hooks`: hooks that
    began and did not end. `background`: its background tasks. `requests`: questions to the host that have no answer. `alarms`: armed
    wake-ups and jobs. `last_answer`: `uuid` and `message.id` of the latest answer on the main chain; `answered_in`: the session that it
    named. `compactions`: how many it reported. `first_ids`: the first own ids. `new_ids`: own ids since `take_ids`. `release`: of Claude
    Code, as it said.
    """

    session_ids: list[str] = field(default_factory=list)
    reset: bool = False
    turn: str | None = None
    closing: bool = False
    closes: int = 0
    begun: bool = False
    ended: bool = False
    state: str | None = None
    lifecycle: bool = False
    commands: dict[str, str] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    mentioned: set[str] = field(default_factory=set)
    hooks: set[str] = field(default_factory=set)
    background: Background = field(default_factory=Background)
    requests: dict[str, str] = field(default_factory=dict)
    alarms: dict[str, Alarm] = field(default_factory=dict)
    last_answer: tuple[str | None, str | None] | None = None
    answered_in: str | None = None
    compactions: int = 0
    release: str | None = None
    first_ids: list[str] = field(default_factory=list)
    new_ids: list[str] = field(default_factory=list)
    _calls: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    _asked_for: dict[str, str] = field(default_factory=dict)
    _lasting: dict[str, str] = field(default_factory=dict)

    def take_ids(self) -> list[str]:
        """The own `uuid`s and `message.id`s that came since the last call."""
        taken, self.new_ids = self.new_ids, []
        return taken

    def feed(self, event: Mapping[str, Any]) -> None:
        """Take one event. Events of unknown types change nothing."""
        self.closing = False
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
            self.session_ids = [*self.session_ids[:1], *self.session_ids[1:][2 - _SESSIONS :], session]

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
        self.turn, self.ended, self.closing = None, True, True
        self.closes += 1

    def _result(self) -> None:
        """The turn is over, and so are its questions: an answer goes to the process's input and is not printed."""
        self._close()
        self.requests = {key: subtype for key, subtype in self.requests.items() if key in self._lasting}
        self._asked_for = {call: key for call, key in self._asked_for.items() if key in self.requests}

    def _message(self, event: Mapping[str, Any]) -> None:
        if event.get("parent_tool_use_id"):
            self._subagent(event)
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

    def _subagent(self, event: Mapping[str, Any]) -> None:
        """What a subagent says is its own, but the result of its call settles what was asked about that."""
        message = event.get("message")
        content = message.get("content") if self._asked_for and isinstance(message, Mapping) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, Mapping) and block.get("type") == "tool_result":
                self._settle(str(block.get("tool_use_id")))

    def _settle(self, call: str) -> None:
        key = self._asked_for.pop(call, "")
        self.requests.pop(key, None)
        self._lasting.pop(key, None)

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
        self._settle(result.id)
        alarms.take(self.alarms, result)
        self.background.result(result)

    def _system(self, event: Mapping[str, Any]) -> None:
        match event.get("subtype"):
            case "init":
                self._open("a turn began, no result since")
                self.release = _text(event.get("claude_code_version")) or self.release
                self.background.turn_began()
            case "status" if event.get("status"):
                self._open(f"status {event['status']}")
            case "compact_boundary":
                self.compactions += 1
                self._own(event.get("uuid"))
            case "session_state_changed":
                self._state(event)
            case "hook_started":
                self.hooks.add(str(event.get("hook_id")))
            case "hook_response":
                self.hooks.discard(str(event.get("hook_id")))
            case "background_tasks_changed":
                self.background.listed(event)
            case "task_started" | "task_updated" | "task_notification" | "task_progress":
                self.background.event(event)
                self._agent_ended(str(event.get("task_id")))
            case _:
                pass

    def _agent_ended(self, task: str) -> None:
        """With a subagent, which is a task under its own id, end its questions."""
        if self._lasting and task not in self.background.open:
            for key in [key for key, agent in self._lasting.items() if agent == task]:
                del self._lasting[key]
                self.requests.pop(key, None)

    def _state(self, event: Mapping[str, Any]) -> None:
        self.state = str(event.get("state"))
        if self.state == "idle":
            self._close()
        else:
            self._open(f"session state {self.state}")

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
            self._lasting[key] = str(about["agent_id"])

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
