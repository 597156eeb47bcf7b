"""The text that gives back the turns which a fresh process's branch lacks.

It begins with a marker that names the prompts it repeats. The marker stands in the transcript from then on, so that
whoever looks later knows from the file alone what was given back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ccc_hookspecs.claude.text import well_formed
from ccc_plugins.retire_stale.evidence.branches import Turn

_OPENING = (
    "This session was also driven from elsewhere, and the following turns are not in your history. "
    "They are part of this conversation; take them as said."
)
_CUT = "[earlier turns are left out here: {count}]"
_SHORTENED = "[…]"


@dataclass(frozen=True, slots=True)
class CatchUp:
    """`text` for the model, at most as long as asked for; `turns`, the `uuid`s of the prompts in it; `cut`, how many did not fit."""

    text: str = field(repr=False)
    turns: tuple[str, ...]
    cut: int = 0


def catch_up(turns: Sequence[Turn], limit: int) -> CatchUp | None:
    """A catch-up of at most `limit` characters, the oldest turns cut first; None when there is nothing to give back.

    A turn that was cut is not marked as given back. The newest is shortened rather than cut when it alone is too long. With
    no room even for that, all that is said is how many turns are lacking, whatever the limit.
    """
    if not turns:
        return None
    bodies = [_body(turn) for turn in turns]
    first = _first_that_fits(turns, bodies, limit)
    if first < len(turns):
        return CatchUp(_frame(turns[first:], bodies[first:], first), tuple(t.uuid for t in turns[first:]), first)
    cut = len(turns) - 1
    room = limit - len(_frame(turns[-1:], [""], cut)) - len(_SHORTENED)
    if room <= 0:
        return CatchUp(_frame((), (), len(turns)), (), len(turns))
    return CatchUp(_frame(turns[-1:], [bodies[-1][:room] + _SHORTENED], cut), (turns[-1].uuid,), cut)


def _first_that_fits(turns: Sequence[Turn], bodies: Sequence[str], limit: int) -> int:
    """The position of the oldest turn from which all the rest fits; the number of turns when not even the newest does."""
    used = len(_frame((), (), 0))
    for position in reversed(range(len(turns))):
        used += len(bodies[position]) + len(turns[position].uuid) + len("\n ")
        if used + (len(_CUT.format(count=position)) + 1 if position else 0) > limit:
            return position + 1
    return 0


def _frame(turns: Sequence[Turn], bodies: Sequence[str], cut: int) -> str:
    notes = [_CUT.format(count=cut)] if cut else []
    marker = f'<ccc-catch-up turns="{" ".join(t.uuid for t in turns)}">'
    return "\n".join([marker, _OPENING, *notes, *bodies, "</ccc-catch-up>"])


def _body(turn: Turn) -> str:
    said = [f"[user] {text}" for text in turn.asked] + [f"[assistant] {text}" for text in turn.answered]
    return well_formed("\n" + "\n".join(said))
