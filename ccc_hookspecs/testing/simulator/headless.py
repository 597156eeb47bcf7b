"""The headless front: stream-json lines on standard input, events on standard output."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from ccc_hookspecs.testing.simulator import history, messages, model, slash
from ccc_hookspecs.testing.simulator.agent import Agent, Input, Interrupted
from ccc_hookspecs.testing.simulator.calls import Task, announce_background, task_notification, task_updated
from ccc_hookspecs.testing.simulator.commands import command_of
from ccc_hookspecs.testing.simulator.lines import new_id
from ccc_hookspecs.testing.simulator.stream import TurnMark
from ccc_hookspecs.testing.simulator.tools import Subagent
from ccc_hookspecs.testing.simulator.turn import Turn


class BadInput(Exception):
    """A line of standard input that this release cannot take; Claude Code ends with exit code 1."""


class Failed(Exception):
    """The process gave up over something it could not read; it has said so on stdout."""


class Headless:
    """Serves inputs until standard input is closed, which a FIFO held open by its own reader never is."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._answers: dict[str, dict[str, Any]] = {}
        self._unreadable = False
        agent.on_line = self._line
        agent.on_task_end = self._task_end
        agent.ask = self._ask

    def run(self) -> int:
        """Returns the exit code; SIGINT ends the turn and the process. Raises Terminated, BadInput and Failed."""
        agent = self.agent
        agent.registry.write(agent.journal.session_id, None)
        self._startup()
        agent.status("idle")
        while not agent.inbox.leaving:
            if agent.queue:
                self._serve()
            elif agent.inbox.closed and not agent.background:
                return 0
            else:
                agent.listen(None)
        return 0

    def _startup(self) -> None:
        """Hooks that run at the start; standard input is not read meanwhile, so inputs stay in the FIFO."""
        agent = self.agent
        if not agent.settings.startup:
            return
        if agent.release.has("hook_events"):
            agent.stream.system("hook_started", hook_id=new_id(), hook_name="SessionStart", hook_event="SessionStart")
        agent.inbox.sleep(agent.settings.startup)
        if agent.release.has("hook_events"):
            agent.stream.system("hook_response", hook_name="SessionStart", hook_event="SessionStart", exit_code=0, outcome="success")

    def _serve(self) -> None:
        agent = self.agent
        self._check_readable()
        agent.in_turn = True
        agent.status("busy")
        first = agent.queue.pop(0)
        if first.source != "system" and (command := command_of(agent, first.content)) is not None:
            slash.run(agent, first, command)
        elif not first.query:
            history.serve(agent, first)
        else:
            Turn(agent, [first, *self._queued_with(first)]).run()
        agent.inbox.interrupted = False
        agent.in_turn = False
        if not agent.queue:
            agent.status("idle")
        if self._unreadable:
            self._check_readable()

    def _check_readable(self) -> None:
        """2.1.6 cannot begin a turn with the notification of a background command: it ends when it should."""
        if self._unreadable:
            self.agent.journal.queue("dequeue")
            self.agent.stream.result(TurnMark(), "", subtype="error_during_execution", is_error=True, reason=None, num_turns=0)
            raise Failed

    def _queued_with(self, first: Input) -> list[Input]:
        """The further inputs that one turn takes together with `first`: what was queued during another, up to a command or history."""
        agent = self.agent
        taken: list[Input] = []
        while agent.release.has("merges_queued_inputs") and agent.queue and first.source == "sdk":
            following = agent.queue[0]
            if following.source != "sdk" or not following.query or command_of(agent, following.content) is not None:
                break
            taken.append(agent.queue.pop(0))
        return taken

    # --- what comes in --------------------------------------------------------------------------------------------------

    def _line(self, line: str) -> None:
        if not line.strip():
            return
        try:
            message = json.loads(line)
        except ValueError as error:
            raise BadInput(f"Error parsing streaming input line: {line[:80]}") from error
        if not isinstance(message, dict):
            raise BadInput("Error parsing streaming input line: not an object")
        match message.get("type"):
            case "user":
                self._input(message)
            case "assistant":
                self._answer(message)
            case "control_request":
                self._control(message)
            case "control_response":
                response = message.get("response") or {}
                self._answers[str(response.get("request_id"))] = response

    def _input(self, message: dict[str, Any]) -> None:
        """Queue an input; one whose id was seen before, also in the transcript that was loaded, is dropped."""
        agent = self.agent
        input_id = message["uuid"] if isinstance(message.get("uuid"), str) else None
        if input_id is not None:
            if agent.has_seen(input_id):
                agent.stream.repeated(input_id, loaded=input_id in agent.loaded, idle=not agent.in_turn and not agent.queue)
                return
            agent.known.add(input_id)
        query = message.get("shouldQuery") is not False or not agent.release.has("takes_history")
        content = (message.get("message") or {}).get("content")
        content = content if content or (content == [] and not query) else ""
        agent.push(Input(content=content, input_id=input_id, query=query, synthetic=message.get("isSynthetic") is True))

    def _answer(self, message: dict[str, Any]) -> None:
        """An answer that a host feeds; older releases pass over such a line, the oldest end."""
        if self.agent.release.has("takes_history"):
            history.take_answer(self.agent, message)
        elif not self.agent.release.has("skips_unknown_lines"):
            raise BadInput("Error: Expected message type 'user' or 'control', got 'assistant'")

    def _control(self, message: dict[str, Any]) -> None:
        request_id = message.get("request_id")
        match (message.get("request") or {}).get("subtype"):
            case "interrupt":
                self.agent.inbox.interrupted = self.agent.in_turn
                self.agent.stream.control_response(request_id, {"still_queued": []} if self.agent.release.has("user_message") else None)
            case "initialize":
                self.agent.stream.control_response(request_id, {"commands": [], "output_style": "default", "models": []})
            case "set_permission_mode" | "set_model":
                self.agent.stream.control_response(request_id, {})
            case "export_conversation" if self.agent.release.has("export_conversation"):
                text = "".join(f"\n> {text}\n" for text in self.agent.memory)
                name = time.strftime("%Y-%m-%d-conversation.txt", time.gmtime())
                self.agent.stream.control_response(request_id, {"text": text, "default_filename": name})
            case subtype:
                self.agent.stream.control_response(request_id, error=f"Unsupported control request subtype: {subtype}")

    def _ask(self, name: str, given: dict[str, Any], tool_use_id: str) -> str | None:
        """Ask whoever reads stdout whether a tool may run, and wait for the answer. Raises Interrupted."""
        request_id = new_id()
        request = {"subtype": "can_use_tool", "tool_name": name, "input": given, "tool_use_id": tool_use_id}
        question = {"type": "control_request", "request_id": request_id, "request": request}
        if self.agent.release.has("action_before_question"):
            self.agent.stream.session_state("requires_action")
        self.agent.stream.emit(question)
        self.agent.stream.session_state("requires_action")
        try:
            while request_id not in self._answers:
                self.agent.listen(None)
                self.agent.check_interrupt()
        except Interrupted:
            self.agent.stream.emit({"type": "control_cancel_request", "request_id": request_id})
            raise
        finally:
            self.agent.stream.session_state("running")
        answer = self._answers.pop(request_id).get("response") or {}
        return None if answer.get("behavior") == "allow" else str(answer.get("message") or "denied")

    def _task_end(self, task: Task) -> None:
        """A background task ended: say so, and begin a turn that tells the model."""
        agent = self.agent
        if isinstance(task, Subagent):
            summary = model.recite([task.prompt])
            agent.journal.subagent(task.task_id, "assistant", summary)
            message = messages.message(messages.new_message_id(), agent.settings.model, messages.text_block(summary), None)
            agent.stream.assistant(message, new_id(), TurnMark(), tool=task.tool_use_id)
        else:
            summary = f'Background command "x" completed (exit code {task.exit_code})'
        if agent.release.has("tasks_changed_first"):
            announce_background(agent)
        task_updated(agent, task, "completed")
        task_notification(agent, task, summary)
        if not agent.release.has("tasks_changed_first"):
            announce_background(agent)
        text = f"<task-notification>\n<task-id>{task.task_id}</task-id>\n<status>completed</status>\n</task-notification>"
        if agent.release.has("reports_background"):
            agent.push(Input(content=text, source="system", origin={"kind": "task-notification"}))
        elif agent.release.has("notes_background"):
            agent.journal.queue("enqueue", text, system=True)
            self._unreadable = True


def fail(text: str) -> int:
    """Say on stderr why it ends; returns the exit code."""
    print(text, file=sys.stderr, flush=True)
    return 1
