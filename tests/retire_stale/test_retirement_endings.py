"""How a process ends: one that is known to be fresh is told to; any other is killed before it can write a last word, and what it started
ends with it.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from ccc_hookspecs.outcomes import Deferral, Facts, Outcome, Retirement, RetirementFailure
from ccc_hookspecs.processes import start_time
from ccc_hookspecs.testing.harness import SimulatedHeadless, Simulator, wait_until
from ccc_hookspecs.testing.recording import RecordingHost
from ccc_plugins.retire_stale.evidence.children import descendants
from ccc_plugins.retire_stale.evidence.process_rows import ProcessRow
from ccc_plugins.retire_stale.evidence.process_table import ProcessTable, snapshot
from ccc_plugins.retire_stale.flow import Flow
from ccc_plugins.retire_stale.identity import presence, state
from ccc_plugins.retire_stale.judgement.idleness import sign_kind
from ccc_plugins.retire_stale.order import Process
from ccc_plugins.retire_stale.settings import Settings
from ccc_plugins.retire_stale.signalling import Handle, Pack
from tests.retire_stale.conftest import FACTS

if TYPE_CHECKING:
    from tests.retire_stale.conftest import Fake, Lab

STALE = FACTS["idle"]
FRESH = replace(STALE, attribution="fresh")
UNKNOWN = replace(STALE, attribution="unknown")

PATIENT = Settings(terminate_seconds=60.0)
"""What is only told to end has all the time for it: whatever is gone soon was told, and not killed."""

IMPATIENT = Settings(settle_seconds=0.1, terminate_seconds=0.1, kill_seconds=5.0)


def seen_below(workers: tuple[Process, ...]) -> tuple[Process, ...] | None:
    """What runs below these now, as a mechanism answers it."""
    return descendants(snapshot(), [pid for pid, _ in workers])


def child(fake: Fake, index: int = 0) -> Process:
    return fake.children[index], fake.children_started[index]


def wait_until_gone(*processes: Process) -> None:
    wait_until(lambda: all(presence(*process) == "gone" for process in processes), "the end of these processes")


@contextmanager
def inherited(signum: signal.Signals) -> Iterator[None]:
    """What is started inside ignores this signal, unless it decides otherwise."""
    before = signal.signal(signum, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signum, before)


Signalled = list[tuple[int, signal.Signals]]


@pytest.fixture
def signalled(monkeypatch: pytest.MonkeyPatch) -> Signalled:
    """Every signal that was sent to a process known to be the one that is meant, in order."""
    sent: Signalled = []
    really = Handle.send

    def send(self: Handle, signum: signal.Signals) -> bool:
        reached = really(self, signum)
        if reached:
            sent.append((self.pid, signum))
        return reached

    monkeypatch.setattr(Handle, "send", send)
    return sent


# --- what it writes


@pytest.mark.parametrize(("found", "rung", "code"), [(STALE, "kill", -9), (UNKNOWN, "kill", -9), (FRESH, "terminate", 143)])
def test_only_a_process_that_is_known_to_be_fresh_writes_at_its_end(
    lab: Lab, simulator: Simulator, found: Facts, rung: str, code: int
) -> None:
    """The transcript of any other is left byte for byte as it was; a fresh one says with which prompt it ended."""
    head = simulator.headless(release="2.1.332")
    head.ask("first")
    transcript = head.home.transcript(head.session_id)
    before = transcript.read_bytes()
    outcome = lab.retire(head.headless, found)
    assert isinstance(outcome, Retirement)
    assert (outcome.rung, outcome.exit_code, head.wait_exit()) == (rung, code, code)
    after = transcript.read_bytes()
    assert after.startswith(before)
    written = [json.loads(line)["type"] for line in after[len(before) :].splitlines()]
    assert ("last-prompt" in written) is (found is FRESH)
    assert bool(written) is (found is FRESH)


@pytest.mark.parametrize(("looks", "rung"), [((FRESH, STALE), "kill"), ((STALE, FRESH), "terminate")], ids=["kill", "terminate"])
def test_the_look_at_the_stopped_process_decides(lab: Lab, system: str, looks: tuple[Facts, ...], rung: str) -> None:
    """What was known before the stop may be known no more."""
    outcome = lab.retire(lab.fake().headless, *looks)
    assert isinstance(outcome, Retirement)
    assert outcome.rung == rung


def test_it_is_killed_while_it_stands_still(lab: Lab, system: str, signalled: Signalled) -> None:
    """Nothing continues it before, so that nothing of it runs any more; what it started is told after that."""
    fake = lab.fake("--children", "same", "own")
    lab.settings = PATIENT
    assert isinstance(lab.retire(fake.headless, descendants=seen_below), Retirement)
    assert signalled[:2] == [(fake.headless.pid, signal.SIGSTOP), (fake.headless.pid, signal.SIGKILL)]
    assert {one for one in signalled if one[0] != fake.headless.pid} == {(pid, signal.SIGTERM) for pid in fake.children}
    assert not fake.child_alive(0)
    assert not fake.child_alive(1)


def test_one_that_does_not_die_is_a_recorded_failure(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in uninterruptible sleep: it is not released, and not left stopped either."""
    fake, really = lab.fake(), Handle.send
    lab.settings = replace(IMPATIENT, kill_seconds=0.1)
    monkeypatch.setattr(Handle, "send", lambda self, signum: signum == signal.SIGKILL or really(self, signum))
    outcome = lab.retire(fake.headless, STALE)
    assert isinstance(outcome, RetirementFailure)
    assert (outcome.rung, outcome.reason) == ("kill", "did not exit")
    assert lab.host.gone == []
    assert fake.goes_on
    assert lab.journal.retired_by_us(fake.headless.pid, fake.headless.start_time or 0)


# --- what it started


@pytest.mark.parametrize("reaped", [False, True], ids=["left", "reaped at once"])
def test_what_heeds_nothing_is_gone_in_the_end(lab: Lab, system: str, reaped: bool) -> None:
    """What ignores SIGTERM and that its input has ended is killed, also when the host has collected its parent by then."""
    with inherited(signal.SIGTERM):
        fake = lab.fake("--children", "same", "own")
    lab.settings = IMPATIENT
    handler = signal.signal(signal.SIGCHLD, lambda signum, frame: fake.process.poll()) if reaped else None
    try:
        outcome = lab.retire(fake.headless, STALE, descendants=seen_below)
    finally:
        if handler is not None:
            signal.signal(signal.SIGCHLD, handler)
    assert isinstance(outcome, Retirement)
    assert outcome.exit_code in ((None, -9) if reaped else (-9,))
    wait_until_gone(child(fake, 0), child(fake, 1))


def test_a_fresh_process_sees_to_what_it_started_itself(lab: Lab, signalled: Signalled) -> None:
    """It is asked of nobody what runs below one that is told to end."""
    fake = lab.fake("--children", "same")

    def never(workers: tuple[Process, ...]) -> tuple[Process, ...]:
        raise AssertionError(workers)

    assert isinstance(lab.retire(fake.headless, FRESH, descendants=never), Retirement)
    assert {pid for pid, _ in signalled} == {fake.headless.pid}
    assert fake.child_alive(0)


@pytest.mark.parametrize("answer", ["unknown", "raises"])
def test_where_it_is_not_known_what_it_started_that_alone_is_ended(lab: Lab, caplog: pytest.LogCaptureFixture, answer: str) -> None:
    """The transcript comes first; that something may be left behind is said."""
    fake = lab.fake("--children", "same")

    def blind(workers: tuple[Process, ...]) -> None:
        if answer == "raises":
            raise OSError("too many open files")

    assert isinstance(lab.retire(fake.headless, STALE, descendants=blind), Retirement)
    assert fake.child_alive(0)
    assert f"it is not known what process {fake.headless.pid} started" in caplog.text


def test_another_process_that_has_the_pid_now_is_not_signalled(lab: Lab, system: str) -> None:
    """Neither told nor killed nor waited for: it has another start time, or none that is known."""
    fake, bystanders = lab.fake(), lab.fake("--children", "same", "own")
    (pid, started), (other, _) = child(bystanders, 0), child(bystanders, 1)
    assert started is not None
    lab.settings = PATIENT
    began = time.monotonic()
    outcome = lab.retire(fake.headless, STALE, descendants=lambda workers: ((pid, started - 1), (other, None)))
    assert isinstance(outcome, Retirement)
    assert time.monotonic() - began < PATIENT.terminate_seconds
    assert bystanders.child_alive(0)
    assert bystanders.child_alive(1)


def test_a_pack_takes_along_who_is_meant_and_nobody_else(lab: Lab, system: str, signalled: Signalled) -> None:
    """By pid and start time, whatever is asked for."""
    fake, meant, other = lab.fake(), lab.fake(), lab.fake("--ignore-term")
    assert other.headless.start_time is not None
    with closing(Pack(Handle(fake.headless.pid, fake.headless.start_time))) as pack:
        pack.take_along([(meant.headless.pid, meant.headless.start_time), (other.headless.pid, other.headless.start_time - 1)])
        assert pack.end(signal.SIGKILL)
        pack.end_along(60)
    assert signalled == [(fake.headless.pid, signal.SIGKILL), (meant.headless.pid, signal.SIGTERM)]
    assert meant.process.wait(5) == 143
    assert other.goes_on


@pytest.mark.parametrize("whose", ["another user's", "ours"])
def test_what_is_never_signalled_is_not_taken_along(lab: Lab, monkeypatch: pytest.MonkeyPatch, signalled: Signalled, whose: str) -> None:
    """Whatever the table says: another user's process, and this one with all that it descends from."""
    fake = lab.fake("--children", "same")
    if whose == "ours":
        # The child passes for a process that we descend from.
        monkeypatch.setattr("ccc_plugins.retire_stale.identity.own_line", lambda: frozenset({os.getpid(), fake.children[0]}))
    else:
        monkeypatch.setattr("ccc_plugins.retire_stale.retirement.real_uid", lambda pid: os.getuid() + (pid == fake.children[0]))
    lab.settings = IMPATIENT
    assert isinstance(lab.retire(fake.headless, STALE, descendants=seen_below), Retirement)
    assert {pid for pid, _ in signalled} == {fake.headless.pid}
    assert fake.child_alive(0)


def test_what_refuses_a_signal_does_not_undo_the_end(lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The others get theirs, the process is gone, and what could not be ended is said."""
    fake, really = lab.fake("--children", "same", "own"), Handle.send

    def send(self: Handle, signum: signal.Signals) -> bool:
        if self.pid == fake.children[0]:
            raise PermissionError(1, "Operation not permitted")
        return really(self, signum)

    monkeypatch.setattr(Handle, "send", send)
    lab.settings = IMPATIENT
    assert isinstance(lab.retire(fake.headless, STALE, descendants=lambda workers: (child(fake, 0), child(fake, 1))), Retirement)
    assert lab.host.gone == [fake.headless]
    assert fake.child_alive(0)
    wait_until_gone(child(fake, 1))
    assert f"process {fake.children[0]}, below one that was ended, could not be signalled" in caplog.text


def interrupt(fake: Fake) -> None:
    raise KeyboardInterrupt


def meddle(fake: Fake) -> None:
    fake.process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize(("happens", "outcome"), [(interrupt, None), (meddle, Deferral)], ids=["interrupt", "continued by another"])
def test_what_breaks_in_before_the_kill_leaves_everything_as_it_was(
    lab: Lab, system: str, happens: Callable[[Fake], None], outcome: type[Outcome] | None
) -> None:
    """The process goes on, and so does what it started: none of it is told before the process is killed."""
    fake, ended = lab.fake("--children", "same"), None

    def look(workers: tuple[Process, ...]) -> tuple[Process, ...] | None:
        happens(fake)
        return seen_below(workers)

    if outcome is None:
        with pytest.raises(KeyboardInterrupt):
            lab.retire(fake.headless, STALE, descendants=look)
    else:
        ended = lab.retire(fake.headless, STALE, descendants=look)
        assert isinstance(ended, outcome)
    assert fake.goes_on
    assert fake.child_alive(0)
    assert state(fake.children[0]) == "S"


# --- as a mechanism asks for it

TOOL = "trap 'echo told >> {told}; exit' TERM; echo ready > {ready}; while :; do sleep 0.05; done"
"""A background command that says when it is told to end."""


class Stale:
    """A headless that a terminal has made stale."""

    def __init__(self, host: RecordingHost, head: SimulatedHeadless) -> None:
        self.host, self.head = host, head
        self.flow = Flow(host.state_dir, PATIENT)
        self.transcript = head.home.transcript(head.session_id)
        self.told = head.home.root / "told"

    def start_tool(self) -> None:
        ready = self.head.home.root / "ready"
        self.head.send("BG: " + TOOL.format(told=self.told, ready=ready))
        self.head.wait_event("result", count=2)
        wait_until(ready.exists, "a running tool")

    def take_over(self, simulator: Simulator) -> None:
        terminal = simulator.terminal(self.head.session_id)
        terminal.ask("from terminal")
        terminal.exit()

    def processes_below(self) -> tuple[Process, ...]:
        return tuple((one.pid, start_time(one.pid)) for one in psutil.Process(self.head.pid).children(recursive=True))

    def retire(self, overruled: frozenset[str] | None = None) -> Outcome:
        headless = self.host.adopt(self.head)
        with self.host.session_lock(headless.session_id, 0):
            return self.flow.retire(
                self.host, headless, mechanism="retire_stale.use_time", reason="stale", wanted=lambda judgement: None, overruled=overruled
            )

    def retire_overruled(self) -> Outcome:
        """Retire it although it works, by the word of a person who was told what it does."""
        deferral = self.retire()
        assert isinstance(deferral, Deferral)
        assert deferral.facts.attribution == "stale"
        return self.retire(frozenset(sign_kind(sign) for sign in deferral.facts.signs))


def answered(simulator: Simulator, host: RecordingHost) -> Stale:
    head = simulator.headless(release="2.1.332")
    head.ask("first")
    return Stale(host, head)


def test_a_terminals_turn_is_what_a_resume_reads_after_the_end(simulator: Simulator, recording_host: RecordingHost) -> None:
    """The stale process of a forked session leaves the transcript as the terminal left it."""
    stale = answered(simulator, recording_host)
    stale.take_over(simulator)
    before = stale.transcript.read_bytes()
    outcome = stale.retire()
    assert isinstance(outcome, Retirement)
    assert (outcome.facts.attribution, outcome.rung, outcome.exit_code) == ("stale", "kill", -9)
    assert stale.transcript.read_bytes() == before
    assert simulator.headless(stale.head.session_id).ask("again") == 'SEEN ["first", "from terminal", "again"]'


def test_an_overruled_retirement_ends_the_background_tool(simulator: Simulator, recording_host: RecordingHost) -> None:
    """A person chose to end it with its work: the command is told to end, and is gone."""
    stale = answered(simulator, recording_host)
    stale.start_tool()
    stale.take_over(simulator)
    before, below = stale.transcript.read_bytes(), stale.processes_below()
    assert below
    outcome = stale.retire_overruled()
    assert isinstance(outcome, Retirement)
    assert outcome.rung == "kill"
    assert stale.transcript.read_bytes() == before
    wait_until_gone(*below)
    assert stale.told.read_text() == "told\n"


def test_a_wrapper_ends_by_itself_and_what_its_worker_started_with_it(
    simulator: Simulator, recording_host: RecordingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed is the Claude Code below the wrapper; the wrapper lives to pass that on."""
    wrapper = simulator.home.root / "wrapper"
    wrapper.write_text(f'#!/bin/sh\n{simulator.program("2.1.332")} "$@"\nexit $?\n')
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    with monkeypatch.context() as patched:
        patched.setattr(simulator, "program", lambda release=None: Path(wrapper))
        stale = answered(simulator, recording_host)
    stale.start_tool()
    stale.take_over(simulator)
    before, below = stale.transcript.read_bytes(), stale.processes_below()
    assert len(below) >= 2
    outcome = stale.retire_overruled()
    assert isinstance(outcome, Retirement)
    assert (outcome.rung, outcome.exit_code) == ("kill", 128 + signal.SIGKILL)
    assert stale.transcript.read_bytes() == before
    wait_until_gone(*below)
    assert stale.told.read_text() == "told\n"


# --- which processes those are


def row(pid: int, ppid: int, status: str = "sleeping", sid: int = 10) -> ProcessRow:
    return ProcessRow(pid=pid, start_time=float(pid), ppid=ppid, pgid=sid, sid=sid, name="any", argv=("any",), status=status)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([row(10, 1)], []),
        ([row(10, 1), row(11, 10), row(12, 1)], [11]),
        ([row(10, 1), row(11, 10, sid=11), row(12, 11), row(13, 12, sid=13)], [11, 12, 13]),
        ([row(10, 1), row(11, 10, "zombie"), row(12, 11)], [12]),
        ([row(10, 12), row(11, 10), row(12, 11)], [11, 12]),
        ([row(9, 1), row(10, 9), row(11, 9)], []),
        ([row(11, 10)], None),
        ([], None),
    ],
)
def test_what_runs_below(rows: list[ProcessRow], found: list[int] | None) -> None:
    """Every live process below, in whatever session; not what runs beside it, and nothing at all where it cannot be seen itself."""
    below = descendants(ProcessTable({one.pid: one for one in rows}), [10])
    assert (None if below is None else sorted(below)) == (None if found is None else [(pid, float(pid)) for pid in found])


def test_nothing_is_known_where_no_process_can_be_seen() -> None:
    """As with no file descriptor free."""
    assert descendants(ProcessTable({10: row(10, 1)}, readable=False), [10]) is None
