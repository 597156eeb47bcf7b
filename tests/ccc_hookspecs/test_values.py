"""The values of hooks and of signals refuse what cannot be right where they are made, and keep conversation text out of `repr`."""

from __future__ import annotations

import dataclasses
import json
import typing
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccc_hookspecs import outcomes, values
from ccc_hookspecs.checks import is_uuid
from ccc_hookspecs.errors import CccError, InvalidValueError, NotWritten
from ccc_hookspecs.outcomes import (
    Deferral,
    Facts,
    ForeignRecord,
    Healed,
    HeldInjection,
    Kept,
    Outcome,
    Proposal,
    Respawned,
    Retirement,
    RetirementFailure,
    Veto,
)
from ccc_hookspecs.values import Decision, Deliver, Headless, Hold, Injection, Respawn, SentInput, TerminalLaunch, Tick

SESSION = "72350742-dff3-4ee0-a645-6602d6d2b86e"
MESSAGE = "0b6ee27a-5d51-4d8d-a1c3-7c1f3a0f6f0e"
OTHER = "11111111-2222-4333-8444-555555555555"
FACTS = Facts(attribution="stale", attribution_reason="one foreign record", idleness="idle")


def headless(**changes: Any) -> Headless:
    return Headless(**{"session_id": SESSION, "pid": 4711, "start_time": 12.5, **changes})


def injection(**changes: Any) -> Injection:
    return Injection(**{"session_id": SESSION, "text": "a secret", "message_id": MESSAGE, "headless": headless(), **changes})


HEALED: dict[str, Any] = {
    "headless": headless(),
    "mechanism": "m",
    "reason": "stale",
    "facts": FACTS,
    "turns": (MESSAGE,),
    "records": 3,
    "seconds": 0.5,
}

REFUSED: list[tuple[type[Any], dict[str, Any], str]] = [
    (Headless, {"session_id": "not-a-uuid", "pid": 1, "start_time": None}, "session_id"),
    (Headless, {"session_id": SESSION.replace("-", ""), "pid": 1, "start_time": None}, "session_id"),
    (Headless, {"session_id": SESSION, "pid": -4, "start_time": None}, "pid"),
    (Headless, {"session_id": SESSION, "pid": 0, "start_time": None}, "pid"),
    (Headless, {"session_id": SESSION, "pid": True, "start_time": None}, "pid"),
    (Headless, {"session_id": SESSION, "pid": "1", "start_time": None}, "pid"),
    (Headless, {"session_id": SESSION, "pid": 1, "start_time": -1.0}, "start_time"),
    (Headless, {"session_id": SESSION, "pid": 1, "start_time": float("nan")}, "start_time"),
    (Headless, {"session_id": SESSION, "pid": 1, "start_time": None, "fifo": Path("in.fifo")}, "fifo"),
    (Headless, {"session_id": SESSION, "pid": 1, "start_time": None, "stdout_log": Path("./log")}, "stdout_log"),
    (Headless, {"session_id": SESSION, "pid": 1, "start_time": None, "cwd": "/tmp"}, "cwd"),
    (Headless, {"session_id": SESSION, "pid": 1, "start_time": None, "config_dir": Path("~/.claude")}, "config_dir"),
    (Headless, {"session_id": SESSION, "pid": 1, "start_time": None, "engine": " "}, "engine"),
    (Headless, {"session_id": SESSION, "pid": 1, "start_time": None, "spawned_at": float("inf")}, "spawned_at"),
    (Headless, {"session_id": SESSION, "pid": 1, "start_time": None, "transcript_size": -1}, "transcript_size"),
    (Headless, {"session_id": SESSION, "pid": 1, "start_time": None, "transcript_size": "9"}, "transcript_size"),
    (Headless, {"session_id": SESSION, "pid": 1, "start_time": None, "sent": (MESSAGE,)}, "sent"),
    (Headless, {"session_id": SESSION, "pid": 1, "start_time": None, "sent": [SentInput(message_id=MESSAGE)]}, "sent"),
    (Headless, {"session_id": SESSION, "pid": 1, "start_time": None, "sent": (SentInput(message_id=MESSAGE), None)}, "sent"),
    (Headless, {"session_id": SESSION, "pid": 1, "start_time": None, "sent": "abc"}, "sent"),
    (Headless, {"session_id": SESSION, "pid": 1, "start_time": None, "resumed": "False"}, "resumed"),
    (Headless, {"session_id": SESSION, "pid": 1, "start_time": None, "resumed": 0}, "resumed"),
    (Headless, {"session_id": SESSION, "pid": 1, "start_time": None, "owned": "no"}, "owned"),
    (Headless, {"session_id": SESSION, "pid": 1, "start_time": None, "owned": None}, "owned"),
    (SentInput, {"message_id": "1"}, "message_id"),
    (SentInput, {"message_id": MESSAGE, "sent_at": -0.5}, "sent_at"),
    (SentInput, {"message_id": MESSAGE, "history": 1}, "history"),
    (SentInput, {"message_id": MESSAGE, "history": None}, "history"),
    (Injection, {"session_id": OTHER, "text": "", "message_id": MESSAGE, "headless": headless()}, "session_id"),
    (Injection, {"session_id": SESSION, "text": "", "message_id": "", "headless": headless()}, "message_id"),
    (Injection, {"session_id": SESSION, "text": b"", "message_id": MESSAGE, "headless": headless()}, "text"),
    (Injection, {"session_id": SESSION, "text": "", "message_id": MESSAGE, "headless": None}, "headless"),
    (Injection, {"session_id": SESSION, "text": "", "message_id": MESSAGE, "headless": headless(), "overrule": "no"}, "overrule"),
    (TerminalLaunch, {"session_id": None}, "session_id"),
    (TerminalLaunch, {"session_id": OTHER, "headless": headless()}, "session_id"),
    (TerminalLaunch, {"session_id": SESSION, "cwd": Path("here")}, "cwd"),
    (Tick, {"number": 0, "monotonic": 1.0, "interval": 5.0}, "number"),
    (Tick, {"number": 1, "monotonic": -1.0, "interval": 5.0}, "monotonic"),
    (Respawn, {"reason": ""}, "reason"),
    (Hold, {"reason": "  "}, "reason"),
    (Hold, {"reason": "busy", "signs": "an open turn"}, "signs"),
    (Hold, {"reason": "busy", "lingering": "no"}, "lingering"),
    (Hold, {"reason": "busy", "cost": 3}, "cost"),
    (Hold, {"reason": "busy", "cost": " "}, "cost"),
    (Veto, {"reason": ""}, "reason"),
    (ForeignRecord, {"uuid": None, "type": "user", "entrypoint": "cli", "offset": -1}, "offset"),
    (ForeignRecord, {"uuid": 5, "type": "user", "entrypoint": "cli", "offset": 1}, "uuid"),
    (ForeignRecord, {"uuid": None, "type": None, "entrypoint": "cli", "offset": 1}, "type"),
    (Facts, {"attribution": "old", "attribution_reason": "r", "idleness": "idle"}, "attribution"),
    (Facts, {"attribution": "stale", "attribution_reason": "r", "idleness": None}, "idleness"),
    (Facts, {"attribution": "stale", "attribution_reason": "", "idleness": "idle"}, "attribution_reason"),
    (Facts, {"attribution": "stale", "attribution_reason": "r", "idleness": "idle", "signs": ["busy"]}, "signs"),
    (Facts, {"attribution": "stale", "attribution_reason": "r", "idleness": "idle", "foreign": ("x",)}, "foreign"),
    (Facts, {"attribution": "stale", "attribution_reason": "r", "idleness": "idle", "log_size": -1}, "log_size"),
    (Proposal, {"headless": None, "mechanism": "m", "reason": "stale", "facts": FACTS}, "headless"),
    (Proposal, {"headless": headless(), "mechanism": "m", "reason": "stale", "facts": None}, "facts"),
    (Kept, {"headless": headless(), "mechanism": "", "reason": "busy"}, "mechanism"),
    (Kept, {"headless": headless(), "mechanism": "m", "reason": "busy", "would_retire": "no"}, "would_retire"),
    (Kept, {"headless": headless(), "mechanism": "m", "reason": "busy", "would_heal": 1}, "would_heal"),
    (Healed, HEALED | {"headless": None}, "headless"),
    (Healed, HEALED | {"mechanism": " "}, "mechanism"),
    (Healed, HEALED | {"reason": ""}, "reason"),
    (Healed, HEALED | {"facts": None}, "facts"),
    (Healed, HEALED | {"turns": [MESSAGE]}, "turns"),
    (Healed, HEALED | {"turns": MESSAGE}, "turns"),
    (Healed, HEALED | {"turns": (7,)}, "turns"),
    (Healed, HEALED | {"records": -1}, "records"),
    (Healed, HEALED | {"records": True}, "records"),
    (Healed, HEALED | {"seconds": float("nan")}, "seconds"),
    (RetirementFailure, {"headless": headless(), "mechanism": "m", "reason": "denied", "rung": "floor"}, "rung"),
    (RetirementFailure, {"headless": headless(), "mechanism": "m", "reason": "denied", "rung": "kill", "facts": "none"}, "facts"),
    (Respawned, {"headless": headless(), "retired": None, "reason": "stale"}, "retired"),
    (HeldInjection, {"session_id": SESSION, "message_id": MESSAGE, "hold": "busy", "since": 1.0}, "hold"),
    (HeldInjection, {"session_id": SESSION, "message_id": "x", "hold": Hold(reason="busy"), "since": 1.0}, "message_id"),
    (HeldInjection, {"session_id": SESSION, "message_id": MESSAGE, "hold": Hold(reason="busy"), "since": -1.0}, "since"),
    (Deferral, {"headless": headless(), "mechanism": "m", "reason": "busy", "facts": FACTS, "since": float("nan")}, "since"),
    (
        Retirement,
        {"headless": headless(), "mechanism": "m", "reason": "stale", "facts": FACTS, "rung": "terminate", "seconds": -1},
        "seconds",
    ),
]


@pytest.mark.parametrize(("kind", "arguments", "field"), REFUSED, ids=[f"{row[0].__name__}.{row[2]}-{n}" for n, row in enumerate(REFUSED)])
def test_a_value_that_cannot_be_right_is_refused_with_its_field_and_value(kind: type[Any], arguments: dict[str, Any], field: str) -> None:
    """The error names the type, the field and the value as given, in its attributes and in its text."""
    with pytest.raises(InvalidValueError) as caught:
        kind(**arguments)
    error = caught.value
    assert (error.type_name, error.field) == (kind.__name__, field)
    if field != "text":
        assert error.value is arguments[field] or error.value == arguments[field]
        assert repr(arguments[field]) in str(error)
    assert f"{kind.__name__}.{field}" in str(error)
    assert error.expected in str(error)
    assert isinstance(error, ValueError)


def test_what_can_be_right_is_accepted() -> None:
    """The least and the fullest form of each argument of a hook can be made."""
    sent = (SentInput(message_id=MESSAGE, sent_at=1.0),)
    full = headless(
        fifo=Path("/run/f"),
        stdout_log=Path("/run/l"),
        cwd=Path("/"),
        sent=sent,
        spawned_at=0,
        resumed=True,
        transcript_size=0,
        config_dir=Path("/c"),
        owned=False,
    )
    assert injection(headless=full).headless.sent == sent
    assert TerminalLaunch(session_id=SESSION, headless=full, cwd=Path("/")).headless is full
    assert TerminalLaunch(session_id=SESSION).headless is None
    assert Tick(number=1, monotonic=0.0, interval=5).number == 1
    assert headless(start_time=None).start_time is None


def test_an_outcome_says_what_was_healed_or_would_be() -> None:
    """A healing may have given nothing but answers; to keep a process is nothing more unless it is said."""
    assert dataclasses.replace(Healed(**HEALED), turns=(), records=0, seconds=0).turns == ()
    kept = Kept(headless=headless(), mechanism="m", reason="shadow mode")
    assert (kept.would_retire, kept.would_heal) == (False, False)
    would = dataclasses.replace(kept, would_heal=True)
    assert (would.would_retire, would.would_heal) == (False, True)


def test_what_was_not_written_says_where_and_why() -> None:
    """In its attributes and in its text; it is caught as any error of the hooks."""
    error = NotWritten(SESSION, "nobody reads it")
    assert isinstance(error, CccError)
    assert (error.session_id, error.reason) == (SESSION, "nobody reads it")
    assert str(error) == f"session {SESSION}: a line was not written: nobody reads it"


def line(kind: str, **fields: Any) -> bytes:
    """A line for a FIFO."""
    message = {"role": kind, "content": [{"type": "text", "text": "a secret"}]}
    return json.dumps({"type": kind, "uuid": MESSAGE, "message": message} | fields).encode() + b"\n"


@pytest.mark.parametrize(
    ("text", "history"),
    [
        (line("user"), False),
        (line("user", shouldQuery=True), False),
        (line("user", shouldQuery=None), False),
        (line("user", shouldQuery=0), False),
        (line("user", shouldQuery=False), True),
        (line("assistant"), True),
        (line("assistant", shouldQuery=True), True),
        (line("user", uuid=MESSAGE.upper()), False),
    ],
)
def test_a_line_is_the_input_that_its_id_names(text: bytes, history: bool) -> None:
    """Only what asks for no answer is history, and whatever the process is told that it answered itself."""
    found = SentInput.of_line(text, 2.5)
    assert found == SentInput(message_id=json.loads(text)["uuid"], sent_at=2.5, history=history)


@pytest.mark.parametrize(
    "text",
    [
        b'{"type": "control_request", "request_id": "1", "uuid": "%s"}\n' % MESSAGE.encode(),
        line("control_response"),
        line("system"),
        line("user", uuid=None),
        line("user", uuid="1"),
        line("assistant", uuid=7),
        line("user", type=["user"]),
        b"{}\n",
    ],
)
def test_a_line_that_is_no_input_is_none(text: bytes) -> None:
    """A request to the process, and what Claude Code gives an id of its own."""
    assert SentInput.of_line(text, 2.5) is None


@pytest.mark.parametrize("text", [b"", b"\n", b"{\n", b"\xff\n", b"[]\n", b'"user"\n', b"null\n", b"7\n", line("user") * 2])
def test_a_line_that_is_no_json_object_is_refused(text: bytes) -> None:
    """Without a word of what it says."""
    with pytest.raises(ValueError, match=r"JSON object|Expecting|decode|Extra data") as error:
        SentInput.of_line(text, 2.5)
    assert "secret" not in str(error.value)


def test_an_input_is_history_only_when_it_is_said() -> None:
    """As before there was any."""
    assert SentInput(message_id=MESSAGE).history is False
    assert SentInput(message_id=MESSAGE, history=True) != SentInput(message_id=MESSAGE)


def test_conversation_text_stays_out_of_repr_and_of_errors() -> None:
    """Neither an injection, an answer with a catch-up nor the error for a wrong text shows the text."""
    assert "secret" not in repr(injection())
    assert "secret" not in repr(Deliver(catch_up="a secret"))
    held: Any = [b"a secret"]
    for wrong in (lambda: injection(text=held), lambda: Deliver(catch_up=held)):
        with pytest.raises(InvalidValueError) as caught:
            wrong()
        assert "secret" not in f"{caught.value} {vars(caught.value)}"


@pytest.mark.parametrize("text", ["", " \n", 3, b"bytes"])
def test_a_catch_up_is_a_text_that_says_something(text: Any) -> None:
    """An empty first block of a message would be refused by the model's API, and anything else is no text."""
    with pytest.raises(InvalidValueError, match=r"Deliver\.catch_up is"):
        Deliver(catch_up=text)


def test_a_long_value_is_not_repeated_whole() -> None:
    """The error for thousands of wrong inputs stays short."""
    with pytest.raises(InvalidValueError) as caught:
        headless(sent=(MESSAGE,) * 5_000)
    assert len(str(caught.value)) < 2_000


def _value_types() -> list[type[Any]]:
    found = [(module, kind) for module in (values, outcomes) for kind in vars(module).values()]
    return [
        kind for module, kind in found if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__ == module.__name__
    ]


@pytest.mark.parametrize("kind", _value_types(), ids=lambda kind: kind.__name__)
def test_every_value_is_frozen_slotted_keyword_only_and_documented(kind: type[Any]) -> None:
    """Each value object of the contract is immutable, has no dict, is made with keywords and says what it is."""
    assert kind.__dataclass_params__.frozen
    assert "__dict__" not in dir(kind)
    assert all(field.kw_only for field in dataclasses.fields(kind))
    assert kind.__doc__ is not None
    assert not kind.__doc__.startswith(f"{kind.__name__}(")


def test_the_unions_are_closed() -> None:
    """A new decision or outcome cannot be added without this list, and the code that handles it, being looked at."""
    decisions: set[object] = {Deliver, Respawn, Hold}
    assert set(typing.get_args(Decision)) == decisions
    assert set(typing.get_args(Outcome)) == {Retirement, Healed, Deferral, Kept, RetirementFailure}


def test_only_proposals_and_outcomes_carry_a_mechanism() -> None:
    """Whatever a mechanism reports says which mechanism it was, and nothing else pretends to."""
    carriers = {kind for kind in _value_types() if "mechanism" in {field.name for field in dataclasses.fields(kind)}}
    assert carriers == {Proposal, *typing.get_args(Outcome)}


@given(st.uuids())
def test_every_uuid_is_one(value: uuid.UUID) -> None:
    """The canonical text of any UUID is accepted in either case, and its other spellings are not."""
    assert is_uuid(str(value))
    assert is_uuid(str(value).upper())
    assert not is_uuid(value.hex)
    assert not is_uuid(value)
    assert not is_uuid(f"{{{value}}}")


@given(st.text(max_size=40))
def test_no_other_text_is_a_uuid(text: str) -> None:
    """Whatever passes has the canonical form."""
    assert is_uuid(text) == (len(text) == 36 and str(text).lower() == _canonical(text))


def _canonical(text: str) -> str | None:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return None
