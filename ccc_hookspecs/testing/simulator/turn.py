"""One turn: from the inputs that begin it to its result, through as many answers and tools as the model asks for."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NoReturn

from ccc_hookspecs.testing.simulator import branch, model, shapes
from ccc_hookspecs.testing.simulator.agent import Agent, Input, Interrupted
from ccc_hookspecs.testing.simulator.calls import Call, run_calls
from ccc_hookspecs.testing.simulator.journal import new_id
from ccc_hookspecs.testing.simulator.stream import USAGE, TurnMark


class Turn:
    """Runs one turn of `agent` on `inputs`, one or several that had been queued together. `prompt` writes what begins it in another way."""

    def __init__(self, agent: Agent, inputs: list[Input], *, prompt: Callable[[], None] | None = None) -> None:
        self.agent = agent
        self.journal = agent.journal
        self.stream = agent.stream
        self.inputs = inputs
        ids = [given.input_id for given in inputs if given.input_id is not None]
        self.mark = TurnMark(inputs=ids, begun=len(ids))
        self.text = ""
        self._prompt = prompt or self._prompt_record
        self._answered = False
        self._failed: str | None = None
        self._joined: list[str] = []
        self._late: float | None = None

    def run(self) -> str:
        """Run it to its end; returns the text of the last answer."""
        self._begin()
        try:
            while self._round():
                self._join_queued()
        except Interrupted:
            self._interrupted()
        else:
            self._end("completed")
        return self.text

    # --- the parts of a turn --------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        agent = self.agent
        for given in self.inputs:
            if given.source != "typed":
                self.journal.queue("dequeue")
            self.stream.lifecycle(given.input_id, "started")
        self.stream.init(agent.settings.model, agent.settings.permission_mode, self.mark)
        if agent.open_turn and agent.release.has("synthetic_after_open_turn"):
            self.journal.assistant(synthetic("No answer was asked for.", "stop_sequence"), error=False)
        agent.open_turn = False
        if not agent.release.has("early_prompt"):
            self.journal.hold()
        self._prompt()
        for name in shapes.of(agent.release, shapes.BEFORE_ANSWER[self._situation()]):
            self.journal.named(name)

    def _prompt_record(self) -> None:
        """One record for all inputs, under the last one's id, as Claude Code merges what was queued together."""
        first = self.inputs[0]
        content = first.content if len(self.inputs) == 1 else _merged([given.content for given in self.inputs])
        record_id = self.inputs[-1].input_id or new_id()
        if self.agent.entrypoint == "cli":
            self.journal.snapshot(record_id)
        merged = self.mark.inputs[:-1] if self.agent.release.has("merged_send_uuids") else []
        self.journal.prompt(content, record_id=record_id, source=first.source, origin=first.origin, merged=merged)
        self.agent.known.add(record_id)
        self.agent.memory.extend(text for text in branch.content_texts(content) if not branch.is_echo(text))
        if self.agent.settings.replays:
            self.stream.user(content, record_id, replay=True)

    def _situation(self) -> shapes.Situation:
        match self.agent.situation:
            case "begin" | "terminal" | "compact" as known:
                return known
        return "later"

    def _round(self) -> bool:
        """One request to the model; True when its answer was tools, so that another must follow."""
        after_tools = self.mark.rounds > 0
        self.mark.rounds += 1
        match model.answer(self.agent.memory, after_tools=after_tools):
            case model.Say() as say:
                self._say(say)
            case model.Misbehave(what="crash"):
                _crash()
            case model.Misbehave(then=say):
                self.agent.inbox.listen(deaf=True)
                self._say(say)
            case model.Refused() as refused:
                self._refused(refused)
            case model.UseTools(uses=uses):
                self._use(uses)
                return True
        return False

    def _say(self, say: model.Say) -> None:
        self.agent.pause(say.seconds)
        self._late = say.late if say.late is not None else self.agent.settings.late_flush
        if self._late is not None:
            self.agent.hold()
        message_id = _message_id()
        if say.thinking is not None:
            self.stream_thinking()
            self._block({"type": "thinking", "thinking": say.thinking, "signature": ""}, message_id, "end_turn")
        self._block({"type": "text", "text": say.text}, message_id, "end_turn")
        self.text = say.text

    def stream_thinking(self) -> None:
        if self.agent.release.has("thinking_tokens"):
            mark = {"user_message_uuid": self.mark.inputs[-1]} if self.mark.inputs and self.agent.release.has("user_message") else {}
            self.stream.system("thinking_tokens", estimated_tokens=1, **mark)

    def _block(self, block: dict[str, Any], message_id: str, stop_reason: str) -> str:
        """One content block of an answer, on stdout and in the transcript; returns the record's `uuid`."""
        message: dict[str, Any] = {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": self.agent.settings.model,
            "content": [block],
        }
        message |= {"stop_reason": stop_reason, "stop_sequence": None, "usage": dict(USAGE)}
        if self._late is None and not self.agent.release.has("early_prompt"):
            self.agent.flush()
        record_id = new_id()
        self.stream.assistant(message, record_id, self.mark)
        self.journal.assistant(message, record_id=record_id)
        if not self._answered:
            self._answered = True
            for name in shapes.of(self.agent.release, shapes.AFTER_ANSWER[self._situation()]):
                self.journal.named(name)
            self.agent.situation = "later"
        return record_id

    def _refused(self, refused: model.Refused) -> None:
        message = synthetic(f"API Error: {refused.status} {refused.message}", "stop_sequence")
        self.text = message["content"][0]["text"]
        self.agent.flush()
        record_id = self.journal.assistant(message, error=True)
        self.stream.assistant(message, record_id, self.mark)
        self._failed = "api_error" if self.agent.release.has("api_error_reason") else "completed"

    def _use(self, uses: tuple[model.ToolUse, ...]) -> None:
        message_id = _message_id()
        calls = [Call(use) for use in uses]
        for call in calls:
            call.assistant = self._block(call.block(self.agent.release), message_id, "tool_use")
        run_calls(self.agent, calls)
        for name in shapes.of(self.agent.release, shapes.BEFORE_ANSWER["later"]):
            self.journal.named(name)

    def _join_queued(self) -> None:
        """Inputs that came in meanwhile join the turn after its tools, in releases since the oldest measured."""
        taken = [given for given in self.agent.queue if not _is_command(given)]
        for given in taken:
            self.agent.queue.remove(given)
            self.journal.dequeue_mid_turn(given.content, given.input_id or new_id(), given.at)
            self.stream.lifecycle(given.input_id, "started")
            self.agent.memory.extend(branch.content_texts(given.content))
            if given.input_id is not None:
                self._joined.append(given.input_id)

    # --- how it ends ----------------------------------------------------------------------------------------------------

    def _end(self, reason: str) -> None:
        for joined in self._joined:
            self.stream.lifecycle(joined, "completed")
        begun = list(self.mark.inputs)
        state = "completed" if self._failed is None else "cancelled"
        fields: dict[str, Any] = {"is_error": True} if self._failed is not None else {}
        if self.inputs[0].origin is not None and self.agent.release.has("result_origin"):
            fields["origin"] = self.inputs[0].origin
        self.mark.inputs.extend(self._joined)
        self.stream.result(self.mark, self.text, reason=self._failed or reason, **fields)
        for input_id in begun:
            self.stream.lifecycle(input_id, state)
        if self._late is not None:
            self.agent.flush_in(self._late)

    def _interrupted(self) -> None:
        self.agent.flush()
        record_id = self.journal.user([{"type": "text", "text": "[Request interrupted by user]"}])
        self.stream.user([{"type": "text", "text": "[Request interrupted by user]"}], record_id)
        self.stream.result(self.mark, "", subtype="error_during_execution", is_error=True, reason="aborted_streaming")
        for input_id in self.mark.inputs:
            self.stream.lifecycle(input_id, "cancelled")


def synthetic(text: str, stop_reason: str) -> dict[str, Any]:
    """A message that no model wrote."""
    message: dict[str, Any] = {"id": new_id(), "type": "message", "role": "assistant", "model": "<synthetic>", "stop_reason": stop_reason}
    return message | {"stop_sequence": "", "usage": dict(USAGE), "content": [{"type": "text", "text": text}]}


def _merged(contents: list[Any]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for content in contents:
        blocks.extend([{"type": "text", "text": content}] if isinstance(content, str) else content)
    return blocks


def _is_command(given: Input) -> bool:
    texts = branch.content_texts(given.content)
    return bool(texts) and texts[0].startswith("/")


def _message_id() -> str:
    return "msg_" + new_id().replace("-", "")[:20]


def _crash() -> NoReturn:
    os._exit(1)
