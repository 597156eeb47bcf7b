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
    """Take an input with `shouldQuery: false` into memory and transcript; it is acknowledged by a result of no turn.

    One whose content is an empty list is acknowledged too, and leaves nothing but the answers that were not written yet.
    """
    ids = [] if given.input_id is None else [given.input_id]
    mark = TurnMark(inputs=ids, begun=len(ids))
    # A tool's result, or nothing at all.
    no_text = not branch.content_texts(given.content)
    if not (no_text and agent.release.has("textless_keeps_prompt")):
        agent.journal.new_prompt()
    agent.journal.queue("dequeue")
    agent.stream.lifecycle(given.input_id, "started")
    _hear_what_overtakes(agent)
    agent.stream.init(agent.settings.model, agent.settings.permission_mode, mark)
    close_open_turn(agent)
    write_answers(agent)
    _write(agent, given)
    for name in shapes.of(agent.release, shapes.AFTER_TEXTLESS) if no_text else ():
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
    if given.content == []:
        agent.journal.length += 1
        return
    meta = given.synthetic and agent.release.has("synthetic_is_meta")
    content = given.content or "(no content)"
    content = _marked(content) if meta and agent.release.has("marks_synthetic") else content
    agent.journal.fed_input(content, record_id=given.input_id, meta=meta)
    commands.note_unknown(agent, content)
    agent.memory.extend(branch.texts({"type": "user", "isMeta": meta, "message": {"content": content}}))


def _marked(content: Any) -> Any:
    """The content with a first line that says that nobody typed it."""
    if isinstance(content, str):
        return f"{_NOT_A_PERSON}\n{content}"
    return [messages.text_block(_NOT_A_PERSON), *content]
