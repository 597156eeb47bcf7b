"""The fixtures that plugin authors get, for their own tests."""

from __future__ import annotations

from ccc_hookspecs.testing.fixtures import captured_signals, claude_home, recording_host, simulator

__all__ = ["captured_signals", "claude_home", "recording_host", "simulator"]
