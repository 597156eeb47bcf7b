"""What `ccc-host list` and `ccc-host plugins` show."""

from __future__ import annotations

import time
from typing import Any

from ccc_hookspecs.host.host import EmbeddedHost
from ccc_hookspecs.host.output import Output
from ccc_hookspecs.host.records import Session
from ccc_hookspecs.host.talking import shown
from ccc_hookspecs.host.terminals import terminal_on
from ccc_hookspecs.manager import PluginManager


def sessions(host: EmbeddedHost) -> list[dict[str, Any]]:
    """Every session as JSON, the newest first: its headless, its terminal and the messages that are kept for it."""
    return [_session(host, session) for session in host.store.sessions.all()]


def _session(host: EmbeddedHost, session: Session) -> dict[str, Any]:
    head, terminal = host.agents.known(session.session_id), terminal_on(session)
    return {
        "session_id": session.session_id,
        "cwd": str(session.cwd),
        "created_at": session.created_at,
        "headless": None if head is None else {"pid": head.pid, "spawned_at": head.spawned_at, "release": head.release},
        "terminal": None if terminal is None else {"pid": terminal.pid},
        "messages": [shown(message) for message in host.store.outbox.open_of(session.session_id)],
    }


def show_sessions(output: Output, rows: list[dict[str, Any]]) -> None:
    """The sessions as a table, and below it what each kept message waits for."""
    output.table(
        ("session", "headless", "terminal", "kept", "directory"),
        [
            (
                row["session_id"],
                str(row["headless"]["pid"]) if row["headless"] else "-",
                str(row["terminal"]["pid"]) if row["terminal"] else "-",
                str(len(row["messages"]) or "-"),
                row["cwd"],
            )
            for row in rows
        ],
        "no session yet: `ccc-host start` begins one",
    )
    for row in rows:
        for message in row["messages"]:
            output.answer(f"{message['message_id']}  {message['state']}{_why(message)}")


def _why(message: dict[str, Any]) -> str:
    hold = message["hold"]
    if message["stuck"]:
        return ": not taken; `ccc-host send --now` gives up on who has it"
    if hold is None:
        return f": {message['error']}" if message["error"] else ""
    since = f" for {time.time() - message['held_since']:.0f} s" if message["held_since"] else ""
    return f"{since}: {hold['reason']}" + (f"; waits for: {', '.join(hold['signs'])}" if hold["signs"] else "")


def plugins() -> list[dict[str, Any]]:
    """Every plugin as JSON. Raises `ConfigError` for a configuration that cannot be used."""
    manager = PluginManager()
    return [
        {
            "name": status.name,
            "state": status.state,
            "source": status.source,
            "distribution": status.distribution,
            "reason": status.reason,
        }
        for status in manager.load()
    ]


def show_plugins(output: Output, rows: list[dict[str, Any]]) -> None:
    """The plugins as a table."""
    columns = ("name", "state", "reason", "distribution", "source")
    output.table(columns, [tuple(row[column] or "-" for column in columns) for row in rows], "no plugin is installed")
