"""Reading a process's identity and state, and the handle through which it is signalled, on each kind of system."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ccc_hookspecs.processes import start_time
from ccc_plugins.retire_stale import identity
from ccc_plugins.retire_stale.identity import child_exit_code, is_stopped, own_line, presence, real_uid, state
from ccc_plugins.retire_stale.signalling import Handle

if TYPE_CHECKING:
    from tests.retire_stale.conftest import Fake, Lab

NO_SUCH_PID = 2**22 + 1
"""Above the highest pid that Linux and macOS give."""


def handle(fake: Fake) -> Handle:
    return Handle(fake.headless.pid, fake.headless.start_time)


def test_presence_of_a_living_process_and_of_a_zombie(lab: Lab, system: str) -> None:
    """Alive until the exit; gone from then on, reaped or not."""
    fake = lab.fake()
    pid, started = fake.headless.pid, fake.headless.start_time
    assert presence(pid, started) == "alive"
    fake.kill_unreaped()
    assert (state(pid), presence(pid, started)) == ("Z", "gone")
    fake.process.wait(5)
    assert (state(pid), presence(pid, started)) == (None, "gone")


@pytest.mark.case("C51")
def test_presence_compares_identities_of_three_values(lab: Lab) -> None:
    """The same start time within rounding is the same process, another one is another's, a missing one is unknown."""
    fake = lab.fake()
    pid, started = fake.headless.pid, fake.headless.start_time
    assert started is not None
    assert presence(pid, started + 1e-6) == "alive"
    assert presence(pid, started + 0.01) == "gone"
    assert presence(pid, None) == "unknown"
    assert presence(NO_SUCH_PID, None) == "gone"


def test_facts_about_our_own_process(system: str) -> None:
    """Our user, our state and our forebears are what the system says elsewhere."""
    assert real_uid(os.getpid()) == os.getuid()
    assert state(os.getpid()) in ("R", "S")
    assert not is_stopped(os.getpid())
    assert {os.getpid(), os.getppid()} <= own_line()


def test_nothing_is_known_of_a_process_that_is_not_there(system: str) -> None:
    """Every reading of a pid that nobody has answers that it is not known, and raises nothing."""
    assert (state(NO_SUCH_PID), real_uid(NO_SUCH_PID), is_stopped(NO_SUCH_PID)) == (None, None, False)
    assert child_exit_code(NO_SUCH_PID) is None


@pytest.mark.skipif(sys.platform != "linux", reason="threads of another process can only be seen on Linux")
def test_stopped_means_every_thread(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of which one thread still runs does not stand still."""
    fake = lab.fake()
    fake.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, fake.headless.pid, os.WSTOPPED)
    assert is_stopped(fake.headless.pid)
    letters = iter(["T", "D"])
    monkeypatch.setattr(identity, "_letter", lambda stat: next(letters))
    monkeypatch.setattr(os, "listdir", lambda path: ["1", "2"])
    assert not is_stopped(fake.headless.pid)


def test_exit_code_is_read_without_reaping(lab: Lab) -> None:
    """A child's exit code can be read before its parent collects it, and not of a living child."""
    fake = lab.fake()
    assert child_exit_code(fake.headless.pid) is None
    fake.kill_unreaped()
    assert child_exit_code(fake.headless.pid) == -signal.SIGKILL
    assert fake.process.wait(5) == -signal.SIGKILL
    assert child_exit_code(fake.headless.pid) is None


def test_handle_waits_for_the_exit_and_no_longer(lab: Lab, system: str) -> None:
    """Waiting ends with the exit, or says in time that there was none."""
    fake = lab.fake("--exit-after", "0.1")
    process = handle(fake)
    assert not process.wait_exit(0)
    assert not process.wait_exit(0.02)
    assert process.send(signal.SIGTERM)
    before = time.monotonic()
    assert process.wait_exit(20)
    assert time.monotonic() - before < 10
    assert not process.send(signal.SIGTERM)
    assert not process.send_to_group(signal.SIGKILL)
    process.close()
    process.close()


@pytest.mark.case("C59")
def test_handle_opened_on_a_former_owner_of_the_pid_signals_nothing(lab: Lab, system: str) -> None:
    """A handle for a process that is gone never signals the one that has its pid now, alone or by group."""
    fake = lab.fake()
    assert fake.headless.start_time is not None
    former = Handle(fake.headless.pid, fake.headless.start_time - 1)
    assert not former.send(signal.SIGKILL)
    assert not former.send_to_group(signal.SIGKILL)
    assert not former.send(signal.SIGCONT)
    former.close()
    assert fake.goes_on


@pytest.mark.case("C51")
def test_handle_of_unknown_identity_only_continues(lab: Lab, system: str) -> None:
    """Without a start time nothing that could end a process is sent."""
    fake = lab.fake()
    unknown = Handle(fake.headless.pid, None)
    assert not unknown.send(signal.SIGTERM)
    assert not unknown.send(signal.SIGSTOP)
    assert unknown.send(signal.SIGCONT)
    unknown.close()
    assert fake.goes_on


@pytest.mark.case("C82")
def test_who_leads_a_group(lab: Lab) -> None:
    """Only a process that leads a group which is not ours may take it along."""
    own, shared = lab.fake(), lab.fake(start_new_session=False)
    with closing(handle(own)) as leader, closing(handle(shared)) as member, closing(Handle(NO_SUCH_PID, 1.0)) as nobody:
        assert [one.leads_group() for one in (leader, member, nobody)] == [True, False, False]
    assert start_time(NO_SUCH_PID) is None


def test_wait_for_a_stop_ends_with_the_exit(lab: Lab, system: str) -> None:
    """A process that dies instead of stopping is not waited for to the end."""
    fake = lab.fake()
    fake.kill_unreaped()
    before = time.monotonic()
    with closing(handle(fake)) as process:
        assert not process.wait_stopped(20)
    assert time.monotonic() - before < 10
