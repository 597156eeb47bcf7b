"""Attaching at the right moment: when CCC's server module is complete, and before it does its first work.

CCC runs `server.py` as the main program in its dashboard, and imports it as `server` in its worker, some time after the start.
The dashboard is complete when it binds its port; the module in the worker is, when its import ends.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import logging
import socketserver
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Final

from ccc_hookspecs.errors import CccError
from ccc_hookspecs.failures import said, traceable
from ccc_hookspecs.integrations.command_center.names import is_command_center
from ccc_hookspecs.integrations.command_center.patches import Function, Patches

log = logging.getLogger(__name__)

MODULE: Final = "server"
"""The name under which CCC's worker imports the server."""

Attach = Callable[[ModuleType], object]


def install() -> None:
    """Attach to CCC as soon as this process turns out to be one; nothing happens in any other process. May be repeated."""
    module = sys.modules.get(MODULE)
    if is_command_center(module) and module is not sys.modules.get("__main__"):
        attach_or_say(module)
    elif not any(isinstance(finder, ServerFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, ServerFinder())
        _watch_main()


def attach_or_say(server: ModuleType | None) -> None:
    """Attach to this module. Whatever stands in the way is said once on stderr, and CCC runs on untouched."""
    try:
        from ccc_hookspecs.integrations.command_center.attach import attach

        if server is not None:
            attach(server)
    except CccError as error:
        print(f"ccc-retire-stale: {error}", file=sys.stderr, flush=True)
    except Exception as error:
        # CCC must start, whatever is wrong with the plugins or with what they need.
        log.error("attaching failed", exc_info=traceable(error))
        print(f"ccc-retire-stale: the plugins are not attached: {said(error)}. CCC runs on.", file=sys.stderr, flush=True)


class ServerFinder(importlib.abc.MetaPathFinder):
    """Finds the module `server` as Python would, with a loader that attaches to it when it is CCC's."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """None for every other module, and for one that nobody else finds."""
        if fullname != MODULE:
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(fullname, path, target) if finder is not self else None
            if spec is not None and spec.loader is not None:
                spec.loader = _AttachingLoader(spec.loader)
                return spec
        return None


class _AttachingLoader(importlib.abc.Loader):
    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        if is_command_center(module):
            attach_or_say(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def _watch_main() -> None:
    """Attach to the main program when it binds its port, if it is CCC's server by then."""
    patches = Patches()

    def server_bind(original: Function, *arguments: Any) -> None:
        main = sys.modules.get("__main__")
        if is_command_center(main):
            patches.undo()
            attach_or_say(main)
        original(*arguments)

    patches.wrap(socketserver.TCPServer, "server_bind", server_bind)
