"""Who wrote the transcript: the ledger of records that nobody accounted for, and the verdict."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccc_plugins.retire_stale.judgement.attribution import FOREIGN_SHOWN, AttributionFacts, Ledger, attribute
from ccc_plugins.retire_stale.judgement.entries import Entry, Kind

KINDS: tuple[Kind, ...] = ("prompt", "answer", "boundary", "note", "shell", "queued", "echo", "other")


def entry(uuid: str, parent: str | None = None, kind: Kind = "answer", *, offset: int = 0, message: str | None = None) -> Entry:
    return Entry(offset=offset, type="x", kind=kind, uuid=uuid, parent=parent, message_id=message)


def left(ledger: Ledger) -> list[str | None]:
    return [e.uuid for e in ledger.left_over]


class Story:
    """Records of two writers in one file, as a test or hypothesis makes them up: each writer goes on below its own last record."""

    def __init__(self, steps: list[tuple[bool, Kind]]) -> None:
        self.entries: list[Entry] = []
        self.own: list[str] = []
        tips: dict[bool, str | None] = {True: None, False: None}
        for number, (own, kind) in enumerate(steps):
            uuid = f"{'own' if own else 'foreign'}-{number}"
            self.entries.append(entry(uuid, tips[own] or "root", kind, offset=number))
            tips[own] = uuid
            if own:
                self.own.append(uuid)

    @property
    def foreign(self) -> list[str | None]:
        return [e.uuid for e in self.entries if e.is_conversation and e.uuid not in self.own]


STEPS = st.lists(st.tuples(st.booleans(), st.sampled_from(KINDS)), max_size=12)


def test_what_was_printed_or_sent_is_own() -> None:
    """By its `uuid` or by the `message.id` it shares, whichever came first."""
    ledger = Ledger()
    ledger.claim(["u1", "msg_1"])
    assert ledger.add(entry("u1", kind="prompt"))
    assert ledger.add(entry("a1", "u1", message="msg_1"))
    ledger.add(entry("a2", "a1", message="msg_2"))
    assert left(ledger) == ["a2"]
    ledger.claim(["msg_2"])
    assert left(ledger) == []


@pytest.mark.parametrize("late", [False, True], ids=["printed first", "written first"])
def test_a_message_id_that_comes_again_is_not_own_for_that(late: bool) -> None:
    """Some APIs give every answer the same one; where the record's `uuid` was printed, its `message.id` has done its work."""
    ledger, answer = Ledger(), entry("a1", message="msg_same")
    if late:
        ledger.add(answer)
    ledger.claim(["a1", "msg_same"])
    if not late:
        ledger.add(answer)
    ledger.add(entry("u2", "a1", "prompt"))
    ledger.add(entry("a2", "u2", message="msg_same"))
    assert left(ledger) == ["u2", "a2"]


@pytest.mark.parametrize("late", [False, True], ids=["printed first", "written first"])
def test_an_answer_in_a_person_s_terminal_is_not_own_by_its_message_id(late: bool) -> None:
    """On releases that write other `uuid`s than they print."""
    ledger, answer = Ledger(), replace(entry("written", message="msg_same"), entrypoint="cli", writer="typed")
    if late:
        ledger.add(answer)
    ledger.claim(["printed", "msg_same"])
    if not late:
        ledger.add(answer)
    assert left(ledger) == ["written"]


def test_a_record_below_which_an_own_one_hangs_was_known() -> None:
    """A turn that nobody sent, a teammate's or a scheduled one, is the headless's as soon as its answer is."""
    ledger = Ledger()
    ledger.add(entry("u1", "root", "prompt"))
    ledger.add(entry("meta", "u1", "other"))
    ledger.add(entry("a1", "meta"))
    assert left(ledger) == ["u1", "a1"]
    ledger.claim(["a1"])
    assert left(ledger) == []


def test_an_own_turn_beside_a_foreign_one_does_not_account_for_it() -> None:
    """Two turns on one parent: only the own one is known, and the other one stays for good."""
    ledger = Ledger()
    ledger.claim(["u1", "a1", "u3", "a3"])
    for one in (entry("u1", "root", "prompt"), entry("a1", "u1"), entry("u2", "a1", "prompt"), entry("a2", "u2")):
        ledger.add(one)
    for one in (entry("u3", "a1", "prompt"), entry("a3", "u3")):
        ledger.add(one)
    assert left(ledger) == ["u2", "a2"]


def test_the_last_record_being_own_proves_nothing() -> None:
    """One foreign record anywhere in the range is enough."""
    ledger = Ledger()
    ledger.claim(["a1", "a2", "a3"])
    for one in (entry("a1"), entry("f", "a1", "prompt"), entry("a2", "a1"), entry("a3", "a2")):
        ledger.add(one)
    assert left(ledger) == ["f"]


def test_parts_of_one_message_are_accounted_for_one_by_one() -> None:
    """A part that was dismissed does not take the message's id along with it."""
    ledger = Ledger()
    ledger.add(entry("a1", "x", message="msg"))
    ledger.add(entry("a2", "y", message="msg"))
    ledger.dismiss("a1")
    ledger.claim(["msg"])
    assert left(ledger) == []


@pytest.mark.parametrize("kind", ["queued", "echo", "other"])
def test_what_is_no_conversation_is_nobodys_turn(kind: Kind) -> None:
    """It is not left over, but a chain goes through it."""
    ledger = Ledger()
    ledger.add(entry("f", "root", "prompt"))
    ledger.add(entry("x", "f", kind))
    ledger.claim(["a1"])
    ledger.add(entry("a1", "x"))
    assert left(ledger) == []


def test_a_record_without_an_id_or_twice_is_passed_over() -> None:
    """It cannot be told apart, so it accounts for nothing and is no one's."""
    ledger = Ledger()
    assert not ledger.add(Entry(offset=0, type="x", kind="answer"))
    ledger.add(entry("f"))
    ledger.add(entry("f"))
    assert left(ledger) == ["f"]


def test_an_answer_right_below_own_records_may_have_yet_to_be_printed() -> None:
    """As long as no input stands between them: below one, it is another writer's."""
    ledger = Ledger()
    ledger.claim(["u1"])
    ledger.add(entry("u1", "root", "prompt"))
    ledger.add(entry("x", "u1", "other"))
    ledger.add(entry("a1", "x"))
    ledger.add(entry("a1b", "a1"))
    ledger.add(entry("u2", "a1b", "prompt"))
    ledger.add(entry("a2", "u2"))
    assert [e.uuid for e in ledger.left_over if ledger.continues(e)] == ["a1", "a1b"]


def test_the_summary_of_an_own_compaction_may_have_yet_to_be_printed() -> None:
    """And the answer below it; not what a person ran in a shell there, nor the summary of another writer's compaction."""
    ledger = Ledger()
    ledger.claim(["u1", "b1"])
    for one in (entry("u1", "root", "prompt"), entry("b1", "u1", "boundary"), entry("s1", "b1", "note"), entry("a1", "s1")):
        ledger.add(one)
    ledger.add(entry("bash", "a1", "note"))
    ledger.add(entry("b2", "a1", "boundary"))
    ledger.add(entry("s2", "b2", "note"))
    assert [e.uuid for e in ledger.left_over if ledger.continues(e)] == ["s1", "a1"]


def test_an_answer_by_another_entry_point_is_not_one_to_be_printed() -> None:
    """A terminal that answers by itself right below the headless's records is another writer."""
    ledger = Ledger()
    ledger.claim(["u1"])
    ledger.add(replace(entry("u1", "root", "prompt"), entrypoint="sdk-cli"))
    ledger.add(replace(entry("a1", "u1"), entrypoint="cli"))
    assert not any(ledger.continues(e) for e in ledger.left_over)


def test_where_it_last_printed_something_is_known() -> None:
    """Of records that it printed, not of inputs, whichever came first."""
    ledger = Ledger()
    ledger.claim(["u1", "a1"])
    ledger.add(entry("u1", kind="prompt", offset=10))
    assert ledger.answered_at == -1
    ledger.add(entry("a1", "u1", offset=20))
    assert ledger.answered_at == 20
    ledger.add(entry("a2", "a1", offset=30))
    ledger.claim(["a2"])
    assert ledger.answered_at == 30


@given(STEPS, st.randoms(use_true_random=False))
def test_the_order_of_records_and_claims_does_not_matter(steps: list[tuple[bool, Kind]], random: object) -> None:
    """Own ids may come before, between or after the records, in any order: the same is left over."""
    story = Story(steps)
    claims = list(story.own)
    random.shuffle(claims)  # type: ignore[attr-defined]
    before, between = claims[::3], claims[1::3]
    ledger = Ledger()
    ledger.claim(before)
    for number, one in enumerate(story.entries):
        ledger.add(one)
        if number % 2:
            ledger.claim(between[number // 2 : number // 2 + 1])
    ledger.claim(claims)
    assert left(ledger) == story.foreign


@given(STEPS, STEPS)
def test_more_foreign_records_never_make_it_fresh(steps: list[tuple[bool, Kind]], more: list[tuple[bool, Kind]]) -> None:
    """Whatever else another writer adds, and wherever the headless goes on, what was left over stays so."""
    story = Story([*steps, *((own, kind) for own, kind in more)])
    ledger = Ledger()
    ledger.claim(story.own)
    seen: list[str | None] = []
    for one in story.entries:
        ledger.add(one)
        assert left(ledger)[: len(seen)] == seen
        seen = left(ledger)
    assert seen == story.foreign


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.sampled_from(KINDS)), max_size=12), st.sets(st.integers(0, 6)))
def test_no_graph_hangs_or_raises(edges: list[tuple[int, int, Kind]], own: set[int]) -> None:
    """Loops, repeated ids and parents that come later end all the same, and nothing own is left over."""
    ledger = Ledger()
    for offset, (uuid, parent, kind) in enumerate(edges):
        ledger.add(entry(str(uuid), str(parent), kind, offset=offset))
    ledger.claim(str(n) for n in own)
    assert not own & {int(e.uuid or 0) for e in ledger.left_over}


FACTS = AttributionFacts(transcript="readable", log_readable=True, anchored=True, left_over=(), answered=True)
FOREIGN = (Entry(offset=3, type="user", kind="prompt", uuid="f", writer="typed", entrypoint="cli"),)
OTHERS = (replace(FOREIGN[0], writer="sdk", entrypoint="sdk-cli"),)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        pytest.param({}, "fresh", id="nothing new"),
        pytest.param({"left_over": FOREIGN}, "stale", id="a foreign record"),
        pytest.param({"left_over": FOREIGN, "holds_last_answer": False}, "stale", id="and a lagging transcript"),
        pytest.param({"left_over": FOREIGN, "unprinted": 1}, "stale", id="and an answer to be printed"),
        pytest.param({"unprinted": 1}, "unknown", id="an answer to be printed"),
        pytest.param({"moved_to": "other"}, "stale", id="it serves another session"),
        pytest.param({"holds_last_answer": False}, "unknown", id="its last answer is not there"),
        pytest.param({"transcript": "missing"}, "unknown", id="the transcript is gone"),
        pytest.param({"transcript": "missing", "answered": False}, "fresh", id="no transcript yet"),
        pytest.param({"transcript": "unreadable"}, "unknown", id="the transcript cannot be read"),
        pytest.param({"transcript": "replaced"}, "unknown", id="the transcript was replaced"),
        pytest.param({"anchored": False}, "unknown", id="where it loaded the session is not known"),
        pytest.param({"log_readable": False}, "unknown", id="no log"),
        pytest.param({"log_readable": False, "left_over": FOREIGN}, "stale", id="no log, but a person typed"),
        pytest.param({"log_readable": False, "left_over": OTHERS}, "unknown", id="no log, and it may be its own"),
        pytest.param({"log_readable": False, "left_over": FOREIGN, "anchored": False}, "unknown", id="neither log nor anchor"),
    ],
)
def test_the_verdict(changes: dict[str, object], verdict: str) -> None:
    """Each thing that is not known makes it unknown, and only another writer's record or session makes it stale."""
    assert attribute(replace(FACTS, **changes)).verdict == verdict  # type: ignore[arg-type]


def test_the_evidence_is_shown_and_bounded() -> None:
    """The records with their place and entry point, the first of many, and how many there are."""
    shown = attribute(replace(FACTS, left_over=FOREIGN * 30))
    assert len(shown.foreign) == FOREIGN_SHOWN
    assert shown.count == 30
    assert (shown.foreign[0].uuid, shown.foreign[0].type, shown.foreign[0].entrypoint, shown.foreign[0].offset) == ("f", "user", "cli", 3)
    assert attribute(replace(FACTS, left_over=FOREIGN)).reason == "1 record of another writer since it loaded the session"


def test_fresh_needs_every_fact() -> None:
    """Of all combinations of what may be wrong, only the one with nothing wrong is fresh, or the one before the first turn."""
    fresh = []
    for transcript, log, anchored, foreign, held in itertools.product(
        ("readable", "missing", "unreadable", "replaced"), (True, False), (True, False), ((), FOREIGN), (True, False)
    ):
        facts = AttributionFacts(
            transcript=transcript, log_readable=log, anchored=anchored, left_over=foreign, answered=True, holds_last_answer=held
        )
        fresh += [facts] if attribute(facts).verdict == "fresh" else []
    assert fresh == [FACTS]
