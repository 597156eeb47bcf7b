"""History that a host feeds to a running process: answers, and inputs that shall not be answered."""

from __future__ import annotations

from typing import Any

from ccc_hookspecs.testing.simulator import branch, commands, messages, shapes
from ccc_hookspecs.testing.simulator.agent import Agent, FedAnswer, Input
from ccc_hookspecs.testing.simulator.inbox import deadline, left
from ccc_hookspecs.testing.simulator.stream import TurnMark

OVERTAKEN = 0.005
"""Seconds from the beginning of a fed input to its record. Answers that come meanwhile are written first."""

_NOT_A_PERSON = "[MESSAGE FROM NON-USER SOURCE - NOT USER INPUT]"


def take_answer(agent: Agent, line: dict[str, Any]) -> None:
    """An answer that a host feeds: known at once, written before the next input, and lost when the process ends before that."""
    record_id = str(line.get("uuid"))
    if not agent.has_seen(record_id):
        agent.known.add(record_id)
        # Nothing else is written while the process is idle; within a turn it hangs on what stands there now, beside the turn's rest.
        parent = agent.journal.leaf if agent.in_turn else None
        agent.fed.append(FedAnswer(line.get("message") or {}, record_id, parent))
    agent.stream.lifecycle(record_id, "completed")


def serve(agent: Agent, given: Input) -> None:
    """Take an input with `shouldQuery: false` into memory and transcript; it is acknowledged by a result of no turn."""
    ids = [] if given.input_id is None else [given.input_id]
    mark = TurnMark(inputs=ids, begun=len(ids))
    is_result = _is_tool_result(given.content)
    if not (is_result and agent.release.has("fed_result_keeps_prompt")):
        agent.journal.new_prompt()
    agent.journal.queue("dequeue")
    agent.stream.lifecycle(given.input_id, "started")
    _hear_what_overtakes(agent)
    agent.stream.init(agent.settings.model, agent.settings.permission_mode, mark)
    close_open_turn(agent)
    write_answers(agent)
    _write(agent, given)
    for name in shapes.of(agent.release, shapes.AFTER_FED_RESULT) if is_result else ():
        agent.journal.named(name)
    agent.stream.result(mark, "", reason=None, num_turns=0 if agent.release.has("local_num_turns") else agent.journal.length - 1)
    agent.stream.lifecycle(given.input_id, "completed")


def write_answers(agent: Agent) -> None:
    """Write the answers that were fed and are not in the transcript yet."""
    parent = None
    for answer in agent.fed:
        parent = agent.journal.fed_answer(answer.message, answer.record_id, parent or answer.parent)
    agent.fed.clear()


def close_open_turn(agent: Agent) -> None:
    """Give a turn that was open when the session was loaded an answer that no model gave."""
    if agent.open_turn and agent.release.has("synthetic_after_open_turn"):
        if agent.release.has("synthetic_question"):
            agent.journal.user([messages.text_block("Go on where it stopped.")], meta=True)
        agent.journal.assistant(messages.synthetic("No answer was asked for.", "stop_sequence"), error=False)
    agent.open_turn = False


def _hear_what_overtakes(agent: Agent) -> None:
    until = deadline(OVERTAKEN)
    while left(until) > 0:
        agent.listen(left(until))


def _write(agent: Agent, given: Input) -> None:
    meta = given.synthetic and agent.release.has("synthetic_is_meta")
    content = _marked(given.content) if meta and agent.release.has("marks_synthetic") else given.content
    agent.journal.fed_input(content, record_id=given.input_id, meta=meta)
    commands.note_unknown(agent, content)
    agent.memory.extend(branch.texts({"type": "user", "isMeta": meta, "message": {"content": content}}))


def _is_tool_result(content: Any) -> bool:
    return isinstance(content, list) and any(isinstance(block, dict) and block.get("type") == "tool_result" for block in content)


def _marked(content: Any) -> Any:
    """The content with a first line that says that nobody typed it."""
    if isinstance(content, str):
        return f"{_NOT_A_PERSON}\n{content}"
    return [messages.text_block(_NOT_A_PERSON), *content]
