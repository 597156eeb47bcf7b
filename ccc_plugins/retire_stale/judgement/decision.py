"""What follows from the two verdicts: the table of the use-time check."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ccc_hookspecs.outcomes import AttributionVerdict, IdlenessVerdict

Course: TypeAlias = Literal["deliver", "respawn", "hold"]


def course(attribution: AttributionVerdict, idleness: IdlenessVerdict, *, resumable: bool) -> Course:
    """What to do with a text for this headless.

    `resumable`: the transcript is there and holds the headless's last turn, so that ending the process loses nothing. A stale
    process never gets the text; one that cannot be told gets it rather than losing work or history by a respawn.

    | attribution | idle | busy or unknown |
    | --- | --- | --- |
    | fresh | deliver | deliver |
    | stale | respawn | hold |
    | unknown | respawn; deliver when not resumable | deliver |
    """
    if attribution == "fresh":
        return "deliver"
    if attribution == "stale":
        return "respawn" if idleness == "idle" and resumable else "hold"
    return "respawn" if idleness == "idle" and resumable else "deliver"
