"""Where plugins come from, and what is remembered of each."""

from __future__ import annotations

import importlib.metadata
import inspect
import logging
import operator
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Final, Literal, TypeAlias

from ccc_hookspecs.errors import PluginLoadError
from ccc_hookspecs.failures import meant_for_host
from ccc_hookspecs.isolation import Solo, report
from ccc_hookspecs.settings import PluginSettings

log = logging.getLogger(__name__)

GROUP: Final = "ccc.plugins"
"""The entry-point group that is searched for plugins."""

BY_HAND: Final = "registered by the host"
"""The source of a plugin that came in by `register`."""

PluginState: TypeAlias = Literal["active", "blocked", "disabled", "broken"]
"""See `PluginStatus.state`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginStatus:
    """One plugin as the manager knows it.

    `state`: `active` (called), `blocked` (by name, never imported), `disabled` (by its flag or at run time) or `broken` (could
    not be imported, configured or registered). `source`: the entry point's module, or how it came in. `reason`: why it
    is not active, None when it is. `distribution`: the name and version of what installed it, None when registered by hand.
    """

    name: str
    state: PluginState
    source: str
    reason: str | None = None
    distribution: str | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Entry:
    """What the manager remembers of one plugin. `plugin` and `solo` are None until it was imported and checked.

    `standing`: its state and the reason when it is not active, in one, so that they fit whenever they are read.
    `takes_settings`: whether it has a `configure`. `configured`: that it returned, and no `unconfigure` was called since.
    """

    name: str
    source: str
    point: EntryPoint | None = None
    distribution: str | None = None
    plugin: object = None
    solo: Solo | None = None
    standing: tuple[PluginState, str | None] = ("disabled", "it is being loaded")
    takes_settings: bool = False
    configured: bool = False

    @property
    def state(self) -> PluginState:
        """As in `PluginStatus`."""
        return self.standing[0]

    def status(self) -> PluginStatus:
        """What a host is told of it."""
        state, reason = self.standing
        return PluginStatus(name=self.name, state=state, source=self.source, reason=reason, distribution=self.distribution)

    def names(self, plugin: object) -> bool:
        """Whether this is the entry of that very object, or of an entry point that names it and was not loaded yet."""
        if self.plugin is not None or self.point is None:
            return self.plugin is plugin
        return (isinstance(plugin, ModuleType) and plugin.__name__ == self.source) or _named(self.point) is plugin

    def configure(self, settings: Callable[[], PluginSettings]) -> None:
        """Call the plugin's `configure`, if it has one and is not configured. Raises what that raises, once what it began is undone.

        `settings` is asked for only when they are wanted.
        """
        if self.configured:
            return
        configure, _ = self._function("configure"), self._function("unconfigure")
        self.takes_settings = configure is not None
        try:
            if configure is not None:
                configure(settings())
        except BaseException:
            self._undo()
            raise
        self.configured = True

    def unconfigure(self) -> None:
        """Call the plugin's `unconfigure`, if it has one and is configured. What it raises is reported. It may be configured again."""
        if self.configured:
            self.configured = not self._undo()

    def abandon(self) -> None:
        """The plugin turned out to be broken: end what it began, so that it may be tried again from the start."""
        self.unconfigure()
        self.configured = False

    def _undo(self) -> bool:
        """Call `unconfigure`; False when there is none, and so nothing is known to be undone."""
        try:
            unconfigure = self._function("unconfigure")
            if unconfigure is None:
                return False
            unconfigure()
        except BaseException as error:
            if meant_for_host(error):
                raise
            report(self.name, "unconfigure", error)
        return True

    def _function(self, name: str) -> Callable[..., object] | None:
        found: Callable[..., object] | None = getattr(self.plugin, name, None)
        if inspect.iscoroutinefunction(found):
            raise PluginLoadError(self.name, f"{name} is a coroutine function; it is called and not awaited")
        return found


def _named(point: EntryPoint) -> object:
    """The object that an entry point names, as far as its module was imported; else None."""
    try:
        module = sys.modules.get(point.module)
        return operator.attrgetter(point.attr)(module) if module is not None and point.attr else module
    except Exception:  # noqa: BLE001 - the name is no name, or the module's own code raised
        return None


def entry_points() -> Iterator[EntryPoint]:
    """The entry points of `GROUP`. Of two distributions of one name only the first on `sys.path` counts, as for imports."""
    seen = set()
    for distribution in importlib.metadata.distributions():
        try:
            name, points = _canonical(distribution.name), distribution.entry_points.select(group=GROUP)
        except Exception:
            log.warning("the metadata of an installed distribution cannot be read", exc_info=True)
            continue
        if name not in seen:
            seen.add(name)
            yield from points


def _canonical(name: str) -> str:
    """A distribution's name as it is compared: lower case, and one hyphen for any run of hyphens, dots and underscores."""
    return re.sub(r"[-_.]+", "-", name).lower()
