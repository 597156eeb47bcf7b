"""`python -m ccc_hookspecs.testing.simulator ARGS...`: a stand-in for `claude` with the same command line."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from ccc_hookspecs.testing.simulator import process, settings
from ccc_hookspecs.testing.simulator.agent import Agent, NoConversation
from ccc_hookspecs.testing.simulator.headless import BadInput, Failed, Headless, fail
from ccc_hookspecs.testing.simulator.inbox import Inbox, Terminated
from ccc_hookspecs.testing.simulator.terminal import Terminal, one_shot


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the simulator; returns the exit code (143 after SIGTERM, 129 after SIGHUP, 1 for what Claude Code refuses)."""
    try:
        wanted = settings.read(sys.argv[1:] if arguments is None else arguments)
    except settings.UsageError as error:
        return fail(str(error))
    if wanted.mode == "version":
        print(f"{wanted.release.name} (Claude Code)")
        return 0
    process.show_as(wanted.release)
    return _run(wanted)


def _run(wanted: settings.Settings) -> int:
    inbox = Inbox(deaf=wanted.deaf)
    if wanted.mode == "one-shot":
        inbox.closed = True
    agent = Agent(wanted, inbox, entrypoint="cli" if wanted.mode == "terminal" else "sdk-cli")
    try:
        agent.load()
    except NoConversation as error:
        return fail(f"No conversation found with session ID: {error}")
    try:
        return _front(agent)
    except Terminated as end:
        time.sleep(wanted.slow_exit)
        return 128 + end.number
    except BadInput as error:
        return fail(str(error))
    except Failed:
        return 1
    finally:
        agent.end()


def _front(agent: Agent) -> int:
    match agent.settings.mode:
        case "headless":
            return Headless(agent).run()
        case "terminal":
            return Terminal(agent).run()
    return one_shot(agent)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Threads of nobody and interpreter teardown would only delay the exit that a host waits for.
    os._exit(code)
