"""The three hooks, called one plugin at a time in pluggy's own order."""

from __future__ import annotations

import logging
import threading
import warnings
from dataclasses import replace
from typing import Any

import pluggy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccc_hookspecs import Decision, Deliver, Hold, Host, Injection, Respawn, TerminalLaunch, Tick, hookimpl, isolation, specs
from ccc_hookspecs.manager import PluginManager
from ccc_hookspecs.outcomes import PluginFailure
from tests.ccc_hookspecs.samples import HOST, INJECTION, LAUNCH, TEXT, TICK, Unspeakable


class Recorder:
    """A plugin with every hook that remembers its arguments, in a list that may be shared."""

    def __init__(self, calls: list[tuple[object, ...]] | None = None, answer: Any = None) -> None:
        self.calls = calls if calls is not None else []
        self.answer = answer

    @hookimpl
    def pre_inject(self, ccc: Host, injection: Injection) -> Decision | None:
        self.calls.append((self, ccc, injection))
        answered: Decision | None = self._answered()
        return answered

    @hookimpl
    def on_terminal_launch(self, ccc: Host, launch: TerminalLaunch) -> None:
        self.calls.append((self, ccc, launch))
        self._answered()

    @hookimpl
    def on_tick(self, ccc: Host, tick: Tick) -> None:
        self.calls.append((self, ccc, tick))
        self._answered()

    def _answered(self) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def manager_of(*plugins: object, trace: isolation.Trace | None = None) -> PluginManager:
    manager = PluginManager(trace=trace)
    for number, plugin in enumerate(plugins):
        assert manager.register(plugin, f"plugin.number{number}").state == "active"
    return manager


def call(manager: PluginManager, hook: str) -> object:
    argument = {"pre_inject": INJECTION, "on_terminal_launch": LAUNCH, "on_tick": TICK}[hook]
    return getattr(manager, hook)(HOST, argument)


# --- each hook by name --------------------------------------------------------------------------------------------------


def test_pre_inject() -> None:
    """Plugins get the host and the injection; the first answer wins and ends the search; nobody answering means deliver."""
    calls: list[tuple[object, ...]] = []
    silent, first, later = Recorder(calls), Recorder(calls, Respawn(reason="stale")), Recorder(calls, Hold(reason="late"))
    assert manager_of(later, first, silent).pre_inject(HOST, INJECTION) == Respawn(reason="stale")
    assert calls == [(silent, HOST, INJECTION), (first, HOST, INJECTION)]
    assert manager_of(Recorder()).pre_inject(HOST, INJECTION) == Deliver()
    assert PluginManager().pre_inject(HOST, INJECTION) == Deliver()


def test_on_terminal_launch() -> None:
    """Every plugin gets the host and the launch before the call returns."""
    calls: list[tuple[object, ...]] = []
    one, two = Recorder(calls), Recorder(calls, "ignored")
    manager_of(one, two).on_terminal_launch(HOST, LAUNCH)
    assert calls == [(two, HOST, LAUNCH), (one, HOST, LAUNCH)]


def test_on_tick() -> None:
    """Every plugin gets the host and the tick."""
    calls: list[tuple[object, ...]] = []
    one, two = Recorder(calls), Recorder(calls, "ignored")
    manager_of(one, two).on_tick(HOST, TICK)
    assert calls == [(two, HOST, TICK), (one, HOST, TICK)]


def test_a_command_keeps_its_place_at_the_front() -> None:
    """No host hears of a text that would go before it."""
    command = replace(INJECTION, text=" /cost")
    assert manager_of(Recorder(answer=Deliver(catch_up="text"))).pre_inject(HOST, command) == Deliver()


@pytest.mark.parametrize("answer", [Deliver(), Deliver(catch_up="text"), Respawn(reason="stale"), Hold(reason="busy")])
def test_every_decision_reaches_the_host_as_it_is(answer: Decision) -> None:
    """What a plugin answers is what the host gets, also an explicit `Deliver`, which ends the search."""
    assert manager_of(Recorder(answer=Hold(reason="never asked")), Recorder(answer=answer)).pre_inject(HOST, INJECTION) is answer


# --- order --------------------------------------------------------------------------------------------------------------


def placed(calls: list[int], number: int, place: str) -> object:
    class Placed:
        @hookimpl(tryfirst=place == "first", trylast=place == "last")
        def pre_inject(self) -> None:
            calls.append(number)

    return Placed()


@given(st.lists(st.sampled_from(["first", "last", "any"]), max_size=7))
def test_the_order_is_pluggys_own(places: list[str]) -> None:
    """Whatever mix of `tryfirst` and `trylast`, plugins are called in the order in which pluggy itself would call them."""
    ours: list[int] = []
    theirs: list[int] = []
    plain = pluggy.PluginManager(specs.PROJECT)
    plain.add_hookspecs(specs)
    for number, place in enumerate(places):
        plain.register(placed(theirs, number, place))
    plain.hook.pre_inject(ccc=HOST, injection=INJECTION)
    manager_of(*(placed(ours, number, place) for number, place in enumerate(places))).pre_inject(HOST, INJECTION)
    assert ours == theirs
    assert sorted(ours) == list(range(len(places)))


# --- failures -----------------------------------------------------------------------------------------------------------


@pytest.mark.case("C94")
@pytest.mark.parametrize("hook", isolation.HOOKS)
def test_a_raising_plugin_silences_no_other(hook: str, failures: list[tuple[str, PluginFailure]], caplog: pytest.LogCaptureFixture) -> None:
    """The plugins before and after one that raises are called; its failure is logged and sent with its name."""
    calls: list[tuple[object, ...]] = []
    plugins = [Recorder(calls), Recorder(calls, OSError("disk")), Recorder(calls)]
    call(manager_of(*plugins), hook)
    assert [made[0] for made in calls] == plugins[::-1]
    assert failures == [("plugin.number1", PluginFailure(plugin="plugin.number1", where=hook, error="OSError: disk"))]
    assert f"plugin plugin.number1 failed in {hook}" in caplog.text
    assert "Traceback" in caplog.text


@pytest.mark.parametrize("hook", isolation.HOOKS)
def test_an_exception_that_cannot_be_told_silences_no_other(hook: str, failures: list[tuple[str, PluginFailure]]) -> None:
    """A failure whose own text raises is reported by its type, and the next plugin is called."""
    calls: list[tuple[object, ...]] = []
    call(manager_of(Recorder(calls), Recorder(calls, Unspeakable())), hook)
    assert len(calls) == 2
    assert failures == [("plugin.number1", PluginFailure(plugin="plugin.number1", where=hook, error="Unspeakable"))]


@pytest.mark.parametrize("answer", ["deliver", True, 0, object(), Hold], ids=["text", "bool", "number", "object", "class"])
def test_an_answer_that_is_no_decision_is_a_failure(answer: object, failures: list[tuple[str, PluginFailure]]) -> None:
    """It counts as no answer, the next plugin is asked, and the report names the type but not the value."""
    manager = manager_of(Recorder(answer=Hold(reason="next")), Recorder(answer=answer))
    assert manager.pre_inject(HOST, INJECTION) == Hold(reason="next")
    expected = f"TypeError: answered {type(answer).__name__}, expected Deliver, Respawn, Hold or None"
    assert [event.error for _, event in failures] == [expected]


def test_an_interrupt_of_the_host_is_not_a_plugins_failure() -> None:
    """KeyboardInterrupt and SystemExit raised during a hook call on the main thread reach the host, which they were meant for."""
    for error in (KeyboardInterrupt(), SystemExit(1)):
        with pytest.raises(type(error)):
            manager_of(Recorder(answer=error)).on_tick(HOST, TICK)


@pytest.mark.parametrize("hook", isolation.HOOKS)
def test_an_exit_off_the_main_thread_is_the_plugins_own(hook: str, failures: list[tuple[str, PluginFailure]]) -> None:
    """A plugin that exits on the ticker's or an injecting thread has failed, and the next one is called."""
    calls: list[tuple[object, ...]] = []
    manager = manager_of(Recorder(calls), Recorder(calls, SystemExit(2)))
    thread = threading.Thread(target=call, args=(manager, hook))
    thread.start()
    thread.join()
    assert len(calls) == 2
    assert [event.error for _, event in failures] == ["SystemExit: 2"]


def test_a_slow_plugin_is_logged_and_waited_for(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A call that takes longer than it should is named in the log, and the other plugins are called all the same."""
    monkeypatch.setattr(isolation, "SLOW_SECONDS", 0.0)
    calls: list[tuple[object, ...]] = []
    with caplog.at_level(logging.WARNING):
        manager_of(Recorder(calls), Recorder(calls)).on_tick(HOST, TICK)
    assert len(calls) == 2
    assert "plugin plugin.number1 took 0.0 s in on_tick" in caplog.text


# --- wrappers -----------------------------------------------------------------------------------------------------------


class Wrapper:
    """A third party's wrapper around every plugin, in one of several states of health."""

    def __init__(self, health: str = "sound", changed: Decision | None = None) -> None:
        self.health = health
        self.changed = changed
        self.saw: list[object] = []

    @hookimpl(wrapper=True)
    def pre_inject(self, ccc: Host, injection: Injection) -> Any:
        if self.health == "raises before":
            raise OSError("before")
        inside = yield
        self.saw.append(inside)
        if self.health == "raises after":
            raise OSError("after")
        if self.health == "yields again":
            yield
        return self.changed if self.changed is not None else inside


class OldWrapper(Wrapper):
    """The same in pluggy's older style."""

    @hookimpl(hookwrapper=True)
    def pre_inject(self, ccc: Host, injection: Injection) -> Any:
        if self.health == "raises before":
            raise OSError("before")
        outcome = yield
        self.saw.append(outcome.get_result())
        if self.health == "raises after":
            raise OSError("after")
        if self.health == "yields again":
            yield
        if self.changed is not None:
            outcome.force_result(self.changed)


@pytest.mark.parametrize("kind", [Wrapper, OldWrapper])
def test_a_wrapper_goes_around_all_plugins(kind: type[Wrapper]) -> None:
    """It is called once around the whole call, sees its answer and may change it; wrappers nest as pluggy nests them."""
    inner, outer = kind(changed=Hold(reason="inner")), kind(changed=Hold(reason="outer"))
    calls: list[tuple[object, ...]] = []
    manager = manager_of(Recorder(calls, Hold(reason="plugin")), inner, Recorder(calls), outer)
    assert manager.pre_inject(HOST, INJECTION) == Hold(reason="outer")
    assert len(calls) == 2
    assert inner.saw == [Hold(reason="plugin")]
    assert outer.saw == [Hold(reason="inner")]


@pytest.mark.case("C94")
@pytest.mark.parametrize("kind", [Wrapper, OldWrapper])
@pytest.mark.parametrize("health", ["raises before", "raises after", "yields again"])
def test_a_wrapper_that_fails_costs_nobody_else_their_call(
    kind: type[Wrapper], health: str, failures: list[tuple[str, PluginFailure]]
) -> None:
    """Each plugin inside is called once, its answer stands, the sound wrapper outside still sees it, and one failure is reported."""
    calls: list[tuple[object, ...]] = []
    sound = kind()
    manager = manager_of(Recorder(calls, Hold(reason="plugin")), kind(health), sound)
    with warnings.catch_warnings():
        # The older style warns when its teardown raises; here that would hide the error itself.
        warnings.simplefilter("ignore")
        assert manager.pre_inject(HOST, INJECTION) == Hold(reason="plugin")
    assert len(calls) == 1
    assert sound.saw == [Hold(reason="plugin")]
    assert [sender for sender, _ in failures] == ["plugin.number1"]


def test_a_wrapper_that_answers_nonsense_is_overruled(failures: list[tuple[str, PluginFailure]]) -> None:
    """When a wrapper turns the answer into something that is no decision, the answer inside it stands."""
    manager = manager_of(Recorder(answer=Hold(reason="plugin")), Wrapper(changed="nonsense"))  # type: ignore[arg-type]
    assert manager.pre_inject(HOST, INJECTION) == Hold(reason="plugin")
    assert [sender for sender, _ in failures] == ["plugin.number1"]


def test_a_wrapper_around_ticks_and_launches() -> None:
    """A hook without an answer can be wrapped too; all plugins have been called when the wrapper goes on."""

    class Around:
        def __init__(self) -> None:
            self.calls_before: list[int] = []

        @hookimpl(wrapper=True)
        def on_tick(self) -> Any:
            inside = yield
            self.calls_before.append(len(calls))
            return inside

        @hookimpl(wrapper=True)
        def on_terminal_launch(self) -> Any:
            inside = yield
            self.calls_before.append(len(calls))
            return inside

    calls: list[tuple[object, ...]] = []
    around, more = Around(), Around()
    manager = manager_of(around, Recorder(calls), more, Recorder(calls))
    manager.on_tick(HOST, TICK)
    manager.on_terminal_launch(HOST, LAUNCH)
    assert around.calls_before == more.calls_before == [2, 4]


# --- trace --------------------------------------------------------------------------------------------------------------


def test_the_trace_shows_hook_plugin_result_and_time() -> None:
    """One line for each plugin called, failures included, one when there is nobody; text never shows."""
    lines: list[str] = []
    plugins = [Recorder(answer=Deliver(catch_up=TEXT)), Recorder(answer=OSError("disk")), Recorder()]
    manager = manager_of(*plugins, trace=lines.append)
    manager.pre_inject(HOST, INJECTION)
    manager.on_tick(HOST, TICK)
    shown = [line.rsplit(" in ", 1)[0] for line in lines]
    assert shown == [
        "pre_inject plugin.number2: None",
        "pre_inject plugin.number1: failed",
        "pre_inject plugin.number0: Deliver()",
        "on_tick plugin.number2: done",
        "on_tick plugin.number1: failed",
        "on_tick plugin.number0: done",
    ]
    assert all(line.endswith(" ms") for line in lines)
    assert TEXT not in "".join(lines)
    lines.clear()
    PluginManager(trace=lines.append).on_tick(HOST, TICK)
    assert lines == ["on_tick: no plugin"]


def test_calls_from_several_threads_do_not_mix() -> None:
    """With a wrapper around it, each of many simultaneous calls gets its own answer."""

    class Echo:
        @hookimpl
        def pre_inject(self, ccc: Host) -> Decision:
            return Hold(reason=str(ccc))

    manager = manager_of(Echo(), Wrapper(), OldWrapper())
    wrong: list[object] = []

    def ask(name: Any) -> None:
        for _ in range(100):
            answer = manager.pre_inject(name, INJECTION)
            if answer != Hold(reason=name):
                wrong.append(answer)

    threads = [threading.Thread(target=ask, args=(f"host {number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
