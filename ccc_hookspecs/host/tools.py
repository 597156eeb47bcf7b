"""What every command of `ccc-host` works with, and how it ends: `--json`, an exit code, every expected error as one line."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Concatenate, ParamSpec

import click

from ccc_hookspecs.errors import CccError, ConfigError, PluginLoadError, SessionLockTimeout
from ccc_hookspecs.failures import said
from ccc_hookspecs.host.errors import ExitCode, HostError
from ccc_hookspecs.host.host import EmbeddedHost
from ccc_hookspecs.host.output import Output
from ccc_hookspecs.manager import PluginManager
from ccc_hookspecs.outcomes import PluginFailure
from ccc_hookspecs.signals import plugin_failed

P = ParamSpec("P")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Context:
    """What the options before the command say."""

    state: Path | None
    claude: str | None
    as_json: bool


@dataclass(frozen=True)
class Tools:
    """What a command works with."""

    context: Context
    output: Output

    def host(self, *, plugins: bool = True) -> EmbeddedHost:
        """The host; `plugins`: with the plugins that the configuration names, for a command that calls hooks.

        That a plugin fails is told, in one line, from now on.
        """
        plugin_failed.connect(self._tell_failure)
        manager = PluginManager()
        if plugins:
            manager.load()
        return EmbeddedHost(self.context.state, manager=manager, claude=self.context.claude)

    def _tell_failure(self, plugin: str, event: PluginFailure) -> None:
        self.output.note(f"plugin {plugin} failed in {event.where}: {event.error}; `ccc-host -v` shows where")


def command(function: Callable[Concatenate[Tools, P], ExitCode]) -> Callable[P, None]:
    """A command with `--json`, the exit code it returns, and every expected error as one line."""

    @click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else on standard output.")
    @click.pass_context
    @functools.wraps(function)
    def run(context: click.Context, /, *args: P.args, **kwargs: P.kwargs) -> None:
        given: Context = context.obj
        output = Output(as_json=bool(kwargs.pop("as_json")) or given.as_json)
        context.exit(_guarded(output, lambda: function(Tools(given, output), *args, **kwargs)))

    return run


def _guarded(output: Output, act: Callable[[], ExitCode]) -> int:
    try:
        return act()
    except HostError as error:
        output.error(str(error))
        return error.exit_code
    except (ConfigError, PluginLoadError) as error:
        output.error(f"{error}; nothing was sent")
        return ExitCode.CONFIG
    except SessionLockTimeout as error:
        output.error(f"{error}: another process is at it, try again")
        return ExitCode.LOCKED
    except CccError as error:
        output.error(str(error))
        return ExitCode.FAILED
    except click.ClickException:
        raise
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except Exception as error:
        # The last resort: whatever it is, what was kept stays kept, and a line says so.
        log.debug("unexpected", exc_info=error)
        output.error(f"unexpected {said(error)}; what was kept stays kept, `ccc-host -v` shows where it happened")
        return ExitCode.FAILED
