"""`retire-stale run`: start the real CCC with the plugins attached."""

from __future__ import annotations

import sys

import click

from ccc_hookspecs.errors import CccError
from ccc_hookspecs.integrations.command_center import launcher
from ccc_hookspecs.manager import PluginManager


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
def run(command: tuple[str, ...]) -> None:
    """Start CCC (Claude Command Center) with the plugins attached.

    COMMAND is how you start it without them, such as ./run.sh or python3 server.py. The plugins also reach the worker that
    CCC starts, and CCC's own restarts. A worker that runs already is not reached: restart it once.

    Exit status 2 for a wrong configuration of the plugins, 126 or 127 for a COMMAND that cannot be started.
    """
    try:
        PluginManager().load()
    except CccError as error:
        click.echo(f"retire-stale: {error}", err=True)
        sys.exit(2)
    try:
        launcher.run(command)
    except OSError as error:
        click.echo(f"retire-stale: {command[0]}: {error.strerror}", err=True)
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)
