"""Texts that the Messages API takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccc_hookspecs.claude.text import well_formed


@pytest.mark.case("C77")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain \U0001f600", "plain \U0001f600"),
        ("high \ud83d", "high \ufffd"),
        ("low \ude00 first", "low \ufffd first"),
        ("both \ud83d\ude00", "both \U0001f600"),
        ("high twice \ud83d\ud83d\ude00", "high twice \ufffd\U0001f600"),
    ],
)
def test_half_a_surrogate_pair_is_replaced(text: str, expected: str) -> None:
    assert well_formed(text) == expected


@given(st.text(st.characters(exclude_categories=())))
def test_what_comes_out_can_be_encoded_and_stays_as_it_is(text: str) -> None:
    once = well_formed(text)
    assert once.encode().decode() == once == well_formed(once)


@given(st.text())
def test_a_well_formed_text_is_not_changed(text: str) -> None:
    assert well_formed(text) == text
