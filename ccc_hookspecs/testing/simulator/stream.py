"""What a headless prints on stdout: one method for each kind of event, by release."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ccc_hookspecs.testing.simulator.lines import line_of, new_id, stamp
from ccc_hookspecs.testing.simulator.messages import USAGE
from ccc_hookspecs.testing.simulator.releases import Release

Event: TypeAlias = dict[str, Any]


@dataclass(slots=True)
class TurnMark:
    """What the events of one turn say about the inputs that began or joined it.

    `inputs`: their ids; the first `begun` of them began it. `first`: no assistant event came yet. `rounds`: requests so
    far, `results`: tool results.
    """

    inputs: list[str] = field(default_factory=list)
    begun: int = 0
    started: float = field(default_factory=time.monotonic)
    first: bool = True
    rounds: int = 0
    results: int = 0


class Stream:
    """Prints events. `quiet`: nothing is printed, as in a terminal or a one-shot."""

    def __init__(self, release: Release, session_id: str, cwd: str, *, quiet: bool, states: bool) -> None:
        self.release = release
        self.session_id = session_id
        self.cwd = cwd
        self.quiet = quiet
        self.states = states and release.has("state_events")
        self.state = "idle"

    def emit(self, event: Event) -> None:
        if not self.quiet:
            sys.stdout.buffer.write(line_of(event))
            sys.stdout.flush()

    def _event(self, kind: str, **fields: Any) -> None:
        self.emit({"type": kind, **fields, "uuid": new_id(), "session_id": self.session_id})

    def system(self, subtype: str, **fields: Any) -> None:
        self._event("system", subtype=subtype, **fields)

    def session_state(self, state: str) -> None:
        """`running`, `idle` or `requires_action`; printed when it changes and the environment asked for it."""
        if self.states and state != self.state:
            self.system("session_state_changed", state=state)
        self.state = state

    def lifecycle(self, command: str | None, state: str) -> None:
        if command is not None and self.release.has("lifecycle"):
            self._event("command_lifecycle", command_uuid=command, state=state)

    def repeated(self, command: str, *, loaded: bool, idle: bool) -> None:
        """An input that was seen before. `loaded`: in the transcript at the start; `idle`: no turn runs."""
        if not self.release.has("tells_repeated"):
            return
        if loaded:
            self.lifecycle(command, "completed")
        if idle and self.states:
            self.system("session_state_changed", state="idle")

    def init(self, model: str, permission_mode: str, turn: TurnMark) -> None:
        fields: Event = {"cwd": self.cwd, "tools": ["Bash", "Read", "Task"], "mcp_servers": [], "model": model}
        fields |= {"permissionMode": permission_mode, "slash_commands": ["clear", "compact", "context", "cost"]}
        fields |= {"apiKeySource": "ANTHROPIC_API_KEY", "claude_code_version": self.release.name, "output_style": "default"}
        if turn.inputs and self.release.has("init_user_messages"):
            fields["user_message_uuids"] = list(turn.inputs)
        self.system("init", **fields)

    def assistant(self, message: Event, record_id: str, turn: TurnMark, *, tool: str | None = None, marked: bool = True) -> None:
        """One content block. Only the first of a turn names the inputs, and none of a subagent (`tool`: the call that started it)."""
        if self.release.has("stop_reason_later") and message.get("model") != "<synthetic>":
            message = message | {"stop_reason": None}
        event: Event = {"type": "assistant", "message": message, "parent_tool_use_id": tool}
        event |= {"session_id": self.session_id, "uuid": record_id} | self._stamped("assistant_timestamp")
        if turn.first and marked and tool is None:
            turn.first = False
            event |= self._turn_marks(turn)
        self.emit(event)

    def user(self, content: Any, record_id: str, *, tool: str | None = None, replay: bool = False, **fields: Any) -> None:
        message = {"role": "user", "content": content}
        event: Event = {"type": "user", "message": message, "parent_tool_use_id": tool, "session_id": self.session_id, "uuid": record_id}
        event |= self._stamped("user_timestamp") | fields
        if replay:
            event["isReplay"] = True
        self.emit(event)

    def result(self, turn: TurnMark, text: str, **fields: Any) -> None:
        """The end of a turn. `reason` is the `terminal_reason`, left out for a local command."""
        reason = fields.pop("reason", "completed")
        event: Event = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1 + turn.results}
        event |= {"duration_ms": int((time.monotonic() - turn.started) * 1000), "session_id": self.session_id}
        event |= {"total_cost_usd": 0.0, "usage": dict(USAGE), "permission_denials": [], "result": text, "uuid": new_id()} | fields
        if reason is not None and self.release.has("terminal_reason"):
            event["terminal_reason"] = reason
        self.emit(event | self._result_marks(turn, answered=reason == "completed"))

    def _result_marks(self, turn: TurnMark, *, answered: bool) -> Event:
        if self.release.has("user_message"):
            return self._turn_marks(turn)
        if turn.inputs and self.release.has("result_user_message") and answered:
            return {"user_message_uuid": turn.inputs[turn.begun - 1]}
        return {}

    def _turn_marks(self, turn: TurnMark) -> Event:
        if not turn.inputs or not self.release.has("user_message"):
            return {}
        return {"user_message_uuid": turn.inputs[turn.begun - 1], "user_message_uuids": list(turn.inputs)}

    def _stamped(self, feature: str) -> Event:
        return {"timestamp": stamp()} if self.release.has(feature) else {}

    def control_response(self, request_id: object, response: Event | None = None, error: str | None = None) -> None:
        body: Event = {"subtype": "success" if error is None else "error", "request_id": request_id}
        body |= {"error": error} if error is not None else {}
        body |= {"response": response} if response is not None else {}
        self.emit({"type": "control_response", "response": body})

    def tasks(self, tasks: Sequence[Event]) -> None:
        """The background tasks that run now; the whole list each time."""
        if self.release.has("background_tasks_changed"):
            self.system("background_tasks_changed", tasks=list(tasks))

    def conversation_reset(self, input_id: str | None) -> None:
        """`/clear` moved the process to another session; still printed under the old one."""
        if self.release.has("conversation_reset"):
            event: Event = {"type": "conversation_reset", "new_conversation_id": new_id(), "uuid": new_id(), "session_id": self.session_id}
            if self.release.has("init_user_messages"):
                event |= {"trigger": "clear", "user_message_uuid": input_id}
            self.emit(event | self._stamped("reset_timestamp"))
