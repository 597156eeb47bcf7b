"""Errors of the hook system. Each carries its subject as attributes, so that callers need not parse text."""

from __future__ import annotations

from pathlib import Path

from ccc_hookspecs.failures import shown


class CccError(Exception):
    """Base of every error that `ccc_hookspecs` raises on purpose."""


class InvalidValueError(CccError, ValueError):
    """A value object was made with a field that cannot be right.

    Attributes: `type_name`, `field`, `value` (as given), `expected` (what it must be, in words).
    """

    def __init__(self, type_name: str, field: str, value: object, expected: str) -> None:
        super().__init__(f"{type_name}.{field} is {shown(value)}, expected {expected}")
        self.type_name = type_name
        self.field = field
        self.value = value
        self.expected = expected


class ConfigError(CccError):
    """A configuration file or environment variable that cannot be used.

    Attributes: `source` (path or variable name), `key` (dotted, or None), `value` (as given, or None), `nearest` (the nearest
    known key, or None).
    """

    def __init__(
        self, message: str, *, source: Path | str, key: str | None = None, value: object = None, nearest: str | None = None
    ) -> None:
        super().__init__(message)
        self.source = source
        self.key = key
        self.value = value
        self.nearest = nearest


class PluginLoadError(CccError):
    """A plugin could not be loaded or registered. Attributes: `plugin` (its name), `reason`."""

    def __init__(self, plugin: str, reason: str) -> None:
        super().__init__(f"plugin {plugin}: {reason}")
        self.plugin = plugin
        self.reason = reason


class SessionLockTimeout(CccError, TimeoutError):
    """A session's lock was not free in time. Attributes: `session_id`, `timeout` (seconds waited)."""

    def __init__(self, session_id: str, timeout: float) -> None:
        super().__init__(f"session {session_id}: its lock was not free within {timeout:g} s")
        self.session_id = session_id
        self.timeout = timeout


class NotWritten(CccError):
    """A host could not write a line into a headless's FIFO as a whole. Attributes: `session_id`, `reason`."""

    def __init__(self, session_id: str, reason: str) -> None:
        super().__init__(f"session {session_id}: a line was not written: {reason}")
        self.session_id = session_id
        self.reason = reason
