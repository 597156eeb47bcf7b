"""What follows from two verdicts: the table, literally."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccc_hookspecs.outcomes import AttributionVerdict, IdlenessVerdict
from ccc_plugins.retire_stale.judgement.decision import Course, course

ATTRIBUTIONS: tuple[AttributionVerdict, ...] = ("fresh", "stale", "unknown")
IDLENESSES: tuple[IdlenessVerdict, ...] = ("idle", "busy", "unknown")
TABLE: dict[tuple[AttributionVerdict, IdlenessVerdict], Course] = {
    ("fresh", "idle"): "deliver",
    ("fresh", "busy"): "deliver",
    ("fresh", "unknown"): "deliver",
    ("stale", "idle"): "respawn",
    ("stale", "busy"): "hold",
    ("stale", "unknown"): "hold",
    ("unknown", "idle"): "respawn",
    ("unknown", "busy"): "deliver",
    ("unknown", "unknown"): "deliver",
}


@pytest.mark.parametrize(("verdicts", "expected"), TABLE.items(), ids=str)
def test_the_table(verdicts: tuple[AttributionVerdict, IdlenessVerdict], expected: Course) -> None:
    """Every pair of verdicts, with a transcript that holds the last turn."""
    assert course(*verdicts, resumable=True) == expected


@pytest.mark.parametrize(
    ("attribution", "expected"), [("fresh", "deliver"), ("stale", "hold"), ("unknown", "deliver")], ids=["fresh", "stale", "unknown"]
)
def test_what_is_not_on_disk_is_not_given_up(attribution: AttributionVerdict, expected: Course) -> None:
    """Without a transcript that holds the last turn the process is kept, however idle."""
    assert course(attribution, "idle", resumable=False) == expected


@given(st.sampled_from(ATTRIBUTIONS), st.sampled_from(IDLENESSES), st.booleans())
def test_a_process_is_given_up_only_on_proof_and_never_fed_when_stale(
    attribution: AttributionVerdict, idleness: IdlenessVerdict, resumable: bool
) -> None:
    """Only an idle process whose last turn is on disk is ended, and a stale one never gets a text."""
    made = course(attribution, idleness, resumable=resumable)
    if made == "respawn":
        assert (idleness, resumable) == ("idle", True)
        assert attribution != "fresh"
    if attribution == "stale":
        assert made != "deliver"
