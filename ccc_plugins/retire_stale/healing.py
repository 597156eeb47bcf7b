"""Giving a running headless what it does not know, as history on its input: after that it is as good as a fresh one.

Each record goes in by the host, one by one and in order; a message of a person's is waited for until the process says that it has it. At
the end stands an input that says nothing: with it the process writes what it keeps back. What it has is seen in the transcript alone, so
that a healing that was broken off anywhere goes on at the next try.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ccc_hookspecs.claude.jsonl import JsonlFollower, parse
from ccc_hookspecs.errors import NotWritten
from ccc_hookspecs.specs import Host
from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.evidence.frames import Frame, closing_frame
from ccc_plugins.retire_stale.identity import presence

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.002
"""Seconds between two looks at what the process says."""


class Unfinished(Exception):
    """Not all of it was taken. The message says why."""


@dataclass(frozen=True, slots=True)
class Patient:
    """A headless that is given something, with its two files. `end`: on the monotonic clock, when that has to be done."""

    headless: Headless
    stdout_log: Path
    transcript: Path
    end: float


def give(ccc: Host, patient: Patient, frames: Sequence[Frame]) -> None:
    """Write these lines and wait until the transcript holds their records. The caller holds the session's lock.

    Raises `Unfinished` when the process did not take one, when a turn began meanwhile, and when the time is over.
    """
    said, written = _Said(patient), _Written(patient)
    for frame in [*frames, closing_frame(patient.headless.session_id)]:
        try:
            ccc.write(patient.headless, frame.line)
        except NotWritten as error:
            raise Unfinished(error.reason) from error
        if frame.acknowledged:
            said.wait_for(frame)
    written.wait_for({frame.message_id for frame in frames})


class _Said:
    """What the process says on its stdout from now on."""

    def __init__(self, patient: Patient) -> None:
        self._patient = patient
        self._follower = _from_now_on(patient.stdout_log)

    def wait_for(self, frame: Frame) -> None:
        """Wait until it says that it has taken a message: by a result, which comes for one that it had before in none of the releases."""
        while True:
            for line in self._follower.lines():
                for record in parse(line):
                    match record.data:
                        case {"type": "result"}:
                            return
                        case {"type": "command_lifecycle", "command_uuid": frame.message_id, "state": "completed"}:
                            raise Unfinished("it has loaded what it was given")
                        case {"type": "assistant" | "stream_event"}:
                            raise Unfinished("a turn began meanwhile")
            _pause(self._patient, "it did not say that it took what it was given")


class _Written:
    """What stands in the transcript from now on."""

    def __init__(self, patient: Patient) -> None:
        self._patient = patient
        self._follower = _from_now_on(patient.transcript)

    def wait_for(self, uuids: set[str]) -> None:
        """Wait until records with all of these ids stand there."""
        missing = set(uuids)
        while True:
            for line in self._follower.lines():
                missing.difference_update(str(record.data.get("uuid")) for record in parse(line))
            if not missing:
                return
            _pause(self._patient, "it did not write what it was given")


def _from_now_on(path: Path) -> JsonlFollower:
    return JsonlFollower(path, start=path.stat().st_size)


def _pause(patient: Patient, silence: str) -> None:
    headless = patient.headless
    if time.monotonic() >= patient.end:
        raise Unfinished(silence)
    if presence(headless.pid, headless.start_time) == "gone":
        raise Unfinished("it has exited")
    time.sleep(LOOK_SECONDS)
