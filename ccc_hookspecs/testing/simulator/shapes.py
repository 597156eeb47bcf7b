"""Which attachments and trailers each release writes around a request. A name that begins with `-` is a record without `uuid`."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ccc_hookspecs.testing.simulator.releases import Release

Situation: TypeAlias = Literal["begin", "terminal", "compact", "later", "aside"]
Since: TypeAlias = tuple[int, int, int]
Shapes: TypeAlias = tuple[tuple[Since, tuple[str, ...]], ...]

_REQUEST = ("-api-request-shape", "-api-request-blob", "-api-request")
_CONTEXT = ("-atis-latch", "session_context", "date", "remote_session_change", "prompt_snapshot")

_BEGIN = ("environment", "model", "deferred_tools_delta", "agent_listing_delta", "skill_listing", "auto_mode", *_CONTEXT)
_TERMINAL = ("deferred_tools_delta", "agent_listing_delta", "deferred_tools_record")

BEFORE_ANSWER: dict[Situation, Shapes] = {
    "begin": (
        ((2, 1, 332), (*_BEGIN, "-api-request-shape", "-api-request-blob", "-api-request-blob", "-api-request")),
        ((2, 1, 275), ("environment", "model", "agent_listing_delta", "skill_listing", "total_tokens_reminder", *_CONTEXT)),
        ((2, 1, 216), ("agent_listing_delta", "skill_listing")),
        ((2, 1, 119), ("skill_listing",)),
    ),
    "terminal": (
        ((2, 1, 332), (*_REQUEST, *_TERMINAL)),
        ((2, 1, 275), ("environment", "agent_listing_delta", "total_tokens_reminder")),
        ((2, 1, 216), ("agent_listing_delta",)),
    ),
    "compact": (((2, 1, 332), (*_CONTEXT[1:], *_REQUEST)), ((2, 1, 275), ("total_tokens_reminder", *_CONTEXT[1:]))),
    "later": (((2, 1, 332), ("-api-request",)), ((2, 1, 275), ("total_tokens_reminder",))),
    "aside": (((2, 1, 332), ("-api-request",)),),
}
"""After a prompt, before its first answer. `begin`: a session's first turn; `terminal`: a terminal's first; `aside`: nobody typed it."""

AFTER_ANSWER: dict[Situation, Shapes] = {
    "begin": (((2, 1, 275), ("prompt_snapshot", "-last-prompt", "-atis-latch")),),
    "terminal": (((2, 1, 332), ()), ((2, 1, 275), ("prompt_snapshot",))),
    "compact": (((2, 1, 275), ("prompt_snapshot", "-last-prompt", "-atis-latch")),),
    "later": (),
    "aside": (),
}

AFTER_COMPACT: Shapes = (
    ((2, 1, 332), ("deferred_tools_delta", "agent_listing_delta", "skill_listing", "environment", "model")),
    ((2, 1, 275), ("agent_listing_delta", "environment", "model")),
    ((2, 1, 216), ("agent_listing_delta",)),
)

AFTER_TEXTLESS: Shapes = (((2, 1, 332), ()), ((2, 1, 275), ("total_tokens_reminder",)))
"""After a tool's result that a host fed, or an empty input."""


def of(release: Release, shapes: Shapes) -> tuple[str, ...]:
    """The names that apply to this release: those of the newest entry that is not newer than it."""
    for since, names in shapes:
        if release.number >= since:
            return names
    return ()
