"""One turn: from the inputs that begin it to its result, through as many answers and tools as the model asks for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from ccc_hookspecs.claude.text import well_formed
from ccc_hookspecs.testing.simulator import branch, commands, history, messages, model, shapes
from ccc_hookspecs.testing.simulator.agent import Agent, Input, Interrupted
from ccc_hookspecs.testing.simulator.calls import Call, run_calls
from ccc_hookspecs.testing.simulator.lines import new_id
from ccc_hookspecs.testing.simulator.stream import TurnMark


class Turn:
    """Runs one turn of `agent` on `inputs`, one or several that had been queued together.

    `prompt` writes what begins it in another way than as one record, and returns what the model is asked.
    """

    def __init__(self, agent: Agent, inputs: list[Input], *, prompt: Callable[[], str] | None = None) -> None:
        self.agent = agent
        self.journal = agent.journal
        self.stream = agent.stream
        self.inputs = inputs
        ids = [given.input_id for given in inputs if given.input_id is not None]
        self.mark = TurnMark(inputs=ids, begun=len(ids))
        self._record_id = inputs[-1].input_id or new_id()
        self.text = ""
        self._own_prompt = prompt is not None
        self._prompt = prompt or self._prompt_record
        self._asked = ""
        self._answered = False
        self._failed: str | None = None
        self._in_tools = False
        self._joined: list[str] = []
        self._unseen: list[str] = []
        self._late: float | None = None

    def run(self) -> str:
        """Run it to its end; returns the text of the last answer."""
        self._begin()
        try:
            while self._round():
                self._asked = ""
        except Interrupted:
            self._interrupted()
        else:
            self._end()
        return self.text

    # --- how it begins --------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        agent = self.agent
        self.journal.new_prompt()
        for given in self.inputs:
            if given.source != "typed":
                self.journal.queue("dequeue")
            self.stream.lifecycle(given.input_id, "started")
        self.stream.init(agent.settings.model, agent.settings.permission_mode, self.mark)
        if agent.entrypoint == "cli":
            self.journal.snapshot(self._record_id)
        history.close_open_turn(agent)
        history.write_answers(agent)
        if not agent.release.has("early_prompt"):
            self.journal.hold()
        while agent.progress:
            self.journal.progress(agent.progress.pop(0))
        self._asked = self._prompt()

    def _prompt_record(self) -> str:
        """One record for all inputs, under the last one's id, as Claude Code merges what was queued together."""
        first = self.inputs[0]
        content = first.content if len(self.inputs) == 1 else messages.merged([given.content for given in self.inputs])
        swallowed = self.mark.inputs[:-1] if self.agent.release.has("merged_send_uuids") else []
        self.journal.prompt(content, record_id=self._record_id, source=first.source, origin=first.origin, merged=swallowed)
        commands.note_unknown(self.agent, content)
        texts = [text for text in branch.content_texts(content) if not branch.is_echo(text)]
        self.agent.memory.extend(texts)
        if self.agent.settings.replays:
            self.stream.user(content, self._record_id, replay=True)
        return texts[-1] if texts else ""

    # --- requests and answers -------------------------------------------------------------------------------------------

    def _round(self) -> bool:
        """One request to the model; True when another must follow, after tools or for inputs that the answer did not see."""
        for name in shapes.of(self.agent.release, shapes.BEFORE_ANSWER[self._situation()]):
            self.journal.named(name)
        if not self.agent.release.has("subagents_end_late"):
            self.agent.end_subagents()
        self.mark.rounds += 1
        match model.answer(self._sent(), self._asked):
            case model.Say() as say:
                self._say(say)
                return self._see_unseen()
            case model.Misbehave(what="crash"):
                _crash()
            case model.Misbehave(then=say):
                self.agent.inbox.listen(deaf=True)
                self._say(say)
            case model.Refused() as refused:
                self._refused(refused)
            case model.UseTools(uses=uses):
                self._use(uses)
                self._join_queued()
                return True
        return False

    def _sent(self) -> list[str]:
        memory = self.agent.memory
        return [well_formed(text) for text in memory] if self.agent.release.has("well_formed_requests") else memory

    def _situation(self) -> shapes.Situation:
        if self.mark.rounds == 0 and self.agent.shape == "later" and (self._own_prompt or self.inputs[0].source == "system"):
            return "aside"
        return self.agent.shape if self.mark.rounds == 0 else "later"

    def _say(self, say: model.Say) -> None:
        message_id = messages.new_message_id()
        try:
            self.agent.pause(say.seconds)
            while say.until is not None and not Path(say.until).exists():
                self.agent.pause(0.02)
        except Interrupted:
            if self.agent.release.has("partial_answer"):
                self._block(messages.text_block("w0 "), message_id, None)
            raise
        self._late = say.late if say.late is not None else self.agent.settings.late_flush
        if self._late is not None:
            self.agent.hold()
        if say.thinking is not None:
            self._thinking()
            self._block({"type": "thinking", "thinking": say.thinking, "signature": ""}, message_id, "end_turn")
        self._block(messages.text_block(say.text), message_id, "end_turn")
        self.text = say.text

    def _thinking(self) -> None:
        if self.agent.release.has("thinking_tokens"):
            mark = {"user_message_uuid": self.mark.inputs[-1]} if self.mark.inputs and self.agent.release.has("user_message") else {}
            self.stream.system("thinking_tokens", estimated_tokens=1, **mark)

    def _block(self, block: dict[str, Any], message_id: str, stop_reason: str | None) -> str:
        """One content block of an answer, on stdout and in the transcript; returns the record's `uuid`."""
        message = messages.message(message_id, self.agent.settings.model, block, stop_reason)
        if self._late is None and not self.agent.release.has("early_prompt"):
            self.agent.flush()
        record_id = new_id()
        self.stream.assistant(message, record_id, self.mark)
        self.journal.assistant(message, record_id=record_id)
        if not self._answered:
            self._answered = True
            for name in shapes.of(self.agent.release, shapes.AFTER_ANSWER[self.agent.shape]):
                self.journal.named(name)
            self.agent.shape = "later"
        return record_id

    def _refused(self, refused: model.Refused) -> None:
        message = messages.synthetic(f"API Error: {refused.status} {refused.message}", "stop_sequence")
        self.text = message["content"][0]["text"]
        self.agent.flush()
        record_id = self.journal.assistant(message, error=True)
        self.stream.assistant(message, record_id, self.mark)
        self._failed = "api_error" if self.agent.release.has("api_error_reason") else "completed"

    def _use(self, uses: tuple[model.ToolUse, ...]) -> None:
        message_id = messages.new_message_id()
        calls = [Call(use) for use in uses]
        self.journal.tools_used([call.block(self.agent.release)["name"] for call in calls])
        for call in calls:
            call.assistant = self._block(call.block(self.agent.release), message_id, "tool_use")
        self._in_tools = True
        self.mark.results += len(calls)
        run_calls(self.agent, calls)
        self._in_tools = False

    # --- inputs that come in meanwhile ----------------------------------------------------------------------------------

    def _join_queued(self) -> None:
        """Inputs that were queued while tools ran join this turn; up to 2.1.6 the next answer does not see them yet."""
        for given in [given for given in self.agent.queue if not messages.is_command(given.content)]:
            self.agent.queue.remove(given)
            self.journal.dequeue_mid_turn(given.content, given.input_id or new_id(), given.at)
            self.stream.lifecycle(given.input_id, "started")
            self._unseen.extend(branch.content_texts(given.content))
            if given.input_id is not None:
                self._joined.append(given.input_id)
        if self.agent.release.has("joins_before_answer"):
            self._see_unseen()

    def _see_unseen(self) -> bool:
        unseen, self._unseen = self._unseen, []
        self.agent.memory.extend(unseen)
        return bool(unseen)

    # --- how it ends ----------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        self.agent.end_subagents()
        for joined in self._joined:
            self.stream.lifecycle(joined, "completed")
        begun = list(self.mark.inputs)
        fields: dict[str, Any] = {"is_error": True} if self._failed is not None else {}
        if self.inputs[0].origin is not None and self.agent.release.has("result_origin"):
            fields["origin"] = self.inputs[0].origin
        self.mark.inputs.extend(self._joined)
        self.stream.result(self.mark, self.text, reason=self._failed or "completed", **fields)
        for input_id in begun:
            self.stream.lifecycle(input_id, "completed" if self._failed is None else "cancelled")
        if self._late is not None:
            self.agent.flush_in(self._late)

    def _interrupted(self) -> None:
        self.agent.flush()
        text = "[Request interrupted by user for tool use]" if self._in_tools else "[Request interrupted by user]"
        self.stream.user([messages.text_block(text)], self.journal.user([messages.text_block(text)]))
        failed = self.agent.release.has("interrupt_is_error")
        reason = "aborted_tools" if self._in_tools else "aborted_streaming"
        self.mark.results += 1
        self.stream.result(self.mark, "", subtype="error_during_execution", is_error=failed, reason=reason)
        for input_id in [*self.mark.inputs, *self._joined]:
            self.stream.lifecycle(input_id, "cancelled")


def _crash() -> NoReturn:
    os._exit(1)
