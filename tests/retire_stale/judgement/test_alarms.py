"""Wake-ups and scheduled jobs, by what real Claude Code 2.1.119 to 2.1.332 answers to the calls that make and end them."""

from __future__ import annotations

from typing import Any

import pytest

from ccc_plugins.retire_stale.judgement.alarms import TELLING, Alarm, ToolResult, fired, take

WAKEUP = "Next wakeup scheduled for 13:15:00 (in 1522s). If you owe the user a status update this tick, write it now"
JOB = "Scheduled recurring job 1671a8c8 (Every day at 3:07 AM). Session-only (not written to disk, dies when Claude exits)."
ONCE = "Scheduled one-shot task c0689248 (53 12 30 11 *). Next run: Nov 30 12:53pm. Session-only"
LISTED = "1671a8c8 \u2014 Every day at 3:07 AM (recurring) [session-only]: hi"
LIST = f"{LISTED}\nb2d8af6b \u2014 Every day at 12:52 PM (one-shot) [session-only]: wake"


class Armed(dict[str, Alarm]):
    """The alarms after some results."""

    def take(self, name: str, text: str, given: dict[str, Any] | None = None, *, failed: bool = False, **said: Any) -> Armed:
        take(self, ToolResult(id="toolu_1", name=name, given=given or {}, text=text, failed=failed, said=said, at=1000.0))
        return self

    @property
    def due(self) -> dict[str, float | None]:
        return {key: alarm.due for key, alarm in self.items()}


def test_a_wake_up_is_due_when_the_answer_says() -> None:
    """The moment beside the text counts, else the delay in it, which is longer than the one asked for: it waits for a full minute."""
    assert Armed().take("ScheduleWakeup", WAKEUP, {"delaySeconds": 1500}, scheduledFor=1796044500000).due == {"wakeup": 1796044500.0}
    assert Armed().take("ScheduleWakeup", WAKEUP, {"delaySeconds": 1500}).due == {"wakeup": 2522.0}
    assert Armed().take("ScheduleWakeup", "Next wakeup scheduled", {"delaySeconds": 1500}).due == {"wakeup": 2500.0}


def test_a_second_wake_up_takes_the_place_of_the_first() -> None:
    """There is one at most."""
    armed = Armed().take("ScheduleWakeup", WAKEUP, {"delaySeconds": 1500})
    assert armed.take("ScheduleWakeup", "(in 96s)", {"delaySeconds": 60}).due == {"wakeup": 1096.0}


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        pytest.param(
            "Loop stopped \u2014 cancelled 1 pending wakeup(s)", {"stop": True}, {"scheduledFor": 0, "stopped": True}, id="2.1.275"
        ),
        pytest.param("Loop stopped \u2014 any dynamic loop in this session is ended", {"stop": True}, {}, id="without what is beside it"),
        pytest.param("Ended.", {"stop": True}, {}, id="in other words"),
        pytest.param("Ended.", {}, {"stopped": True, "scheduledFor": 0}, id="said beside the text"),
    ],
)
def test_a_stopped_loop_has_no_wake_up(text: str, given: dict[str, Any], said: dict[str, Any]) -> None:
    """A stop disarms what was armed, and arms nothing where nothing was."""
    armed = Armed().take("ScheduleWakeup", WAKEUP, {"delaySeconds": 1500})
    assert armed.take("ScheduleWakeup", text, given, **said) == {}
    assert Armed().take("ScheduleWakeup", text, given, **said) == {}


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("Wakeup not scheduled. Either the /loop dynamic runtime is off", False),
        ("<tool_use_error>InputValidationError: ScheduleWakeup failed", True),
        ("<tool_use_error>Error: No such tool available: ScheduleWakeup</tool_use_error>", True),
    ],
)
def test_a_refused_wake_up_changes_nothing(text: str, failed: bool) -> None:
    """2.1.119 to 2.1.216 refuse one outside a loop; one that was armed before stays."""
    assert Armed().take("ScheduleWakeup", text, {"delaySeconds": 1500}, failed=failed) == {}
    before = Armed().take("ScheduleWakeup", WAKEUP, {"delaySeconds": 1500})
    assert before.take("ScheduleWakeup", text, {"delaySeconds": 60}, failed=failed).due == {"wakeup": 2522.0}


def test_a_recurring_job_is_armed_until_it_is_deleted() -> None:
    """When it runs next says nothing of when it ends."""
    armed = Armed().take("CronCreate", JOB, {"cron": "7 3 * * *"}, id="1671a8c8", recurring=True, nextFireAt=1796096220000)
    assert armed.due == {"1671a8c8": None}
    assert armed.take("CronDelete", "<tool_use_error>No scheduled job with id 'zzzz'", {"id": "zzzz"}, failed=True).due == {
        "1671a8c8": None
    }
    assert armed.take("CronDelete", "Cancelled job 1671a8c8.", {"id": "1671a8c8"}, id="1671a8c8") == {}


@pytest.mark.parametrize(("text", "key"), [(JOB, "1671a8c8"), (ONCE, "c0689248"), ("Scheduled.", "toolu_1")])
def test_a_job_is_known_by_the_id_in_the_text(text: str, key: str) -> None:
    """Where nothing stands beside the text; without any id it is known by its call, and stays."""
    assert Armed().take("CronCreate", text).due == {key: None}


def test_a_job_that_runs_once_is_armed_until_then() -> None:
    """2.1.332 says when; of an earlier release only the expression is known, and the job stays armed."""
    said: dict[str, Any] = {"id": "c0689248", "recurring": False}
    assert Armed().take("CronCreate", ONCE, {"recurring": False}, **said, nextFireAt=1796043180000).due == {"c0689248": 1796043180.0}
    assert Armed().take("CronCreate", ONCE, {"recurring": False}, **said).due == {"c0689248": None}


def test_a_refused_job_is_not_armed() -> None:
    """A call that failed changes nothing."""
    assert Armed().take("CronCreate", "<tool_use_error>Error: Invalid cron</tool_use_error>", failed=True) == {}


@pytest.mark.parametrize("beside", [True, False], ids=["beside the text", "in the text"])
def test_a_list_says_what_is_armed(beside: bool) -> None:
    """What is listed is armed, be it taken over from the process before, and what is not listed is gone."""
    jobs: dict[str, Any] = {"jobs": [{"id": "1671a8c8", "recurring": True}, {"id": "b2d8af6b"}]} if beside else {}
    none: dict[str, Any] = {"jobs": []} if beside else {}
    armed = Armed().take("CronCreate", "Scheduled recurring job e2ae15ad (x)")
    assert armed.take("CronList", LIST, **jobs).due == {"1671a8c8": None, "b2d8af6b": None}
    assert armed.take("CronList", "No scheduled jobs.", **none) == {}


def test_the_wake_up_is_listed_under_an_id_that_nothing_named() -> None:
    """It keeps its time, and is gone when no such job is listed."""
    armed = Armed().take("CronCreate", JOB).take("ScheduleWakeup", "(in 96s)", {"delaySeconds": 60})
    assert armed.take("CronList", LIST).due == {"wakeup": 1096.0, "1671a8c8": None}
    assert armed.take("CronList", LISTED).due == {"1671a8c8": None}


def test_a_list_that_cannot_be_read_says_nothing() -> None:
    """What was armed stays."""
    assert Armed().take("CronCreate", JOB).take("CronList", "?").due == {"1671a8c8": None}


def test_deleting_the_job_behind_a_wake_up_ends_it() -> None:
    """2.1.332 says so."""
    armed = Armed().take("ScheduleWakeup", WAKEUP, {"delaySeconds": 1500})
    assert armed.take("CronDelete", "Cancelled job b2d8af6b.", {"id": "b2d8af6b"}, endedLoopWakeup=True) == {}


def test_a_turn_that_was_scheduled_uses_up_what_was_due() -> None:
    """What is due later, or at no known time, stays."""
    armed = Armed({"now": Alarm("now", "wake-up", 100.0), "later": Alarm("later", "wake-up", 900.0), "job": Alarm("job", "job", None)})
    fired(armed, None)
    fired(armed, "soon")
    assert len(armed) == 3
    fired(armed, 100_000)
    assert set(armed) == {"later", "job"}


def test_other_tools_arm_nothing() -> None:
    """Whatever their results say."""
    assert Armed().take("Bash", JOB) == {}
    assert "Bash" not in TELLING
