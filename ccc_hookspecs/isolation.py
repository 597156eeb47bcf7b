"""Calling the implementations of one hook, each on its own, so that one that raises never silences another.

pluggy ends a hook call at the first implementation that raises. So each plugin sits in a small pluggy manager of its own,
a `Solo`, which never changes once it is made: a call goes on in one thread while another thread replaces the chain.
The order of the calls is pluggy's own, taken from a manager that holds all of them.

Wrappers wrap the whole call, as pluggy has it. One that raises before its `yield` is left out, one that raises after it is
overruled: what stands is the answer of the implementations inside it, which are called once in either case.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, get_args

import pluggy

from ccc_hookspecs import specs
from ccc_hookspecs.errors import PluginLoadError
from ccc_hookspecs.failures import meant_for_host, said, shown, traceable
from ccc_hookspecs.outcomes import PluginFailure
from ccc_hookspecs.signals import emit, plugin_failed
from ccc_hookspecs.specs import PROJECT, Host, hookimpl, hookspec
from ccc_hookspecs.values import Decision, Injection, TerminalLaunch, Tick

log = logging.getLogger(__name__)

HOOKS: Final = ("pre_inject", "on_terminal_launch", "on_tick")
"""The names of all hooks."""

SLOW_SECONDS: Final = 2.0
"""One plugin's hook call that takes longer than this is logged as a warning."""

Proceed = Callable[[], object]
"""Calls the rest of a chain and gives its answer."""

Trace = Callable[[str], None]
"""Takes one line a hook call of a plugin."""

_DECISIONS: Final = get_args(Decision)
_FAILED: Final = object()


class _SoloSpecs:
    """The hooks as a solo knows them: `proceed` is the rest of the chain, which a wrapper goes around; None for all others."""

    @hookspec(firstresult=True)
    def pre_inject(self, ccc: Host, injection: Injection, proceed: Proceed | None) -> None: ...

    @hookspec
    def on_terminal_launch(self, ccc: Host, launch: TerminalLaunch, proceed: Proceed | None) -> None: ...

    @hookspec
    def on_tick(self, ccc: Host, tick: Tick, proceed: Proceed | None) -> None: ...


class _Rest:
    """The one other plugin in a solo: the rest of the chain, for a wrapper to go around."""

    @hookimpl(tryfirst=True)
    def pre_inject(self, proceed: Proceed | None) -> object:
        return proceed() if proceed is not None else None

    on_terminal_launch = on_tick = pre_inject


@dataclass(frozen=True, slots=True)
class Solo:
    """One plugin and its hooks, without the others. Made by `solo`."""

    name: str
    plugin: object
    hooks: Mapping[str, pluggy.HookCaller]


@dataclass(frozen=True, slots=True)
class Chain:
    """Who is called for one hook: `plain` in the order of the calls, `wrappers` from the innermost to the outermost."""

    hook: str
    plain: tuple[Solo, ...] = ()
    wrappers: tuple[Solo, ...] = ()


def solo(name: str, plugin: object) -> Solo:
    """Check `plugin`'s implementations against the specs and make them callable.

    Raises `PluginLoadError` or pluggy's `PluginValidationError` when there is a hook nobody calls, an argument no hook has,
    or a function that a plain call would not run.
    """
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(_SoloSpecs)
    manager.register(plugin, name)
    manager.check_pending()
    callers: dict[str, pluggy.HookCaller] = {hook: getattr(manager.hook, hook) for hook in HOOKS}
    hooks = {hook: caller for hook, caller in callers.items() if caller.get_hookimpls()}
    for hook, caller in hooks.items():
        for impl in caller.get_hookimpls():
            _check_runs(name, hook, impl)
    if any(_wraps(impl) for caller in hooks.values() for impl in caller.get_hookimpls()):
        manager.register(_Rest(), "ccc_hookspecs.rest")
    return Solo(name, plugin, hooks)


def _wraps(impl: pluggy.HookImpl) -> bool:
    return impl.wrapper or impl.hookwrapper


def _check_runs(name: str, hook: str, impl: pluggy.HookImpl) -> None:
    if inspect.iscoroutinefunction(impl.function) or inspect.isasyncgenfunction(impl.function):
        raise PluginLoadError(name, f"{hook} is a coroutine function; hooks are called and not awaited")
    if next(iter(inspect.signature(impl.function).parameters), None) == "self":
        raise PluginLoadError(name, f"{hook} needs an instance; register an object, not its class")
    if inspect.isgeneratorfunction(impl.function) and not _wraps(impl):
        raise PluginLoadError(name, f"{hook} yields but is not marked as a wrapper, so it would never run")


def chains(solos: Iterable[Solo]) -> dict[str, Chain]:
    """For each hook, who is called and in which order. Raises what pluggy raises when two plugins cannot be told apart."""
    by_name = {one.name: one for one in solos}
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(specs)
    for name, one in by_name.items():
        manager.register(one.plugin, name)
    return {hook: _chain(hook, getattr(manager.hook, hook).get_hookimpls(), by_name) for hook in HOOKS}


def _chain(hook: str, impls: list[pluggy.HookImpl], by_name: Mapping[str, Solo]) -> Chain:
    # pluggy lists implementations from the last called to the first, wrappers at the end with the outermost last.
    wrappers = dict.fromkeys(impl.plugin_name for impl in impls if _wraps(impl))
    plain = dict.fromkeys(impl.plugin_name for impl in reversed(impls) if impl.plugin_name not in wrappers)
    return Chain(hook, tuple(by_name[name] for name in plain), tuple(by_name[name] for name in wrappers))


def run(chain: Chain, arguments: Mapping[str, object], trace: Trace | None = None) -> Any:
    """Call everybody in `chain`; returns the first answer that is not None, or None. Only `pre_inject` is answered.

    Raises nothing that a plugin raises: each failure is logged with the plugin's name and sent as `plugin_failed`.
    """
    proceed: Proceed = partial(_plain, chain, arguments, trace)
    for wrapper in chain.wrappers:
        proceed = partial(_wrapped, wrapper, proceed, chain.hook, arguments, trace)
    if trace is not None and not (chain.plain or chain.wrappers):
        trace(f"{chain.hook}: no plugin")
    return proceed()


def _plain(chain: Chain, arguments: Mapping[str, object], trace: Trace | None) -> object:
    for one in chain.plain:
        answer = _ask(one, chain.hook, arguments, trace, None)
        if answer is not None and answer is not _FAILED:
            return answer
    return None


def _wrapped(wrapper: Solo, proceed: Proceed, hook: str, arguments: Mapping[str, object], trace: Trace | None) -> object:
    inner = _Once(proceed)
    answer = _ask(wrapper, hook, arguments, trace, inner)
    return inner() if answer is _FAILED else answer


class _Once:
    """Calls `proceed` at the first call and gives the same answer at each later one."""

    def __init__(self, proceed: Proceed) -> None:
        self._proceed = proceed
        self._answers: list[object] = []

    def __call__(self) -> object:
        if not self._answers:
            self._answers.append(self._proceed())
        return self._answers[0]


def _ask(one: Solo, hook: str, arguments: Mapping[str, object], trace: Trace | None, proceed: Proceed | None) -> object:
    started = time.perf_counter()
    try:
        answer = _answer(hook, one.hooks[hook](proceed=proceed, **arguments))
    except BaseException as error:
        if meant_for_host(error):
            raise
        report(one.name, hook, error)
        answer = _FAILED
    seconds = time.perf_counter() - started
    if seconds > SLOW_SECONDS and proceed is None:
        log.warning("plugin %s took %.1f s in %s", one.name, seconds, hook, extra={"ccc_mechanism": one.name})
    if trace is not None:
        trace(f"{hook} {one.name}: {_shown(hook, answer)} in {seconds * 1000:.3f} ms")
    return answer


def _answer(hook: str, given: object) -> object:
    if hook != "pre_inject":
        return None
    if given is not None and not isinstance(given, _DECISIONS):
        raise TypeError(f"answered {type(given).__name__}, expected Deliver, Respawn, Hold or None")
    return given


def _shown(hook: str, answer: object) -> str:
    if answer is _FAILED:
        return "failed"
    return shown(answer) if hook == "pre_inject" else "done"


def to_stderr(line: str) -> None:
    """A `Trace` that prints."""
    # A closed or full stderr must not reach the hook call that is traced.
    with contextlib.suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


def report(plugin: str, where: str, error: BaseException) -> None:
    """Log one plugin's failure with its traceback and send it as `plugin_failed`. `where` is the hook's name, `load` or `unconfigure`."""
    words = said(error)
    log.error("plugin %s failed in %s: %s", plugin, where, words, exc_info=traceable(error), extra={"ccc_mechanism": plugin})
    emit(plugin_failed, plugin, PluginFailure(plugin=plugin, where=where, error=words))
