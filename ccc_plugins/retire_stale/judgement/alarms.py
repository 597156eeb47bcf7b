"""What inside a headless will start a turn by itself later: wake-ups and scheduled jobs, as the results of its tool calls tell.

Measured on 2.1.119 to 2.1.332. There is one wake-up at most: a new one takes the place of the one before, and `stop` ends it. A job's
result names its id and, beside the text, from 2.1.332 on, when it runs next. A one-shot job is gone once it has run, a recurring one is
there until it is deleted (or for 7 or 30 days). `CronList` says what is armed at that moment, the wake-up among the one-shot jobs,
under an id that nothing else names; on releases that take jobs over from the process before (2.1.216 and later), those too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TELLING = frozenset({"ScheduleWakeup", "CronCreate", "CronDelete", "CronList"})
"""The tools whose results say something of alarms."""

_WAKEUP = "wakeup"
_JOB = "scheduled job"
_IN = re.compile(r"\(in (\d+)\s*s\)")
_NOT_ARMED = ("not scheduled", "not armed", "error", "invalid")
_ENDED = "Loop stopped"
_ID = re.compile(r"\b(?:job|task)\s+([A-Za-z0-9_-]{4,})")
_LISTED = re.compile(r"^([A-Za-z0-9_-]{4,}) \u2014 (.*)$", re.MULTILINE)
_NONE_LISTED = "No scheduled jobs"


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something inside the process that will start a turn by itself. `due`: seconds since the epoch, None when that is not known, or
    when it comes again and again."""

    key: str
    kind: str
    due: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of one tool call: the call's `id`, `name` and input (`given`), the result's `text`, whether it `failed`, what is
    `said` beside the text, and when it was printed (`at`, epoch seconds; older releases do not say)."""

    id: str
    name: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    failed: bool = False
    said: Mapping[str, Any] = field(default_factory=dict)
    at: float | None = None


def take(alarms: dict[str, Alarm], result: ToolResult) -> None:
    """Change the alarms as this result says."""
    if result.failed:
        return
    match result.name:
        case "ScheduleWakeup":
            _wake_up(alarms, result)
        case "CronCreate":
            _create(alarms, result)
        case "CronDelete":
            alarms.pop(str(result.given.get("id")), None)
            if result.said.get("endedLoopWakeup") is True:
                alarms.pop(_WAKEUP, None)
        case "CronList":
            _list(alarms, result)


def fired(alarms: dict[str, Alarm], scheduled_for: object) -> None:
    """A turn began that was scheduled for this moment, in milliseconds since the epoch: what was due by then is armed no more."""
    moment = _seconds(scheduled_for)
    for alarm in list(alarms.values()):
        if moment is not None and alarm.due is not None and alarm.due <= moment + 1:
            del alarms[alarm.key]


def _wake_up(alarms: dict[str, Alarm], result: ToolResult) -> None:
    said = result.said.get("scheduledFor")
    if result.given.get("stop") is True or result.text.startswith(_ENDED) or result.said.get("stopped") is True:
        alarms.pop(_WAKEUP, None)
    elif said != 0 and not any(word in result.text[:80].lower() for word in _NOT_ARMED):
        alarms[_WAKEUP] = Alarm(_WAKEUP, "wake-up", _seconds(said) or _due(result))


def _due(result: ToolResult) -> float | None:
    """When a wake-up fires: the later of what was asked for and what was answered; not known for what the log does not date."""
    asked, said = result.given.get("delaySeconds"), _IN.search(result.text)
    delays = [float(asked)] if isinstance(asked, int | float) and not isinstance(asked, bool) else []
    delays += [float(said.group(1))] if said else []
    return result.at + max(delays) if result.at is not None and delays else None


def _create(alarms: dict[str, Alarm], result: ToolResult) -> None:
    named = _ID.search(result.text)
    key = result.said.get("id") or (named.group(1) if named else result.id)
    once = result.said.get("recurring", result.given.get("recurring")) is False
    alarms[str(key)] = Alarm(str(key), _JOB, _seconds(result.said.get("nextFireAt")) if once else None)


def _list(alarms: dict[str, Alarm], result: ToolResult) -> None:
    """Keep what is listed. Of one-shot jobs that nothing named before, one is the wake-up."""
    listed = _listed(result)
    if listed is None:
        return
    unknown = [key for key, once in listed.items() if once and key not in alarms]
    kept = {_WAKEUP: alarms[_WAKEUP]} if unknown and _WAKEUP in alarms else {}
    for key in listed:
        if key in alarms:
            kept[key] = alarms[key]
        elif _WAKEUP not in kept or key not in unknown[:1]:
            kept[key] = Alarm(key, _JOB, None)
    alarms.clear()
    alarms.update(kept)


def _listed(result: ToolResult) -> Mapping[str, bool] | None:
    """The listed jobs' ids, and whether each runs only once; None when the result cannot be read."""
    jobs = result.said.get("jobs")
    if isinstance(jobs, list):
        return {str(job.get("id")): job.get("recurring") is not True for job in jobs if isinstance(job, Mapping)}
    found = {key: "(recurring)" not in rest for key, rest in _LISTED.findall(result.text)}
    return found if found or result.text.startswith(_NONE_LISTED) else None


def _seconds(milliseconds: object) -> float | None:
    """Epoch milliseconds as seconds; None for anything else, and for 0."""
    if not isinstance(milliseconds, int | float) or isinstance(milliseconds, bool) or milliseconds <= 0:
        return None
    return milliseconds / 1000
