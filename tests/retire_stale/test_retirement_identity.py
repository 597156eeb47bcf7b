"""Which process a retirement signals, and which it never does."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from ccc_hookspecs.outcomes import Kept, Retirement
from ccc_hookspecs.processes import start_time
from ccc_plugins.retire_stale.retirement import ALREADY_EXITED
from ccc_plugins.retire_stale.signalling import Handle

if TYPE_CHECKING:
    from tests.retire_stale.conftest import Lab


@pytest.mark.case("C59", "C85")
def test_pid_of_another_program_is_not_signalled(lab: Lab, system: str) -> None:
    """When the pid now belongs to a process with another start time, that one is left alone and the headless counts as gone."""
    bystander = lab.fake()
    assert bystander.headless.start_time is not None
    former = replace(bystander.headless, start_time=bystander.headless.start_time - 3)
    outcome = lab.retire(former)
    assert isinstance(outcome, Kept)
    assert outcome.reason == ALREADY_EXITED
    assert lab.host.gone == [former]
    assert bystander.goes_on


@pytest.mark.case("C51")
def test_unknown_identity_is_neither_signalled_nor_released(lab: Lab) -> None:
    """Without a start time nothing is signalled and nothing is cleaned up."""
    fake = lab.fake()
    outcome = lab.retire(replace(fake.headless, start_time=None))
    assert isinstance(outcome, Kept)
    assert outcome.reason == "identity unknown"
    assert lab.host.gone == []
    assert fake.goes_on


@pytest.mark.case("C51")
def test_unreadable_start_time_is_neither_signalled_nor_released(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pid in use whose start time cannot be read is unknown, which is not the same as gone."""
    fake = lab.fake()
    monkeypatch.setattr("ccc_plugins.retire_stale.identity.start_time", lambda pid: None)
    outcome = lab.retire(fake.headless)
    assert isinstance(outcome, Kept)
    assert outcome.reason == "identity unknown"
    assert lab.host.gone == []
    monkeypatch.undo()
    assert fake.goes_on


@pytest.mark.case("C87")
@pytest.mark.parametrize(
    ("change", "reason"), [({"owned": False}, "another process of the host owns it"), ({"engine": "codex"}, "not a Claude headless")]
)
def test_what_is_not_ours_is_not_even_looked_at(lab: Lab, change: dict[str, Any], reason: str) -> None:
    """A headless that another process owns, or of another engine, is kept without a look."""
    fake = lab.fake()
    outcome = lab.retire(replace(fake.headless, **change))
    assert isinstance(outcome, Kept)
    assert outcome.reason == reason
    assert lab.looks == 0
    assert fake.goes_on


@pytest.mark.parametrize("pid", [os.getpid(), os.getppid()], ids=["ourselves", "our parent"])
def test_process_that_we_descend_from_is_never_signalled(lab: Lab, pid: int) -> None:
    """A registration that names our own process or a forebear keeps it."""
    fake = lab.fake()
    outcome = lab.retire(replace(fake.headless, pid=pid))
    assert isinstance(outcome, Kept)
    assert outcome.reason == "this process descends from it"
    assert lab.host.gone == []


def test_process_of_another_user_is_not_signalled(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root could signal everybody's processes, so the user is checked and not left to the kernel."""
    fake = lab.fake()
    monkeypatch.setattr("ccc_plugins.retire_stale.retirement.real_uid", lambda pid: os.getuid() + 1)
    outcome = lab.retire(fake.headless)
    assert isinstance(outcome, Kept)
    assert outcome.reason == "not known to run for this user"
    assert fake.goes_on


@pytest.mark.case("C85")
def test_only_the_judged_process_is_signalled(lab: Lab) -> None:
    """Another process on the same session, also one of our children, goes on."""
    terminal, fake = lab.fake(), lab.fake()
    assert isinstance(lab.retire(fake.headless), Retirement)
    assert terminal.goes_on


def test_process_of_a_former_host_is_retired(lab: Lab, system: str) -> None:
    """A headless that is nobody's child here, as after a restart of the host, is ended all the same; its exit code stays unknown."""
    fake = lab.fake("--children", "own")
    orphan = replace(fake.headless, pid=fake.children[0], start_time=start_time(fake.children[0]))
    outcome = lab.retire(orphan)
    assert isinstance(outcome, Retirement)
    assert outcome.exit_code is None
    assert not fake.child_alive(0)


def test_no_child_of_ours_is_needed_to_notice_the_end() -> None:
    """A handle on a process that never was says that it is gone."""
    with subprocess.Popen(["true"]) as short:
        pass
    handle = Handle(short.pid, 1.0)
    assert handle.presence() == "gone"
    assert not handle.send(signal.SIGTERM)
    handle.close()
