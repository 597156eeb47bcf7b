"""What a retirement tells the other plugins: each signal once, with the facts that decided, whatever the subscribers do."""

from __future__ import annotations

import gc
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from blinker import NamedSignal

from ccc_hookspecs.outcomes import Deferral, Facts, Kept, Outcome, Retirement, RetirementFailure, Veto
from ccc_hookspecs.signals import headless_kept, headless_retired, retirement_deferred, retirement_failed, retirement_proposed
from ccc_hookspecs.values import Headless
from ccc_plugins.retire_stale.reporter import Reporter
from ccc_plugins.retire_stale.retirement import retire
from ccc_plugins.retire_stale.settings import Settings
from tests.retire_stale.conftest import FACTS as LOOKS

if TYPE_CHECKING:
    from tests.retire_stale.conftest import Lab

Heard = list[tuple[str, str, Any]]

MECHANISM = "retire_stale.watcher"
HEADLESS = Headless(session_id="72350742-dff3-4ee0-a645-6602d6d2b86e", pid=4242, start_time=17.5)
FACTS = Facts(attribution="stale", attribution_reason="1 foreign record", idleness="busy", signs=("open turn",))
FRESH = replace(LOOKS["idle"], attribution="fresh")


def deferral(*signs: str, mechanism: str = MECHANISM, headless: Headless = HEADLESS) -> Deferral:
    return Deferral(headless=headless, mechanism=mechanism, reason="busy", facts=replace(FACTS, signs=signs), since=1.0)


def kept(reason: str, *, would_retire: bool = False) -> Kept:
    return Kept(headless=HEADLESS, mechanism=MECHANISM, reason=reason, would_retire=would_retire)


RETIREMENT = Retirement(headless=HEADLESS, mechanism=MECHANISM, reason="stale", facts=FACTS, rung="kill", seconds=0.1, exit_code=-9)
FAILURE = RetirementFailure(headless=HEADLESS, mechanism=MECHANISM, reason="did not exit", rung="kill", facts=FACTS)


def test_retirement_is_proposed_and_then_told(lab: Lab, heard: Heard) -> None:
    """A retirement sends a proposal and its end, each once, from the mechanism, with what decided."""
    fake = lab.fake()
    outcome = lab.retire(fake.headless)
    assert [(name, sender) for name, sender, _ in heard] == [("retirement_proposed", MECHANISM), ("headless_retired", MECHANISM)]
    proposal, retirement = (event for _, _, event in heard)
    assert (proposal.headless, proposal.reason, proposal.facts.log_size) == (fake.headless, "a terminal took a turn", 800)
    assert (retirement.reason, retirement.facts.transcript_size) == ("a terminal took a turn", 1200)
    assert retirement is outcome


def test_proposal_comes_before_any_signal_to_the_process(lab: Lab) -> None:
    """Whoever hears the proposal finds the process running."""
    fake = lab.fake()
    states: list[str] = []

    def look(sender: str, event: Any) -> None:
        states.append(fake.state())

    with retirement_proposed.connected_to(look):
        lab.retire(fake.headless)
    assert states
    assert "stopped" not in states


def test_deferral_carries_the_signs(lab: Lab, heard: Heard) -> None:
    """A deferral sends the signs that kept the process, and no proposal when the first look found them."""
    lab.retire(lab.fake().headless, "busy")
    assert [(name, event.facts.signs) for name, _, event in heard] == [("retirement_deferred", ("open turn",))]


@pytest.mark.case("C80")
def test_failure_is_told(lab: Lab, heard: Heard) -> None:
    """A process that outlives SIGTERM and works again is told as a failure, with the rung and the facts."""
    lab.settings = Settings(terminate_seconds=0.1)
    lab.retire(lab.fake("--ignore-term").headless, FRESH, FRESH, "busy")
    assert [name for name, _, _ in heard] == ["retirement_proposed", "retirement_failed"]
    assert (heard[-1][2].rung, heard[-1][2].facts.signs) == ("kill", ("open turn",))


def test_veto_keeps_the_process_and_is_told(lab: Lab, heard: Heard) -> None:
    """A subscriber's veto keeps the process untouched, and its reason is what the others hear."""
    fake = lab.fake()

    def veto(sender: str, event: Any) -> Veto:
        return Veto(reason="a demo is running")

    with retirement_proposed.connected_to(veto):
        outcome = lab.retire(fake.headless)
    assert isinstance(outcome, Kept)
    assert outcome.reason == "vetoed: a demo is running"
    assert [name for name, _, _ in heard] == ["retirement_proposed", "headless_kept"]
    assert fake.goes_on
    assert lab.looks == 1


@pytest.mark.case("C95")
def test_every_kind_of_subscriber_hears_it_or_harms_nothing(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    """Strong and living weak subscribers hear the retirement once; a raising one and a collected one change nothing."""
    fake = lab.fake()
    strong, weak, gone = Ear(), Ear(), Ear()
    headless_retired.connect(fail)
    headless_retired.connect(strong.hear, weak=False)
    headless_retired.connect(weak.hear)
    headless_retired.connect(gone.hear)
    collected = gone.events
    del gone
    gc.collect()
    with caplog.at_level(logging.ERROR):
        outcome = lab.retire(fake.headless)
    headless_retired.disconnect(fail)
    headless_retired.disconnect(strong.hear)
    assert isinstance(outcome, Retirement)
    assert strong.events == weak.events == [(MECHANISM, outcome)]
    assert collected == []
    assert "fail of signal headless_retired failed" in caplog.text


class Ear:
    """A subscriber that is an object's method."""

    def __init__(self) -> None:
        self.events: list[tuple[str, object]] = []

    def hear(self, sender: str, event: object) -> None:
        self.events.append((sender, event))


def fail(sender: str, event: object) -> None:
    raise RuntimeError("subscriber")


@pytest.mark.case("C95")
@pytest.mark.parametrize("signal", [retirement_proposed, headless_retired])
def test_raising_subscriber_does_not_stop_the_ladder(lab: Lab, signal: NamedSignal) -> None:
    """A subscriber that raises, before or after the end, neither keeps the process nor reaches the mechanism."""
    with signal.connected_to(fail):
        assert isinstance(lab.retire(lab.fake().headless), Retirement)


def test_only_subscribers_of_the_mechanism_hear_it(lab: Lab) -> None:
    """A subscriber may listen to one mechanism's retirements alone."""
    watcher, other = Ear(), Ear()
    with (
        headless_retired.connected_to(watcher.hear, sender=MECHANISM),
        headless_retired.connected_to(other.hear, sender="retire_stale.use_time"),
    ):
        lab.retire(lab.fake().headless)
    assert (len(watcher.events), len(other.events)) == (1, 0)


def test_given_reporter_says_a_standing_deferral_once(lab: Lab, heard: Heard) -> None:
    """Looked at again and again with the same signs, a busy headless is told of once."""
    fake, reporter = lab.fake(), Reporter()
    for _ in range(3):
        retire(lab.host, lab.order(fake.headless, "busy"), lab.settings, lab.journal, reporter)
    assert [name for name, _, _ in heard] == ["retirement_deferred"]


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ([deferral("open turn")] * 2, [True, False]),
        ([deferral("open turn"), deferral("unread input"), deferral("open turn")], [True, True, True]),
        ([deferral("a"), kept("no longer wanted"), deferral("a")], [True, True, True]),
        ([deferral("a"), deferral("a", mechanism="retire_stale.terminal_launch")], [True, True]),
        ([deferral("a"), deferral("a", headless=replace(HEADLESS, start_time=18.5))], [True, True]),
        ([kept("a"), kept("b"), kept("a")], [True, True, False]),
        ([kept("a"), kept("a", would_retire=True)], [True, True]),
        ([RETIREMENT, RETIREMENT], [True, True]),
        ([FAILURE, FAILURE], [True, True]),
    ],
)
def test_reporter_says_what_is_new(outcomes: list[Outcome], said: list[bool], heard: Heard) -> None:
    """A deferral is news when it begins and when its signs change, a keeping when its reason is new for that process."""
    reporter = Reporter()
    assert [reporter.report(outcome) for outcome in outcomes] == said
    assert len(heard) == sum(said)


@pytest.mark.parametrize(
    ("outcome", "signal"),
    [
        (RETIREMENT, headless_retired),
        (deferral("a"), retirement_deferred),
        (kept("a"), headless_kept),
        (FAILURE, retirement_failed),
    ],
)
def test_each_outcome_has_its_signal(outcome: Outcome, signal: NamedSignal, heard: Heard) -> None:
    """Every outcome is told by the signal that is documented for it."""
    Reporter().report(outcome)
    assert heard == [(signal.name, MECHANISM, outcome)]


def test_reporter_forgets_in_bounds(heard: Heard) -> None:
    """What a reporter remembers is bounded: the process longest unheard of is told again."""
    reporter = Reporter(remembered=2)
    processes = [replace(HEADLESS, pid=pid) for pid in (1, 2, 3)]
    assert all(reporter.report(deferral("a", headless=one)) for one in processes)
    assert [reporter.report(deferral("a", headless=one)) for one in (processes[2], processes[0])] == [False, True]


def _level(outcome: Outcome) -> int:
    return {Retirement: logging.INFO, Deferral: logging.INFO, Kept: logging.DEBUG, RetirementFailure: logging.WARNING}[type(outcome)]


@pytest.mark.parametrize("outcome", [RETIREMENT, deferral("open turn"), kept("a"), FAILURE])
def test_one_log_line_with_what_decided(outcome: Outcome, caplog: pytest.LogCaptureFixture) -> None:
    """A verdict is one log line of its level, with session, mechanism and reason as fields."""
    with caplog.at_level(logging.DEBUG, logger="ccc_plugins.retire_stale.reporter"):
        Reporter().report(outcome)
    (record,) = caplog.records
    assert record.levelno == _level(outcome)
    fields = vars(record)
    assert (fields["ccc_session"], fields["ccc_mechanism"], fields["ccc_reason"]) == (HEADLESS.session_id, MECHANISM, outcome.reason)
    assert str(HEADLESS.pid) in record.getMessage()


def test_each_rung_has_its_log_line(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    """The way down can be read in the log, rung by rung."""
    lab.settings = Settings(terminate_seconds=0.1)
    with caplog.at_level(logging.DEBUG, logger="ccc_plugins.retire_stale.retirement"):
        lab.retire(lab.fake("--ignore-term").headless, FRESH)
    lines = [record.getMessage().rsplit(": ", 1)[1] for record in caplog.records]
    assert lines == ["identity", "judge", "settle", "freeze", "rejudge", "terminate", "kill", "SIGKILL", "released"]
