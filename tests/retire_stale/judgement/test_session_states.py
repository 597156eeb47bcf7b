"""What a reported session state says beside the end of a turn."""

from __future__ import annotations

from ccc_plugins.retire_stale.judgement.idleness import IdlenessFacts, judge_idleness
from ccc_plugins.retire_stale.judgement.stream import Stream

INIT = {"type": "system", "subtype": "init"}
RESULT = {"type": "result", "subtype": "success"}
RUNNING = {"type": "system", "subtype": "session_state_changed", "state": "running"}
IDLE = {"type": "system", "subtype": "session_state_changed", "state": "idle"}


def verdict(*events: dict[str, str]) -> str:
    stream = Stream()
    for event in events:
        stream.feed(event)
    facts = IdlenessFacts(now=0.0, log="readable", stream=stream, unacknowledged=(), asked=True, unread=0, tools=(), children=0)
    return judge_idleness(facts).verdict


def test_a_session_that_says_it_runs_is_busy_after_the_result_too() -> None:
    """2.1.119 and 2.1.168 keep saying `running` after the result while a background task is open."""
    assert verdict(RUNNING, INIT, RESULT) == "busy"


def test_a_session_that_says_it_is_idle_is_idle() -> None:
    """The state and the result may come in either order."""
    assert verdict(RUNNING, INIT, RESULT, IDLE) == "idle"
    assert verdict(RUNNING, INIT, IDLE) == "idle"


def test_where_no_state_is_reported_the_result_decides() -> None:
    """Without session states a turn ends with its result."""
    assert verdict(INIT) == "busy"
    assert verdict(INIT, RESULT) == "idle"
