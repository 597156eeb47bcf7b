"""What slash commands do: those that Claude Code answers itself, and the person's own."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ccc_hookspecs.testing.simulator import history, messages, model, shapes
from ccc_hookspecs.testing.simulator.agent import Agent, Input
from ccc_hookspecs.testing.simulator.commands import LOCAL, own_file
from ccc_hookspecs.testing.simulator.lines import joined, new_id
from ccc_hookspecs.testing.simulator.stream import TurnMark
from ccc_hookspecs.testing.simulator.turn import Turn


def run(agent: Agent, given: Input, command: str) -> None:
    """Run one slash command as a turn of its own."""
    own = own_file(agent, command)
    if command == "/compact" and agent.memory:
        _Local(agent, given, command).compact()
    elif command == "/clear" and agent.release.has("clear_moves_session"):
        _Local(agent, given, command).clear()
    elif command in LOCAL:
        _Local(agent, given, command).echo("Nothing was spent.")
    elif own.is_file():
        _Custom(agent, given, command, own).run()
    else:
        _Local(agent, given, command).unknown()


def body_of(path: Path) -> str:
    """A command file's text without its front matter."""
    text = path.read_text()
    if text.startswith("---\n"):
        text = text.partition("\n---\n")[2]
    return text


def _name_echo(command: str) -> str:
    return f"<command-name>{command}</command-name>\n<command-message>{command[1:]}</command-message>\n<command-args></command-args>"


def caveat(agent: Agent, at: float | None = None) -> None:
    """The meta record that stands before the echo of a local command."""
    text = "<local-command-caveat>A local command follows; nobody asked anything with it.</local-command-caveat>"
    if not agent.release.has("caveat_tag"):
        text = "Caveat: a local command follows; nobody asked anything with it."
    agent.journal.user(text, meta=True, at=at)


def echo(agent: Agent, command: str, record_id: str, output: str) -> None:
    """The three `user` records that a local command leaves: a caveat, its name and its output, all with one stamp."""
    at = time.time()
    agent.journal.new_prompt()
    caveat(agent, at)
    agent.journal.user(_name_echo(command), record_id=record_id, at=at)
    agent.journal.user(f"<local-command-stdout>{output}</local-command-stdout>", at=at)


class _Local:
    """A command without the model: records that echo it, and a result of no turns."""

    def __init__(self, agent: Agent, given: Input, command: str) -> None:
        self.agent = agent
        self.given = given
        self.command = command
        ids = [] if given.input_id is None else [given.input_id]
        self.mark = TurnMark(inputs=ids, begun=len(ids))

    def _begin(self, *, init: bool = True) -> None:
        self.agent.journal.new_prompt()
        if self.given.source != "typed":
            self.agent.journal.queue("dequeue")
        self.agent.stream.lifecycle(self.given.input_id, "started")
        history.write_answers(self.agent)
        if init:
            self._init()

    def _init(self) -> None:
        self.agent.stream.init(self.agent.settings.model, self.agent.settings.permission_mode, self.mark)

    def _end(self, text: str) -> None:
        self.agent.stream.result(self.mark, text, reason=None, num_turns=0 if self.agent.release.has("local_num_turns") else 3)
        self.agent.stream.lifecycle(self.given.input_id, "completed")

    def _caveat(self) -> None:
        caveat(self.agent)

    def _name(self) -> None:
        self.agent.journal.user(_name_echo(self.command), record_id=self.given.input_id)

    def _output(self, text: str, *, on_stdout: bool = True) -> None:
        wrapped = f"<local-command-stdout>{text}</local-command-stdout>"
        agent = self.agent
        if agent.release.has("system_local_command"):
            record_id = agent.journal.system("local_command", content=wrapped, level="info", isMeta=False)
            if on_stdout:
                message = messages.synthetic(text, "end_turn" if agent.release.has("user_message") else "stop_sequence")
                agent.stream.assistant(message, record_id, self.mark, marked=False)
        else:
            record_id = agent.journal.user(wrapped)
            if on_stdout:
                agent.stream.user(wrapped, record_id, replay=True)

    def echo(self, text: str) -> None:
        self._begin()
        self._caveat()
        self._name()
        self._output(text)
        self._end(text)

    def unknown(self) -> None:
        """No record of it has the input's id."""
        agent = self.agent
        text = f"Unknown command: {self.command}"
        if not agent.release.has("system_local_command"):
            text = f"Unknown skill: {self.command[1:]}" if agent.release.has("unknown_command_is_told") else ""
        self._begin()
        if agent.release.has("unknown_command_is_local"):
            agent.journal.system("local_command", content=joined(self.given.content), level="info", isMeta=False)
            self._output(text)
        else:
            self._caveat()
            agent.journal.user(text or f"Unknown slash command: {self.command[1:]}")
        self._end(text)

    def clear(self) -> None:
        agent = self.agent
        self._begin(init=False)
        agent.stream.conversation_reset(self.given.input_id)
        if agent.release.has("clear_says_more"):
            agent.stream.tasks([])
            agent.journal.named("-cost-state")
        agent.move(new_id())
        self._init()
        self._caveat()
        self._name()
        self._output("(no content)", on_stdout=not agent.release.has("cost_state"))
        self._end("")

    def compact(self) -> None:
        agent = self.agent
        self._begin(init=False)
        agent.stream.system("status", status="compacting")
        agent.stream.system("status", status=None)
        self._init()
        summary = "Summary of the conversation so far: " + model.recite(agent.memory)
        self._boundary(summary)
        agent.memory = [summary]
        agent.shape = "compact"
        self._end("")

    def _boundary(self, summary: str) -> None:
        agent = self.agent
        logical = agent.journal.leaf
        if agent.entrypoint == "cli" and agent.release.has("compact_prompt"):
            agent.journal.user(_name_echo(self.command), record_id=self.given.input_id)
            self.given.input_id = None
        agent.journal.leaf = None
        metadata = {"trigger": "manual", "preTokens": 20}
        fields: dict[str, Any] = {"content": "Conversation compacted", "level": "info", "compactMetadata": metadata}
        if agent.entrypoint != "cli" or not agent.release.has("cost_state"):
            fields["isMeta"] = False
        agent.journal.system("compact_boundary", logicalParentUuid=logical, **fields)
        agent.stream.system("compact_boundary", compact_metadata={"trigger": "manual", "pre_tokens": 20})
        agent.journal.compacting = True
        record_id = agent.journal.user(summary, isVisibleInTranscriptOnly=True, isCompactSummary=True)
        agent.stream.user(summary, record_id, replay=True, isSynthetic=True)
        self._caveat()
        self._name()
        output = "<local-command-stdout>Compacted</local-command-stdout>"
        agent.stream.user(output, agent.journal.user(output), replay=True)
        if agent.subagents and agent.release.has("task_status"):
            agent.journal.attachment("task_status")
        if agent.skills and agent.release.has("attachments"):
            agent.journal.attachment("invoked_skills")
        for name in shapes.of(agent.release, shapes.AFTER_COMPACT):
            agent.journal.named(name)
        agent.journal.compacting = False


class _Custom:
    """A command of the person's own: its text is put before the model."""

    def __init__(self, agent: Agent, given: Input, command: str, path: Path) -> None:
        self.agent = agent
        self.given = given
        self.command = command
        self.body = body_of(path)

    def run(self) -> None:
        Turn(self.agent, [self.given], prompt=self._prompt).run()

    def _prompt(self) -> str:
        journal = self.agent.journal
        journal.user(_name_echo(self.command), record_id=self.given.input_id, **journal.turn_origin("sdk"))
        journal.user([{"type": "text", "text": self.body}], meta=True)
        if self.agent.release.has("attachments"):
            journal.attachment("command_permissions")
        self.agent.skills = True
        self.agent.memory.append(self.body)
        return self.body
