"""What a headless was given as history is its own from the copy on that it wrote, and from nothing else."""

from __future__ import annotations

import pytest

from ccc_plugins.retire_stale.judgement.attribution import Ledger
from ccc_plugins.retire_stale.judgement.copies import copy_id, is_copied, is_copy_id
from ccc_plugins.retire_stale.judgement.entries import Entry, Kind, Writer

FOREIGN = ("u1", "a1", "u2", "a2")


def entry(uuid: str, parent: str | None, kind: Kind, *, offset: int = 0, message: str | None = None, writer: Writer = "typed") -> Entry:
    return Entry(offset=offset, type="x", kind=kind, uuid=uuid, parent=parent, message_id=message, writer=writer)


def stale(*given: str) -> Ledger:
    """A ledger of a headless that lacks two turns and was given these records, which it has not written yet."""
    ledger, parent = Ledger(), "own"
    ledger.claim(["own"])
    ledger.add(entry("own", None, "prompt", writer="sdk"))
    ledger.give(given)
    for number, uuid in enumerate(FOREIGN):
        ledger.add(entry(uuid, parent, "prompt" if uuid.startswith("u") else "answer", offset=number + 1))
        parent = uuid
    return ledger


def copy(ledger: Ledger, uuid: str, parent: str) -> bool:
    return ledger.add(entry(uuid, parent, "prompt" if uuid.startswith("u") else "answer", offset=10, writer="sdk"))


def left(ledger: Ledger) -> list[str | None]:
    return [e.uuid for e in ledger.left_over]


def test_given_is_not_taken() -> None:
    """A record that was sent and of which no second copy stands there is still unknown to the headless, whatever it printed."""
    ledger = stale(*FOREIGN)
    assert left(ledger) == list(FOREIGN)
    ledger.claim(FOREIGN)
    assert left(ledger) == list(FOREIGN)


def test_each_copy_accounts_for_its_own_record_alone() -> None:
    """Not for what stands above it, which may have been lost on the way."""
    ledger = stale(*FOREIGN)
    assert copy(ledger, "u2", "own")
    assert left(ledger) == ["u1", "a1", "a2"]
    assert copy(ledger, "u1", "u2")
    assert copy(ledger, "a1", "u1")
    assert copy(ledger, "a2", "a1")
    assert left(ledger) == []
    assert not any(map(ledger.has_left_over, FOREIGN))


def test_the_order_does_not_matter() -> None:
    """The copies may be read before it is known what was given."""
    ledger = stale()
    parent = "own"
    for uuid in FOREIGN:
        copy(ledger, uuid, parent)
        parent = uuid
    assert left(ledger) == list(FOREIGN)
    ledger.give(FOREIGN)
    assert left(ledger) == []


def test_another_processs_copy_accounts_for_nothing() -> None:
    """Two stale processes may be given the same records; each copy is one process's."""
    ledger = stale()
    assert not copy(ledger, "u1", "own")
    assert not copy(ledger, "u1", "own")
    assert left(ledger) == list(FOREIGN)


def test_what_hangs_below_a_copy_that_was_taken_is_judged_as_ever() -> None:
    """The next turn of the other writer is news, and an own one is not."""
    ledger = stale(*FOREIGN)
    parent = "own"
    for uuid in FOREIGN:
        copy(ledger, uuid, parent)
        parent = uuid
    ledger.claim(["own2"])
    assert ledger.add(entry("own2", "a2", "prompt", offset=20, writer="sdk"))
    ledger.add(entry("u3", "a2", "prompt", offset=21))
    assert left(ledger) == ["u3"]


def test_what_belongs_to_a_foreign_turn_is_left_over_with_it() -> None:
    """A tool's result below a foreign answer is no conversation by itself, and unknown all the same; an own attachment is not."""
    ledger = Ledger()
    ledger.claim(["own"])
    ledger.add(entry("own", None, "prompt", writer="sdk"))
    ledger.add(entry("own-note", "own", "other", writer="sdk"))
    ledger.add(entry("typed-echo", "own-note", "echo"))
    ledger.add(entry("a1", "own", "answer", writer="sdk"))
    ledger.add(entry("result", "a1", "other", writer="sdk"))
    assert [uuid for uuid in ("own-note", "typed-echo", "a1", "result") if ledger.has_left_over(uuid)] == ["typed-echo", "a1", "result"]


@pytest.mark.parametrize("look", [False, True], ids=["read at once", "looked at in between"])
def test_one_message_id_for_every_answer_is_judged_the_same_whenever_it_is_looked_at(look: bool) -> None:
    """F05: an API that gives every answer the same id; a foreign answer stays foreign when the next own one is printed."""
    ledger = Ledger()
    first, own = ["u1", "a1", "same"], ["u3", "a3", "same"]
    ledger.claim(first if look else [*first, *own])
    ledger.add(entry("u1", None, "prompt", writer="sdk"))
    ledger.add(entry("a1", "u1", "answer", message="same", writer="sdk"))
    if look:
        ledger.claim(own)
    ledger.add(entry("u2", "a1", "prompt", writer="sdk"))
    ledger.add(entry("a2", "u2", "answer", message="same", writer="sdk"))
    ledger.add(entry("u3", "a1", "prompt", writer="sdk"))
    ledger.add(entry("a3", "u3", "answer", message="same", writer="sdk"))
    assert left(ledger) == ["u2", "a2"]


def test_the_first_own_record_is_where_the_headless_begins() -> None:
    """What stands before it may have been loaded."""
    ledger = Ledger()
    assert ledger.begins_at is None
    ledger.add(entry("a1", "x", "answer", offset=50, writer="sdk"))
    ledger.claim(["a1", "u1"])
    assert ledger.begins_at == 50
    ledger.add(entry("u1", "x", "prompt", offset=40, writer="sdk"))
    assert ledger.begins_at == 40


def test_a_copy_is_known_by_its_id() -> None:
    """The same record has the same copy, which no other record has, and a copy is told from an original."""
    original, other = "72350742-dff3-4ee0-a645-6602d6d2b86e", "72350742-dff3-4ee0-a645-6602d6d2b86f"
    assert copy_id(original) == copy_id(original.upper()) != copy_id(other)
    assert is_copy_id(copy_id(original))
    assert not is_copy_id(original)
    assert is_copied(original, {other, copy_id(original)})
    assert is_copied(copy_id(original), {original})
    assert not is_copied(original, {other, copy_id(other)})
    assert not is_copied(copy_id(original), {other})
