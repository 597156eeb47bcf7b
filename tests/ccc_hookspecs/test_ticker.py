"""The ticker: one thread, a steady beat, and an end when it is told."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from ccc_hookspecs import ticker as module
from ccc_hookspecs.config import TickerSettings
from ccc_hookspecs.ticker import DEFAULT_INTERVAL, Ticker
from ccc_hookspecs.values import Tick
from tests.ccc_hookspecs.samples import Unspeakable

LONG = 60.0
"""An interval that no test lives to see: only `wake` makes a tick."""


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until `condition` holds; fail when it does not within a generous time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.002)


class Ticks:
    """A callback that remembers its ticks, tells that it is inside and can be made to wait there."""

    def __init__(self) -> None:
        self.seen: list[Tick] = []
        self.inside = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()
        self.at_once = 0
        self.most_at_once = 0

    def __call__(self, tick: Tick) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.seen.append(tick)
        self.inside.set()
        assert self.go_on.wait(30)
        self.at_once -= 1


def test_the_default_is_five_seconds_and_the_setting_allows_five_to_ten() -> None:
    """The interval of a `Ticker` made without one is that of the settings."""
    assert Ticker(print).interval == DEFAULT_INTERVAL == TickerSettings().interval == 5.0


@pytest.mark.parametrize("interval", [0, -1, float("nan"), float("inf"), 1e300, True, "5"])
def test_an_interval_is_seconds_that_can_be_waited_for(interval: float) -> None:
    """A ticker that would spin, or whose thread could not wait so long, is refused where it is made."""
    with pytest.raises(ValueError, match="expected seconds above 0"):
        Ticker(print, interval)


def test_ticks_are_counted_from_one_and_carry_time_and_interval() -> None:
    """Each tick says its number, its start on the monotonic clock and the interval; the first comes after one interval."""
    ticks = Ticks()
    began = time.monotonic()
    with Ticker(ticks, 0.05):
        wait_for(lambda: len(ticks.seen) >= 3)
    assert [tick.number for tick in ticks.seen[:3]] == [1, 2, 3]
    assert all(tick.interval == 0.05 for tick in ticks.seen)
    assert ticks.seen[0].monotonic >= began + 0.05


class Clock:
    """The time of a ticker, which passes only while it waits or a tick works."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        patch.setattr(module, "time", self)

    def monotonic(self) -> float:
        return self.now

    def waits(self, timeout: float) -> bool:
        self.now += timeout
        return False


def test_beats_stay_on_their_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither ticks that take most of the interval nor one that outlasts it push the later ones back."""
    clock, work = Clock(monkeypatch), [0.12, 0.12, 0.5, 0.12, 0.12]
    seen: list[float] = []

    def busy(tick: Tick) -> None:
        seen.append(round(tick.monotonic - 100.0, 6))
        clock.now += work[len(seen) - 1]
        run.stopping = len(seen) == len(work)

    beats = Ticker(busy, 0.2)
    run = module._Run(beats)
    monkeypatch.setattr(run.rouse, "wait", clock.waits)
    beats._loop(run)
    assert seen == [0.2, 0.4, 0.6, 1.2, 1.4]


def test_a_slow_tick_is_logged_and_covers_beats_instead_of_piling_them_up(caplog: pytest.LogCaptureFixture) -> None:
    """After a tick that outlasts several intervals the next one comes on the grid, and there are never two at once."""
    ticks = Ticks()
    ticks.go_on.clear()
    with caplog.at_level(logging.WARNING, "ccc_hookspecs.ticker"), Ticker(ticks, 0.02):
        assert ticks.inside.wait(20)
        time.sleep(0.2)
        assert len(ticks.seen) == 1
        ticks.go_on.set()
        released = time.monotonic()
        wait_for(lambda: len(ticks.seen) >= 4)
    assert ticks.most_at_once == 1
    assert "tick 1 took" in caplog.text
    assert ticks.seen[3].monotonic - released >= 0.04


@pytest.mark.parametrize(
    ("error", "told"),
    [(OSError("disk"), "OSError: disk"), (SystemExit(2), "SystemExit: 2"), (Unspeakable(), "Unspeakable")],
    ids=["an error", "an exit", "untold"],
)
def test_a_raising_tick_is_logged_and_the_next_one_still_comes(error: BaseException, told: str, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever a tick raises, an exit and an error that cannot be told among it, the thread lives on."""
    seen: list[int] = []

    def bad(tick: Tick) -> None:
        seen.append(tick.number)
        raise error

    with caplog.at_level(logging.ERROR, "ccc_hookspecs.ticker"), Ticker(bad, 0.01):
        wait_for(lambda: len(seen) >= 3)
    assert f"tick 1 raised: {told}" in caplog.text


def test_waking_makes_one_tick_now() -> None:
    """`wake` brings a tick long before its time, and several calls during a tick bring one more."""
    ticks = Ticks()
    with Ticker(ticks, LONG) as ticker:
        ticker.wake()
        wait_for(lambda: len(ticks.seen) == 1)
        ticks.inside.clear()
        ticks.go_on.clear()
        ticker.wake()
        assert ticks.inside.wait(20)
        for _ in range(5):
            ticker.wake()
        ticks.go_on.set()
        wait_for(lambda: len(ticks.seen) == 3)
        time.sleep(0.05)
    assert [tick.number for tick in ticks.seen] == [1, 2, 3]


def test_stopping_is_prompt_and_final() -> None:
    """A ticker in the middle of a long wait ends at once, its thread is gone and no tick follows, also when woken."""
    ticks = Ticks()
    ticker = Ticker(ticks, LONG, name="the-ticker")
    ticker.start()
    assert ticker.running
    began = time.monotonic()
    assert ticker.stop(20) is True
    assert time.monotonic() - began < 10
    assert not ticker.running
    assert "the-ticker" not in {thread.name for thread in threading.enumerate()}
    ticker.wake()
    assert ticks.seen == []
    assert ticker.stop() is True


def test_the_thread_is_a_daemon_and_starting_twice_makes_one() -> None:
    """A host can always exit, and a second `start` changes nothing."""
    with Ticker(Ticks(), LONG, name="only-one") as ticker:
        ticker.start()
        mine = [thread for thread in threading.enumerate() if thread.name == "only-one"]
        assert len(mine) == 1
        assert mine[0].daemon


def test_stopping_does_not_wait_longer_than_it_may() -> None:
    """With a tick under way `stop` says False after its timeout; a ticker started again waits for that tick to end."""
    ticks = Ticks()
    ticks.go_on.clear()
    ticker = Ticker(ticks, LONG)
    ticker.start()
    ticker.wake()
    assert ticks.inside.wait(20)
    assert ticker.stop(0.01) is False
    assert not ticker.running
    ticker.start()
    ticker.wake()
    time.sleep(0.05)
    assert len(ticks.seen) == 1
    ticks.go_on.set()
    wait_for(lambda: len(ticks.seen) == 2)
    assert ticker.stop(20) is True
    assert ticks.most_at_once == 1


def test_a_tick_may_stop_its_own_ticker() -> None:
    """`stop` from within a tick does not wait for itself; that tick is the last."""
    answers: list[bool] = []
    ticker = Ticker(lambda tick: answers.append(ticker.stop()), 0.01)
    ticker.start()
    wait_for(lambda: len(answers) == 1)
    wait_for(lambda: not any(thread.name == ticker.name for thread in threading.enumerate()))
    assert answers == [False]


FORK = """
import os, sys, threading, time
from ccc_hookspecs.ticker import Ticker

seen = []
ticker = Ticker(seen.append, 0.01)
ticker.start()
while len(seen) < 2:
    time.sleep(0.001)
child = os.fork()
if child == 0:
    before = len(seen)
    time.sleep(0.1)
    quiet = not ticker.running and len(seen) == before and threading.active_count() == 1
    ticker.wake()
    stopped = ticker.stop()
    ticker.start()
    time.sleep(0.1)
    os._exit(0 if quiet and stopped and ticker.running and len(seen) > before else 1)
before = len(seen)
_, status = os.waitpid(child, 0)
while len(seen) < before + 3:
    time.sleep(0.001)
print(os.waitstatus_to_exitcode(status), ticker.running, ticker.stop())
"""

FORK_WITHIN = """
import os, time
from ccc_hookspecs.ticker import Ticker

pids, seen = [], []
def forking(tick):
    seen.append(tick)
    if tick.number == 1:
        pids.append(os.fork())
    elif pids == [0]:
        os._exit(1)

ticker = Ticker(forking, 0.01)
ticker.start()
while len(seen) < 3:
    time.sleep(0.001)
_, status = os.waitpid(pids[0], 0)
print(os.waitstatus_to_exitcode(status), ticker.running, ticker.stop())
"""


@pytest.mark.parametrize("script", [FORK, FORK_WITHIN], ids=["from-another-thread", "from-within-a-tick"])
def test_a_fork_leaves_it_running_in_the_parent_alone(script: str) -> None:
    """After a fork the parent's ticks go on and the child has none, and may start its own."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "0 True True\n", done.stderr
