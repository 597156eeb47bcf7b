"""What others raised or gave is told without trusting it."""

from __future__ import annotations

import functools
import logging
import threading

import pytest

from ccc_hookspecs.errors import InvalidValueError
from ccc_hookspecs.failures import LIMIT, meant_for_host, name_of, said, shown, text_of, traceable
from ccc_hookspecs.values import Hold
from tests.ccc_hookspecs.samples import Unspeakable


class Shy:
    """A value that cannot be shown and whose attributes cannot be asked for."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)


def test_an_exception_is_told_by_its_type_and_its_text() -> None:
    """Without a text, or with one that cannot be had, the type says it; a long text is cut."""
    assert (said(OSError("disk")), text_of(OSError("disk"))) == ("OSError: disk", "disk")
    assert said(OSError()) == text_of(OSError()) == "OSError"
    assert said(Unspeakable()) == text_of(Unspeakable()) == "Unspeakable"
    assert len(said(OSError("x" * 10 * LIMIT))) == len(text_of(OSError("x" * 10 * LIMIT))) == LIMIT


def test_a_value_is_shown_by_its_repr() -> None:
    """A value whose `repr` raises is shown by its type, and a long one is cut."""
    assert shown(["a"]) == "['a']"
    assert shown(Shy()) == "<Shy>"
    assert len(shown("x" * 10 * LIMIT)) == LIMIT


def test_a_value_that_cannot_be_shown_is_refused_like_any_other() -> None:
    """The error for a wrong field is the documented one, whatever was given."""
    with pytest.raises(InvalidValueError, match=r"Hold.reason is <Shy>"):
        Hold(reason=Shy())  # type: ignore[arg-type]


def test_a_callable_without_a_name_goes_by_its_type() -> None:
    """Functions and methods have names, a partial has none, and an object that raises when asked has none either."""
    assert name_of(said) == "said"
    assert name_of(functools.partial(said)) == "partial"
    assert name_of(Shy()) == "Shy"


def test_a_traceback_is_logged_only_where_it_can_be_made(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ordinary exception is `exc_info` itself; one over which the log call would raise, as on Python 3.11 and 3.12, is left out."""
    error = OSError("disk")
    assert traceable(error) is error
    logging.getLogger(__name__).error("told", exc_info=traceable(Unspeakable()))
    assert "told" in caplog.text

    def fails(*_: object) -> None:
        raise RuntimeError("its own code")

    monkeypatch.setattr("traceback.format_exception", fails)
    assert traceable(error) is None


def test_an_exit_is_the_hosts_on_the_main_thread_alone() -> None:
    """Signal handlers run on the main thread; elsewhere only an interrupt passes, and an ordinary exception never does."""
    errors = (OSError(), KeyboardInterrupt(), SystemExit(), GeneratorExit())
    assert [meant_for_host(error) for error in errors] == [False, True, True, True]
    elsewhere: list[bool] = []
    thread = threading.Thread(target=lambda: elsewhere.extend(map(meant_for_host, errors)))
    thread.start()
    thread.join()
    assert elsewhere == [False, True, False, False]
