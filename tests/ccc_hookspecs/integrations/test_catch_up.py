"""Turns that a fresh process lacks and that a plugin gives as a text: in front of the one text that it answers for."""

from __future__ import annotations

import uuid

import pytest

from ccc_hookspecs.values import Deliver
from tests.ccc_hookspecs.integrations.conftest import Ccc


def test_a_fresh_process_is_given_them_with_its_first_text(ccc: Ccc) -> None:
    """The plugin is asked about the process that takes over; the next text goes without, and nothing is owed any more."""
    session_id, row = ccc.spawn()
    ccc.plugin.retire(catch_up="what the terminal said")
    ccc.server._inject_text_into_session(session_id, "second")
    assert ccc.heard(session_id, "second") == ["what the terminal said", "second"]
    before, fresh = ccc.plugin.asked
    assert (before.headless.pid, fresh.headless.pid) == (row["pid"], ccc.row(session_id)["pid"])
    assert (fresh.headless.sent, fresh.headless.resumed) == ((), True)
    ccc.plugin.answer = lambda host, injection: None
    ccc.server._inject_text_into_session(session_id, "third")
    assert ccc.heard(session_id, "third") == ["third"]
    assert ccc.attachment.host.debts.get(session_id) is None


@pytest.mark.case("C77")
def test_half_a_surrogate_pair_in_a_catch_up_is_no_obstacle(ccc: Ccc) -> None:
    """A transcript may hold what the Messages API refuses; the catch-up arrives without it."""
    session_id, _ = ccc.spawn()
    ccc.plugin.retire(catch_up="half \ud83d of it")
    ccc.server._inject_text_into_session(session_id, "second")
    assert ccc.heard(session_id, "second") == ["half \ufffd of it", "second"]


@pytest.mark.case("C01")
def test_a_resumed_process_is_asked_about_before_its_first_text(ccc: Ccc) -> None:
    """What a process lacks that CCC itself resumed is given to it, although nothing was retired."""
    session_id = str(uuid.uuid4())
    ccc.plugin.answer = lambda host, injection: Deliver(catch_up="what the terminal said") if not injection.headless.sent else None
    ccc.server._inject_text_into_session(session_id, "first")
    assert ccc.heard(session_id, "first") == ["what the terminal said", "first"]
    (injection,) = ccc.plugin.asked
    assert injection.headless.resumed is True
