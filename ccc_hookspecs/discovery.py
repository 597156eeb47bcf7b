"""Where plugins come from, and what is remembered of each."""

from __future__ import annotations

import importlib.metadata
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Final, Literal, TypeAlias

from ccc_hookspecs.isolation import Solo

log = logging.getLogger(__name__)

GROUP: Final = "ccc.plugins"
"""The entry-point group that is searched for plugins."""

BY_HAND: Final = "registered by the host"

PluginState: TypeAlias = Literal["active", "blocked", "disabled", "broken"]


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


@dataclass(slots=True, kw_only=True)
class Entry:
    """What the manager remembers of one plugin. `plugin` and `solo` are None until it was imported and checked."""

    name: str
    source: str
    point: EntryPoint | None = None
    distribution: str | None = None
    plugin: object = None
    solo: Solo | None = None
    state: PluginState = "disabled"
    reason: str | None = None

    def status(self) -> PluginStatus:
        return PluginStatus(name=self.name, state=self.state, source=self.source, reason=self.reason, distribution=self.distribution)


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
