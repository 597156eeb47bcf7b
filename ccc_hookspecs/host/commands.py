"""The commands of `ccc-host`."""

from __future__ import annotations

import functools
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

import click

from ccc_hookspecs.host import listing, talking
from ccc_hookspecs.host.errors import ClaudeError, ExitCode
from ccc_hookspecs.host.host import EmbeddedHost
from ccc_hookspecs.host.output import Output
from ccc_hookspecs.host.serving import serve as serve_until
from ccc_hookspecs.host.stopping import breakable, interruptible
from ccc_hookspecs.host.store import STATE_VARIABLE
from ccc_hookspecs.host.tools import Context, Tools, command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--state", type=click.Path(path_type=Path), metavar="DIR", help=f"Where everything is kept; ${STATE_VARIABLE}.")
@click.option("--claude", metavar="PROGRAM", help="The Claude Code to start; $CCC_HOST_CLAUDE, else `claude` on the PATH.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else on standard output.")
@click.option("-v", "--verbose", is_flag=True, help="Log what goes on to standard error.")
@click.version_option(package_name="ccc-retire-stale")
@click.pass_context
def command_line(context: click.Context, state: Path | None, claude: str | None, as_json: bool, verbose: bool) -> None:
    """Keep Claude Code sessions running headless, feed them text, and open them in terminals."""
    logging.basicConfig(level=logging.DEBUG if verbose else logging.CRITICAL, format="%(name)s: %(message)s", stream=sys.stderr)
    context.obj = Context(state.absolute() if state is not None else None, claude, as_json)


@command_line.command()
@click.argument("prompt")
@click.option("--cwd", type=click.Path(path_type=Path, exists=True, file_okay=False), default=Path(), help="Where the session works.")
@click.option("--no-wait", is_flag=True, help="Do not wait for the answer.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- CLAUDE_ARGUMENTS...]")
@command
def start(tools: Tools, prompt: str, cwd: Path, no_wait: bool, arguments: tuple[str, ...]) -> ExitCode:
    """Begin a session with PROMPT (- reads it from standard input) and print its answer and its id."""
    text, host = _text(prompt), tools.host()
    with interruptible() as stop:
        session = host.begin(cwd.resolve(), arguments)
        message = host.store.outbox.add(session.session_id, text)
        tools.output.note(f"session {session.session_id}")
        host.push(session.session_id, lock_seconds=talking.PUSH_SECONDS)
        return _see(tools, host, message.message_id, stop, no_wait=no_wait)


@command_line.command()
@click.argument("session")
@click.argument("text", required=False)
@click.option("--no-wait", is_flag=True, help="Do not wait for delivery and answer.")
@click.option("--now", is_flag=True, help="Overrule what holds the session's first message, after saying what that costs.")
@command
def send(tools: Tools, session: str, text: str | None, no_wait: bool, now: bool) -> ExitCode:
    """Send TEXT (- reads it from standard input) to SESSION and print the answer.

    SESSION is an id or the beginning of one. Without TEXT what is kept for the session is tried again.
    """
    given, host = None if text is None else _text(text), tools.host()
    session_id = host.session(session).session_id
    with interruptible() as stop:
        waiting = host.store.outbox.open_of(session_id)
        if given is None and not waiting:
            tools.output.note("nothing is kept for this session")
            return ExitCode.OK
        message = waiting[-1] if given is None else host.store.outbox.add(session_id, given)
        if given is not None and given.strip() == "/clear":
            tools.output.note("/clear empties the process, not the session, which keeps its turns; `ccc-host start` begins an empty one")
        host.push(session_id, lock_seconds=talking.PUSH_SECONDS)
        if now:
            talking.overrule(host, tools.output, session_id, stop)
        return _see(tools, host, message.message_id, stop, no_wait=no_wait)


@command_line.command()
@click.argument("session")
@command
def terminal(tools: Tools, session: str) -> ExitCode:
    """Open SESSION in this terminal: its idle headless is retired first, then this becomes `claude --resume`."""
    host = tools.host()
    found = host.session(session)
    with interruptible() as stop:
        arguments, environ = host.launch_terminal(found)
        if stop.is_set():
            return ExitCode.INTERRUPTED
    if (headless := host.agents.known(found.session_id)) is not None:
        tools.output.note(
            f"the headless (process {headless.pid}) is still at work; what you say here it learns at the next `ccc-host send`"
        )
    sys.stdout.flush()
    try:
        os.chdir(found.cwd)
        os.execvpe(arguments[0], arguments, environ)
    except OSError as error:
        raise ClaudeError(f"{error.filename or arguments[0]}: {error.strerror or error}") from error


@command_line.command("list")
@command
def list_(tools: Tools) -> ExitCode:
    """Show the sessions, who drives each, and what is kept for it."""
    rows = listing.sessions(tools.host(plugins=False))
    if tools.output.as_json:
        tools.output.value(rows)
    else:
        listing.show_sessions(tools.output, rows)
    return ExitCode.OK


@command_line.command()
@click.argument("message")
@command
def drop(tools: Tools, message: str) -> ExitCode:
    """Give up a message that is kept and was not delivered. MESSAGE is its id or the beginning of it."""
    dropped = tools.host(plugins=False).drop(message)
    if tools.output.as_json:
        tools.output.value(talking.shown(dropped))
    else:
        tools.output.note(f"message {dropped.message_id} is dropped")
    return ExitCode.OK


@command_line.command()
@command
def plugins(tools: Tools) -> ExitCode:
    """Show the plugins: which are called, blocked, switched off or broken, and by what."""
    rows = listing.plugins()
    if tools.output.as_json:
        tools.output.value(rows)
    else:
        listing.show_plugins(tools.output, rows)
    return ExitCode.CONFIG if any(row["state"] == "broken" for row in rows) else ExitCode.OK


@command_line.command()
@command
def serve(tools: Tools) -> ExitCode:
    """Tick, ask about what is held, and deliver what is kept, until ^C or SIGTERM. The headless processes live on."""
    host = tools.host()
    with interruptible() as stop:
        interval = host.manager.config.ticker.interval
        if tools.output.as_json:
            tools.output.value({"what": "serving", "state_dir": str(host.state_dir), "interval": interval})
        tools.output.note(f"serving {host.state_dir}, a tick every {interval:g} s; ^C stops")
        serve_until(host, interval, stop, functools.partial(_report, tools.output))
    tools.output.note("stopped; the headless processes live on")
    return ExitCode.OK


@command_line.command()
@click.pass_context
def demo(context: click.Context) -> None:
    """Play the story of a stale headless: on a simulated Claude Code, with --claude before the command on the real one."""
    from ccc_hookspecs.host.demo import run

    context.exit(run(context.obj.claude or os.environ.get("CLAUDE") or None))


def _report(output: Output, event: dict[str, Any]) -> None:
    if output.as_json:
        output.value(event)
        return
    who = " ".join(str(part) for part in (event["session_id"], event["pid"] and f"process {event['pid']}") if part)
    signs = f" ({', '.join(event['signs'])})" if event["signs"] else ""
    output.note(f"{time.strftime('%H:%M:%S')} {event['what']} by {event['by']}: {who}: {event['reason']}{signs}")


def _see(tools: Tools, host: EmbeddedHost, message_id: str, stop: Any, *, no_wait: bool) -> ExitCode:
    message = host.store.outbox.get(message_id)
    if message is None:
        tools.output.note(f"message {message_id} was dropped by another command")
        return ExitCode.FAILED
    if no_wait:
        return talking.leave(host, tools.output, message)
    return talking.see_through(host, tools.output, message, stop)


def _text(given: str) -> str:
    with breakable():
        text = sys.stdin.read() if given == "-" else given
    if not text.strip():
        raise click.UsageError("the text is empty")
    return text
