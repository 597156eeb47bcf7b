"""What may happen between the moment a mechanism begins to look at a headless and the signal that would end it."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

import psutil
import pytest

from ccc_hookspecs.outcomes import Veto
from ccc_hookspecs.signals import headless_retired, retirement_deferred, retirement_proposed
from ccc_hookspecs.values import Deliver, Hold, Respawn, SentInput
from ccc_plugins.retire_stale.evidence.evidence import Evidence
from ccc_plugins.retire_stale.mechanisms import terminal_launch, use_time, watcher
from ccc_plugins.retire_stale.plugin import plugin
from tests.retire_stale.mechanisms.conftest import Stage


@contextmanager
def at_the_proposal(act: Callable[[], object]) -> Iterator[None]:
    """Do this after the first look at a headless and before it is stopped."""

    def receive(sender: str, event: object) -> None:
        act()

    with retirement_proposed.connected_to(receive):
        yield


def drive(stage: Stage, mechanism: ModuleType) -> None:
    """Have a mechanism retire the headless if it will."""
    if mechanism is use_time:
        stage.inject()
    elif mechanism is terminal_launch:
        stage.launch()
    else:
        stage.tick(times=2)


@pytest.mark.parametrize("by", ["launch", "tick of a launch", "watcher"])
def test_a_text_written_while_the_lock_was_waited_for_counts(stage: Stage, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    """A text that went in between the host's list and the session's lock is known to the judgement, though nothing shows it yet."""
    stage.terminal()
    if by == "watcher":
        stage.tick()
    elif by == "tick of a launch":
        plugin.flow(stage.host).deferrals.add(stage.head.headless, mechanism=terminal_launch.NAME, reason=terminal_launch.REASON)
    locked = stage.host.session_lock

    @contextmanager
    def waited_for(session_id: str, timeout: float) -> Iterator[None]:
        with locked(session_id, timeout):
            # Read from the FIFO and not printed yet, so that only the host knows.
            stage.head.sent.append(SentInput(message_id=str(uuid.uuid4()), sent_at=time.time()))
            yield

    monkeypatch.setattr(stage.host, "session_lock", waited_for)
    if by == "launch":
        stage.launch()
    else:
        stage.tick(terminal_launch if by == "tick of a launch" else watcher)
    assert stage.head.alive
    (deferral,) = stage.signals.of(retirement_deferred)
    assert any("unacknowledged" in sign for sign in deferral.facts.signs)


@pytest.mark.parametrize("by", ["launch", "watcher"])
def test_a_process_that_was_replaced_meanwhile_is_left_alone(stage: Stage, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    """When the host has another headless for the session by the time the lock is held, neither is ended for the old one's sake."""
    stage.terminal()
    stage.tick()
    old, fresh = stage.head, stage.simulator.headless(stage.head.session_id)
    locked = stage.host.session_lock

    @contextmanager
    def waited_for(session_id: str, timeout: float) -> Iterator[None]:
        with locked(session_id, timeout):
            stage.host.adopt(fresh)
            yield

    monkeypatch.setattr(stage.host, "session_lock", waited_for)
    stage.launch() if by == "launch" else stage.tick()
    assert old.alive
    assert fresh.alive
    assert stage.host.releases == []


@pytest.mark.parametrize("mechanism", [use_time, terminal_launch, watcher], ids=lambda m: m.NAME)
def test_a_turn_that_begins_after_the_first_look_is_not_cut(stage: Stage, mechanism: ModuleType) -> None:
    """An input that comes in after the first look, even one that its host forgets to tell, is answered by the same process."""
    stage.take_over("from terminal")
    stage.terminal()
    content = [{"type": "text", "text": "SLOW 1 unheard of"}]
    line = {"type": "user", "uuid": str(uuid.uuid4()), "message": {"role": "user", "content": content}}
    with at_the_proposal(lambda: stage.head.write(line)):
        drive(stage, mechanism)
    assert stage.head.alive
    stage.head.wait_idle()
    assert "unheard of" in stage.head.answers()[-1]
    assert stage.signals.of(headless_retired) == []


@pytest.mark.case("C74")
def test_a_headless_that_somebody_stopped_keeps_the_text_in_its_pipe(stage: Stage) -> None:
    """Bytes that a stopped process has not read are work: it is neither ended nor woken, and the next text is held."""
    stage.head.signal(signal.SIGSTOP)
    stage.head.send("in the pipe")
    stage.terminal("from terminal")
    stage.launch()
    stage.tick(times=2)
    decision = stage.inject()
    assert isinstance(decision, Hold)
    assert any("unread in the FIFO" in sign for sign in decision.signs)
    assert psutil.Process(stage.head.pid).status() == psutil.STATUS_STOPPED
    stage.head.signal(signal.SIGCONT)
    stage.head.wait_idle()
    assert "in the pipe" in stage.head.answers()[-1]


def _unlink(stage: Stage) -> None:
    stage.head.home.transcript(stage.head.session_id).unlink()


def _replace(stage: Stage) -> None:
    path = stage.head.home.transcript(stage.head.session_id)
    part = path.with_suffix(".part")
    part.write_bytes(path.read_bytes()[:200])
    os.replace(part, path)


def _move(stage: Stage) -> None:
    path = stage.head.home.transcript(stage.head.session_id)
    folder = path.parent.with_name("-another-project")
    folder.mkdir()
    path.rename(folder / path.name)


def _forbid(stage: Stage) -> None:
    path = stage.head.home.transcript(stage.head.session_id)
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("change", [_unlink, _replace, _move, _forbid], ids=lambda f: f.__name__)
def test_what_was_found_stale_never_gets_the_text_whatever_becomes_of_the_transcript(stage: Stage, change: Callable[[Stage], None]) -> None:
    """A transcript that goes, moves or changes between the two looks does not turn a stale process into one that is delivered to."""
    stage.use(settle_seconds=0.1)
    stage.take_over("from terminal")
    with at_the_proposal(lambda: change(stage)):
        decision = stage.inject()
    assert isinstance(decision, Hold | Respawn)
    assert isinstance(decision, Respawn) != stage.head.alive


def test_a_second_look_that_fails_does_not_deliver_to_a_stale_process(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the evidence cannot be read at the stopped process, it goes on, and the text is held."""
    really = Evidence.judge
    looks: list[object] = []

    def fails_later(self: Evidence, *arguments: object, **named: object) -> object:
        looks.append(arguments)
        if len(looks) > 2:
            raise OSError("too many open files")
        return really(self, *arguments, **named)  # type: ignore[arg-type]

    stage.take_over("from terminal")
    monkeypatch.setattr(Evidence, "judge", fails_later)
    assert isinstance(stage.inject(), Hold)
    assert len(looks) == 3
    assert stage.head.alive
    assert psutil.Process(stage.head.pid).status() != psutil.STATUS_STOPPED


def test_a_mechanism_that_fails_does_not_deliver_to_a_stale_process(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error on the way holds the text of a stale headless, since a hook that raises counts as one without an answer."""
    from ccc_plugins.retire_stale.flow import Flow

    def broken(*arguments: object, **named: object) -> None:
        raise RuntimeError("broken on the way")

    stage.take_over("from terminal")
    monkeypatch.setattr(Flow, "retire", broken)
    hold = stage.inject()
    assert isinstance(hold, Hold)
    assert "RuntimeError" in hold.reason
    assert stage.head.alive


def test_a_catch_up_that_cannot_be_made_keeps_no_text_back(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The fresh process gets the text all the same."""

    def broken(path: object) -> None:
        raise RecursionError("a strange transcript")

    stage.use(heal="never")
    stage.take_over("from terminal")
    assert isinstance(stage.inject(), Respawn)
    stage.resume()
    monkeypatch.setattr("ccc_plugins.retire_stale.flow.read_tree", broken)
    assert stage.inject() is None
    assert "a strange transcript" in caplog.text


@pytest.mark.parametrize("mechanism", [terminal_launch, watcher], ids=lambda m: m.NAME)
def test_a_veto_keeps_the_headless_from_every_mechanism(stage: Stage, mechanism: ModuleType) -> None:
    """A veto is asked for and heeded at a launch and at a tick too, and no signal reaches the process."""

    def veto(sender: str, event: object) -> Veto:
        return Veto(reason="under a debugger")

    stage.terminal()
    with retirement_proposed.connected_to(veto):
        drive(stage, mechanism)
        stage.tick(mechanism if mechanism is watcher else terminal_launch, times=2)
    assert stage.head.alive
    assert [kept.reason for kept in stage.signals.of("headless_kept")] == ["vetoed: under a debugger"]


def test_the_same_reason_for_a_process_is_said_once(stage: Stage) -> None:
    """A headless that is delivered to without proof is reported once, however many texts go in."""
    stage.head.home.transcript(stage.head.session_id).unlink()
    for _ in range(3):
        assert isinstance(stage.inject(), Deliver)
    assert len(stage.signals.of("headless_kept")) == 1


@pytest.mark.case("C79")
def test_the_last_answer_reaches_the_disk_before_the_process_ends(stage: Stage) -> None:
    """A process whose log shows its answer and whose transcript does not yet is waited for, and then ended."""
    stage.head.send("LATE 0.8")
    stage.head.wait_event("result", count=2)
    answer = stage.head.events("assistant")[-1]["uuid"]
    assert answer not in {record.get("uuid") for record in stage.head.records()}
    stage.launch()
    assert not stage.head.alive
    assert answer in {record.get("uuid") for record in stage.head.records()}
