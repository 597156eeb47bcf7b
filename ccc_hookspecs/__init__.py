"""The hooks of Claude Command Center: what a host calls, what a plugin implements, and the values that pass between them."""

from __future__ import annotations

from ccc_hookspecs.outcomes import Veto
from ccc_hookspecs.specs import Host, hookimpl, hookspec
from ccc_hookspecs.values import Decision, Deliver, Headless, Hold, Injection, Respawn, TerminalLaunch, Tick

__all__ = [
    "Decision",
    "Deliver",
    "Headless",
    "Hold",
    "Host",
    "Injection",
    "Respawn",
    "TerminalLaunch",
    "Tick",
    "Veto",
    "hookimpl",
    "hookspec",
]
