"""The names of CCC's `server` module that this integration relies on, with the shape each must have.

Read in CCC 5.25.2. `check` finds what a given server module lacks, so that a CCC of another shape is left untouched
instead of half attached.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

MARKER: Final = "COMMAND_CENTER_STATE_DIR"
"""A module that has this name is taken for CCC's server."""


@dataclass(frozen=True, slots=True)
class Name:
    """One name. `shape`: the type its value must have, or None for a function that takes `parameters` by these names."""

    name: str
    parameters: tuple[str, ...] = ()
    shape: type | None = None

    def problem(self, owner: object) -> str | None:
        """What is wrong with this name on `owner`, in words; None when it is as expected."""
        value = getattr(owner, self.name, None)
        if self.shape is not None:
            return None if isinstance(value, self.shape) else f"{self.name} ({_found(value)}, expected a {self.shape.__name__})"
        if not callable(value):
            return f"{self.name}({', '.join(self.parameters)}) ({_found(value)})"
        lacking = [parameter for parameter in self.parameters if parameter not in inspect.signature(value).parameters]
        return f"{self.name} (takes no {', '.join(lacking)})" if lacking else None


def _found(value: object) -> str:
    return "missing" if value is None else f"is a {type(value).__name__}"


def _function(name: str, *parameters: str) -> Name:
    return Name(name, parameters)


SERVER: Final = (
    Name("COMMAND_CENTER_STATE_DIR", shape=Path),
    Name("PROJECTS_ROOT", shape=Path),
    Name("PENDING_INPUTS_FILE", shape=Path),
    Name("PENDING_INPUT_HANDOFF_DIR", shape=Path),
    Name("_spawned_sessions", shape=list),
    # Writing to a headless.
    _function("_write_stream_json_user_message", "target", "text", "timeout"),
    _function("_write_via_spawn_fd", "target", "line", "timeout"),
    _function("_write_via_pipe", "proc", "line_bytes"),
    # Who calls the writer.
    _function("_inject_text_into_session", "session_id", "text", "_from_terminal_queue"),
    _function("inject_into_spawned", "pid", "text"),
    _function("resume_session_headless", "session_id", "text", "cwd", "idempotency_key"),
    _function("ask_session_and_wait", "session_id", "text", "timeout_ms", "cwd"),
    _function("compact_session_context", "session_id", "_from_terminal_queue"),
    _function("clear_session_context", "session_id", "initial_message"),
    # Is it busy, is it stale, end it.
    _function("_poll_spawn_entry", "entry"),
    _function("_headless_turn_in_progress", "entry"),
    _function("_headless_spawn_is_stale", "entry", "session_id"),
    _function("_retire_unresponsive_spawn_entry", "entry", "terminate", "reason", "caller"),
    # The durable queue.
    _function("_queue_terminal_input", "session_id", "text", "status"),
    _function("_terminal_input_queue_has_pending", "session_id"),
    _function("_terminal_queue_waits_for_headless_turn", "session_id", "status"),
    _function("_write_pending_input_handoff", "session_id", "text"),
    _function("_archive_session_is_live", "session_id"),
    _function("_try_wt_send_for_headless_delivery", "session_id", "text"),
    _function("_try_wt_ask_for_headless_delivery", "session_id", "text", "timeout_ms"),
    # What is known of a spawn.
    _function("_load_spawn_registry"),
    _function("extract_session_id", "path"),
    _function("_find_session_jsonl", "session_id"),
    _function("_question_relay_env"),
    # The terminal, the worker, and where people look.
    _function("launch_terminal_for_session", "session_id", "cwd"),
    _function("_control_plane_engine_call", "engine", "operation", "args", "mutate"),
    _function("_control_plane_routes_engines"),
    _function("_log_activity", "category", "verb", "detail"),
)
"""What the `server` module must have."""

ENGINE_HOST: Final = (_function("query", "self", "params"),)
"""What `worker_engines.EngineHost` must have, in the worker process."""


def is_command_center(module: object) -> bool:
    """True for a module that looks like CCC's server, of whatever version."""
    return isinstance(module, ModuleType) and hasattr(module, MARKER) and hasattr(module, "__version__")


def check(server: object, engine_host: object = None) -> tuple[str, ...]:
    """What `server` lacks, and `engine_host` when it is given: one text a name, empty when all is as expected."""
    return tuple(_problems(server, SERVER)) + (tuple(_problems(engine_host, ENGINE_HOST)) if engine_host is not None else ())


def _problems(owner: object, names: tuple[Name, ...]) -> Iterator[str]:
    for name in names:
        problem = name.problem(owner)
        if problem is not None:
            yield problem
