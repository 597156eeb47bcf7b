"""What is remembered of the headless agents of one host, and by what they are told apart."""

from __future__ import annotations

import sys
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ccc_hookspecs.testing.harness import SimulatedHeadless, Simulator
from ccc_hookspecs.testing.recording import RecordingHost
from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.evidence import evidence as module
from ccc_plugins.retire_stale.evidence.evidence import Evidence
from ccc_plugins.retire_stale.evidence.surroundings import Probe


@pytest.fixture
def head(simulator: Simulator, recording_host: RecordingHost) -> SimulatedHeadless:
    """A headless that answered once."""
    made = simulator.headless()
    made.ask("first")
    recording_host.adopt(made)
    return made


def test_a_pid_without_a_start_time_is_told_by_its_log(
    simulator: Simulator, recording_host: RecordingHost, head: SimulatedHeadless
) -> None:
    """Where a host knows no start time, another process of the same pid is not taken for the one before it."""
    evidence = Evidence()
    nameless = replace(head.headless, start_time=None, transcript_size=None, resumed=None)
    assert evidence.is_fresh(recording_host, nameless)
    simulator.terminal(head.session_id).ask("from terminal")
    assert evidence.attribution(recording_host, nameless).verdict == "stale"
    successor = simulator.headless(head.session_id)
    successor.ask("again")
    reused = replace(successor.headless, pid=head.pid, start_time=None)
    assert evidence.is_fresh(recording_host, reused)
    assert evidence.attribution(recording_host, nameless).verdict == "stale"


@pytest.mark.parametrize("late", [0.0, 3600.0], ids=["right", "an hour late"])
def test_a_spawn_that_was_noted_late_hides_no_turn(
    simulator: Simulator, recording_host: RecordingHost, head: SimulatedHeadless, late: float
) -> None:
    """By a clock that was set back since, or a local time that comes twice in a year: the process's age tells better."""
    resumed = simulator.headless(head.session_id)
    noted = replace(resumed.headless, transcript_size=None, spawned_at=(resumed.headless.spawned_at or 0.0) + late)
    simulator.terminal(head.session_id).ask("from terminal")
    assert Evidence().attribution(recording_host, noted).verdict == "stale"


@pytest.mark.parametrize("spelled", [str.upper, str.lower], ids=["upper case", "lower case"])
def test_a_session_id_counts_in_either_case(
    simulator: Simulator, recording_host: RecordingHost, head: SimulatedHeadless, spelled: Callable[[str], str]
) -> None:
    """A host that writes the id in capitals is answered from the same transcript."""
    evidence = Evidence()
    value = replace(head.headless, session_id=spelled(head.session_id))
    assert evidence.is_fresh(recording_host, value)
    assert evidence.judge(recording_host, value).resumable
    simulator.terminal(head.session_id).ask("from terminal")
    assert evidence.attribution(recording_host, value).verdict == "stale"
    assert evidence.judge(recording_host, value).idleness.verdict == "idle"


def test_what_is_remembered_is_bounded(recording_host: RecordingHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many processes are looked at, the memory holds the last few; one that is looked at again stays."""
    monkeypatch.setattr(module, "_OBSERVED", 8)
    evidence = Evidence()
    kept = Headless(session_id=str(uuid.uuid4()), pid=2**22 + 1, start_time=1.0, spawned_at=1.0)
    for number in range(100):
        passing = replace(kept, session_id=str(uuid.uuid4()), pid=2**22 + 2 + number)
        evidence.is_fresh(recording_host, passing)
        evidence.is_fresh(recording_host, kept)
    assert len(evidence._observed) == 8
    assert kept.pid in {pid for pid, *_ in evidence._observed}


def test_a_process_that_is_gone_is_forgotten(recording_host: RecordingHost, head: SimulatedHeadless) -> None:
    """Nothing of a process is left once it was told to be gone."""
    evidence = Evidence()
    evidence.judge(recording_host, head.headless)
    evidence.forget(head.headless)
    assert not evidence._observed


def test_processes_that_cannot_be_looked_at_are_unknown(
    simulator: Simulator, recording_host: RecordingHost, head: SimulatedHeadless, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the files say still stands when the looks around the headless fail, and then it is not idle."""

    def broken(*arguments: object, **named: object) -> None:
        raise ImportError("built for another Python")

    evidence = Evidence()
    simulator.terminal(head.session_id).ask("from terminal")
    monkeypatch.setattr(Probe, "around", broken)
    judgement = evidence.judge(recording_host, head.headless)
    assert judgement.attribution.verdict == "stale"
    assert judgement.idleness.verdict == "unknown"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the processes are psutil's to read")
@pytest.mark.case("C92")
def test_without_psutil_the_verdicts_are_the_same(
    recording_host: RecordingHost, head: SimulatedHeadless, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Linux a headless is judged where psutil cannot be imported."""
    monkeypatch.setitem(sys.modules, "psutil", None)
    judgement = Evidence(cpu_look_seconds=0.01).judge(recording_host, head.headless)
    assert (judgement.attribution.verdict, judgement.idleness.verdict) == ("fresh", "idle")


def test_many_threads_agree(simulator: Simulator, recording_host: RecordingHost, head: SimulatedHeadless) -> None:
    """Looks of many threads at one growing session neither fail nor miss the terminal's turn."""
    evidence = Evidence()
    verdicts: list[str] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def look() -> None:
        try:
            while not done.is_set():
                evidence.judge(recording_host, head.headless)
            verdicts.append(evidence.attribution(recording_host, head.headless).verdict)
        except BaseException as error:  # noqa: BLE001 - the test tells what any thread raised
            errors.append(error)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    head.ask("second")
    simulator.terminal(head.session_id).ask("from terminal")
    done.set()
    for thread in threads:
        thread.join(20)
    assert errors == []
    assert verdicts == ["stale"] * 4
