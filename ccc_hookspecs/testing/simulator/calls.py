"""Tool calls of one answer: permission, the command itself, its events and its result."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ccc_hookspecs.testing.simulator import messages, model, tools
from ccc_hookspecs.testing.simulator.agent import POLL, Agent, Interrupted
from ccc_hookspecs.testing.simulator.inbox import deadline, left
from ccc_hookspecs.testing.simulator.lines import new_id
from ccc_hookspecs.testing.simulator.releases import Release

Task: TypeAlias = tools.Command | tools.Subagent


@dataclass(slots=True)
class Call:
    """One tool call. `assistant`: the `uuid` of the record that asks for it."""

    use: model.ToolUse
    assistant: str = ""
    tool_use_id: str = field(default_factory=lambda: "toolu_" + new_id().replace("-", "")[:16])

    def block(self, release: Release) -> dict[str, Any]:
        name = "Task" if self.use.name == "Agent" and not release.has("agent_tool") else self.use.name
        return {"type": "tool_use", "id": self.tool_use_id, "name": name, "input": self.use.input}


def run_calls(agent: Agent, calls: list[Call]) -> None:
    """Run them one after the other and write each result. Raises Interrupted, after the results that an interruption leaves."""
    for call in calls:
        try:
            text, failed = _run(agent, call)
        except Interrupted:
            _result(agent, call, "The command was interrupted", failed=True)
            raise
        _result(agent, call, text, failed=failed)


def _run(agent: Agent, call: Call) -> tuple[str, bool]:
    refusal = _permission(agent, call)
    if refusal is not None:
        return refusal, True
    match call.use.name:
        case "Bash" if call.use.input.get("run_in_background"):
            return _background(agent, call), False
        case "Bash":
            return _foreground(agent, call)
        case "Agent":
            return _subagent(agent, call), False
        case "ScheduleWakeup":
            return _wakeup(agent, call), False
    return f"No such tool available: {call.use.name}", True


def _permission(agent: Agent, call: Call) -> str | None:
    """None when it may run, else why not."""
    if not (call.use.ask or (agent.settings.asks and call.use.name == "Bash")):
        return None
    return agent.ask(call.use.name, call.use.input, call.tool_use_id)


def _foreground(agent: Agent, call: Call) -> tuple[str, bool]:
    command = tools.run(str(call.use.input.get("command", "")), agent.settings.cwd, call.tool_use_id)
    agent.foreground.append(command)
    announced = False
    until = deadline(agent.settings.task_after)
    try:
        while not command.done():
            agent.pause(POLL)
            if not announced and left(until) <= 0:
                announced = True
                agent.progress.append("bash_progress")
                _started(agent, command, backgrounded=False)
    finally:
        agent.foreground.remove(command)
        command.kill()
    if announced and agent.release.has("task_events_bash"):
        task_notification(agent, command, "x")
    return command.read(), command.exit_code != 0


def _background(agent: Agent, call: Call) -> str:
    command = tools.run(str(call.use.input.get("command", "")), agent.settings.cwd, call.tool_use_id)
    agent.background.append(command)
    announce_background(agent)
    _started(agent, command, backgrounded=True)
    return f"Command running in background with ID: {command.task_id}"


def _subagent(agent: Agent, call: Call) -> str:
    """In the foreground up to 2.1.216, beside the turn after that; its own transcript grows in a file of its own."""
    prompt = str(call.use.input.get("prompt", ""))
    reply = model.answer([prompt], prompt)
    seconds = reply.seconds if isinstance(reply, model.Say) else 0.0
    task = tools.Subagent(prompt, deadline(seconds), call.tool_use_id, "a" + new_id().replace("-", "")[:16])
    agent.subagents = True
    agent.progress.append("agent_progress")
    agent.journal.subagent(task.task_id, "user", prompt)
    if agent.release.has("agent_in_background"):
        agent.background.append(task)
        announce_background(agent)
        _started(agent, task, backgrounded=True)
        return "The agent was started in the background."
    _started(agent, task, backgrounded=False)
    agent.stream.user([messages.text_block(prompt)], new_id(), tool=call.tool_use_id)
    agent.pause(seconds)
    agent.journal.subagent(task.task_id, "assistant", model.recite([prompt]))
    if agent.release.has("task_events_bash"):
        task_notification(agent, task, "d")
    return model.recite([prompt])


def _wakeup(agent: Agent, call: Call) -> str:
    seconds = float(call.use.input.get("delaySeconds", 60))
    agent.wakeups.append((deadline(seconds), str(call.use.input.get("prompt", "wake"))))
    return f"Next wakeup scheduled (in {seconds:g}s)."


def _result(agent: Agent, call: Call, text: str, *, failed: bool) -> None:
    block = {"tool_use_id": call.tool_use_id, "type": "tool_result", "content": text, "is_error": failed}
    details: Any = f"Error: {text}" if failed else {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
    record_id = agent.journal.tool_result(block, details, call.assistant)
    agent.stream.user([block], record_id, tool_use_result=details)


# --- task events --------------------------------------------------------------------------------------------------------


def _started(agent: Agent, task: Task, *, backgrounded: bool) -> None:
    feature = "task_events_bash" if task.kind == "local_bash" and not backgrounded else "task_events"
    if not agent.release.has(feature):
        return
    fields: dict[str, Any] = {"task_id": task.task_id, "tool_use_id": task.tool_use_id, "description": "x", "task_type": task.kind}
    if agent.release.has("is_backgrounded"):
        fields["is_backgrounded"] = backgrounded
    agent.stream.system("task_started", **fields)


def task_notification(agent: Agent, task: Task, summary: str, status: str = "completed") -> None:
    if agent.release.has("task_events"):
        ids = {"task_id": task.task_id, "tool_use_id": task.tool_use_id}
        agent.stream.system("task_notification", **ids, status=status, output_file="", summary=summary)


def task_updated(agent: Agent, task: Task, status: str) -> None:
    if agent.release.has("task_updated"):
        agent.stream.system("task_updated", task_id=task.task_id, patch={"status": status, "end_time": int(time.time() * 1000)})


def announce_background(agent: Agent) -> None:
    """The list of background tasks, as it is now."""
    agent.stream.tasks([{"task_id": task.task_id, "task_type": task.kind, "description": "x"} for task in agent.background])
