"""The value objects that signals carry: what was judged, and what became of it.

All are frozen and made with keywords. None holds conversation text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from ccc_hookspecs.checks import (
    check_count,
    check_flag,
    check_kind,
    check_one_of,
    check_optional_kind,
    check_quoted,
    check_seconds,
    check_text,
    check_texts,
    check_tuple,
    check_uuid,
)
from ccc_hookspecs.values import Headless, Hold

AttributionVerdict: TypeAlias = Literal["fresh", "stale", "unknown"]
"""Whether the headless has seen all of its session's transcript."""

IdlenessVerdict: TypeAlias = Literal["idle", "busy", "unknown"]
"""Whether it has nothing to do; `unknown` counts as busy."""

Rung: TypeAlias = Literal["judge", "identity", "settle", "freeze", "rejudge", "terminate", "kill", "released"]
"""The steps of a retirement, in their order."""

_ATTRIBUTIONS: Final = get_args(AttributionVerdict)
_IDLENESSES: Final = get_args(IdlenessVerdict)
_RUNGS: Final = get_args(Rung)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRecord:
    """A conversation record that another writer appended after the headless had loaded the session.

    `offset`: byte position of its line in the transcript. `entrypoint`: as Claude Code wrote it (`cli`, `sdk-cli`, ...), or None.
    """

    uuid: str | None
    type: str
    entrypoint: str | None
    offset: int

    def __post_init__(self) -> None:
        check_text(self, "type")
        check_quoted(self, "uuid", "entrypoint")
        check_count(self, "offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What decided: both verdicts with their evidence. `signs` are short texts in a fixed vocabulary, without conversation text."""

    attribution: AttributionVerdict
    attribution_reason: str
    idleness: IdlenessVerdict
    signs: tuple[str, ...] = ()
    foreign: tuple[ForeignRecord, ...] = ()
    transcript_size: int | None = None
    log_size: int | None = None

    def __post_init__(self) -> None:
        check_one_of(self, "attribution", _ATTRIBUTIONS)
        check_one_of(self, "idleness", _IDLENESSES)
        check_text(self, "attribution_reason")
        check_texts(self, "signs")
        check_tuple(self, "foreign", ForeignRecord)
        check_count(self, "transcript_size", "log_size")


def _check_subject(owner: Proposal | Outcome) -> None:
    check_kind(owner, "headless", Headless)
    check_text(owner, "mechanism", "reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A retirement or a healing that is about to be tried (signals `retirement_proposed`, `healing_proposed`).

    A subscriber may answer a `Veto`.
    """

    headless: Headless
    mechanism: str
    reason: str
    facts: Facts

    def __post_init__(self) -> None:
        _check_subject(self)
        check_kind(self, "facts", Facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Veto:
    """A subscriber's answer to a proposal: leave this process as it is. `reason` is reported."""

    reason: str

    def __post_init__(self) -> None:
        check_text(self, "reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retirement:
    """A headless was retired and is confirmed gone. `rung` is the last step needed, `seconds` the time from verdict to exit."""

    headless: Headless
    mechanism: str
    reason: str
    facts: Facts
    rung: Rung
    seconds: float
    exit_code: int | None = None

    def __post_init__(self) -> None:
        _check_subject(self)
        check_kind(self, "facts", Facts)
        check_one_of(self, "rung", _RUNGS)
        check_seconds(self, "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Healed:
    """A headless was given the turns that it did not know, and goes on with all of them in its memory.

    `turns`: the `uuid`s of the prompts that were given. `records`: how many records in all. `seconds`: how long it took. `facts`: as
    they were before.
    """

    headless: Headless
    mechanism: str
    reason: str
    facts: Facts
    turns: tuple[str, ...]
    records: int
    seconds: float

    def __post_init__(self) -> None:
        _check_subject(self)
        check_kind(self, "facts", Facts)
        check_texts(self, "turns")
        check_count(self, "records")
        check_seconds(self, "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferral:
    """A headless should go, but is busy or may be: it is asked again. `since` is seconds since the epoch of the first time."""

    headless: Headless
    mechanism: str
    reason: str
    facts: Facts
    since: float

    def __post_init__(self) -> None:
        _check_subject(self)
        check_kind(self, "facts", Facts)
        check_seconds(self, "since")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A headless was looked at and kept, for this reason. `would_retire`, `would_heal`: what shadow mode left undone."""

    headless: Headless
    mechanism: str
    reason: str
    facts: Facts | None = None
    would_retire: bool = False
    would_heal: bool = False

    def __post_init__(self) -> None:
        _check_subject(self)
        check_optional_kind(self, "facts", Facts)
        check_flag(self, "would_retire", "would_heal")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirementFailure:
    """A retirement that began and did not end in a confirmed exit. No second writer may be started while the process lives."""

    headless: Headless
    mechanism: str
    reason: str
    rung: Rung
    facts: Facts | None = None

    def __post_init__(self) -> None:
        _check_subject(self)
        check_optional_kind(self, "facts", Facts)
        check_one_of(self, "rung", _RUNGS)


Outcome: TypeAlias = Retirement | Healed | Deferral | Kept | RetirementFailure
"""How one look at one headless ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldInjection:
    """An injection is kept back. `since` is seconds since the epoch of its first hold."""

    session_id: str
    message_id: str
    hold: Hold
    since: float

    def __post_init__(self) -> None:
        check_uuid(self, "session_id", "message_id")
        check_kind(self, "hold", Hold)
        check_seconds(self, "since")


@dataclass(frozen=True, slots=True, kw_only=True)
class Respawned:
    """A fresh headless took over. `retired` is the process it replaces; `message_id` the message that asked for it."""

    headless: Headless
    retired: Headless
    reason: str
    message_id: str | None = None

    def __post_init__(self) -> None:
        check_kind(self, "headless", Headless)
        check_kind(self, "retired", Headless)
        check_text(self, "reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginFailure:
    """One plugin or one subscriber failed.

    `where`: the hook's or signal's name, `load` or `unconfigure`. `error`: what it raised, in words.
    """

    plugin: str
    where: str
    error: str
