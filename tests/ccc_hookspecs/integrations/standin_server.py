"""A stand-in for CCC's server module: the same names, shapes and answers, as far as the integration relies on them.

Loaded afresh for each test, with the directory STANDIN_HOME as its home.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.ccc_hookspecs.integrations.standin_spawns import Reattached, start

__version__ = "5.25.2"

Entry = dict[str, Any]
Answer = dict[str, Any]

HOME = Path(os.environ["STANDIN_HOME"])
COMMAND_CENTER_STATE_DIR = HOME / ".claude" / "command-center"
PROJECTS_ROOT = HOME / ".claude" / "projects"
PENDING_INPUTS_FILE = COMMAND_CENTER_STATE_DIR / "pending-inputs.json"
PENDING_INPUT_HANDOFF_DIR = COMMAND_CENTER_STATE_DIR / "pending-input-handoffs"
SPAWNED_PIDS_FILE = COMMAND_CENTER_STATE_DIR / "spawned-pids.json"

_spawned_sessions: list[Entry] = []
_pending_terminal_input_queue: dict[str, list[str]] = {}
activity: list[tuple[str, str, str]] = []
terminals: list[str] = []
worker: Callable[[str, str, dict[str, Any]], Answer] | None = None


# --- processes


def _question_relay_env() -> dict[str, str]:
    return dict(os.environ, CCC_QUESTION_RELAY="1")


def _start(session_id: str, kind: str) -> Entry:
    environment = dict(_question_relay_env(), SESSION=session_id, GO=str(HOME / "go"))
    row = start(kind, logs=HOME / "logs", fifos=COMMAND_CENTER_STATE_DIR / "fifos", environment=environment)
    return row | {"engine": "claude", "cwd": str(HOME), ("resumed_sid" if kind == "resume" else "session_id"): session_id}


def _poll_spawn_entry(entry: Entry) -> int | None:
    code: int | None = entry["proc"].poll()
    return code


def _save_registry() -> None:
    SPAWNED_PIDS_FILE.parent.mkdir(parents=True, exist_ok=True)
    SPAWNED_PIDS_FILE.write_text(
        json.dumps([{**row, "proc": None, "stdin_fd": None, "_input_write_lock": None} for row in _spawned_sessions])
    )


def _load_spawn_registry() -> list[Entry]:
    return json.loads(SPAWNED_PIDS_FILE.read_text()) if SPAWNED_PIDS_FILE.exists() else []


def _reattach_spawned_orphans() -> None:
    for row in _load_spawn_registry():
        row.pop("_input_write_lock")
        session_id = row.get("session_id") or row.get("resumed_sid")
        if Reattached(row["pid"]).poll() is not None:
            continue
        fd = os.open(row["fifo"], os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        row |= {"proc": Reattached(row["pid"]), "stdin_fd": fd, "reattached": True, "session_id": session_id, "resumed_sid": session_id}
        _spawned_sessions.append(row)


def _retire_unresponsive_spawn_entry(
    entry: Entry, *, terminate: bool = False, reason: str | None = None, caller: str | None = None
) -> None:
    alive = entry["proc"].poll() is None
    _log_activity("retire", "RETIRE", f"pid={entry['pid']} sid={entry.get('resumed_sid')} reason={reason} caller={caller} alive={alive}")
    if terminate:
        os.kill(entry["pid"], 15)
    if entry["stdin_fd"] is not None:
        os.close(entry["stdin_fd"])
        entry["stdin_fd"] = None
    if entry["fifo"]:
        os.unlink(entry["fifo"])
        entry["fifo"] = None
    if entry in _spawned_sessions:
        _spawned_sessions.remove(entry)
    _save_registry()


def _find(session_id: str) -> Entry | None:
    found = (e for e in _spawned_sessions if session_id in (e.get("resumed_sid"), e.get("session_id")) and _poll_spawn_entry(e) is None)
    return next(found, None)


def extract_session_id(path: str) -> str | None:
    lines = Path(path).read_text().splitlines() if path and Path(path).exists() else []
    return next((json.loads(line)["session_id"] for line in lines if '"session_id"' in line), None)


def _find_session_jsonl(session_id: str) -> Path | None:
    return next(PROJECTS_ROOT.glob(f"*/{session_id}.jsonl"), None)


# --- writing


def _write_fd_nonblocking(fd: int, line: bytes, timeout: float) -> bool:
    end = time.monotonic() + timeout
    while line:
        try:
            line = line[os.write(fd, line) :]
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(0.001)
        except OSError:
            return False
    return True


def _write_via_spawn_fd(target: Entry, line: bytes, timeout: float = 0.25) -> bool:
    fd = target.get("stdin_fd")
    return fd is not None and _write_fd_nonblocking(fd, line, timeout)


def _write_via_pipe(proc: Any, line_bytes: bytes) -> bool:
    if getattr(proc, "stdin", None) is None:
        return False
    proc.stdin.write(line_bytes)
    proc.stdin.flush()
    return True


def _write_stream_json_user_message(target: Any, text: str, timeout: float = 0.25) -> bool:
    message_id = str(uuid.uuid4())
    content = [{"type": "text", "text": text}]
    line = json.dumps({"type": "user", "uuid": message_id, "message": {"role": "user", "content": content}}).encode() + b"\n"
    with target.setdefault("_input_write_lock", threading.Lock()):
        if not _write_via_spawn_fd(target, line, timeout=timeout) and not _write_via_pipe(target.get("proc"), line):
            return False
        target["input_command_uuids"] = [*target.get("input_command_uuids", []), message_id]
        return True


def _write_stream_json_interrupt(target: Entry) -> bool:
    line = {"type": "user", "uuid": str(uuid.uuid4()), "message": {"content": [{"text": "interrupt"}]}}
    return _write_via_spawn_fd(target, json.dumps(line).encode() + b"\n")


def _events(entry: Entry) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(entry["log"]).read_text().splitlines()]


def _headless_turn_in_progress(entry: Entry) -> bool:
    done = {event["command_uuid"] for event in _events(entry) if event.get("state") == "completed"}
    return not set(entry.get("input_command_uuids", [])) <= done


def _headless_spawn_is_stale(entry: Entry, session_id: str | None = None) -> bool:
    return bool(entry.get("_stale"))


# --- routes


def spawn_session(prompt: str, session_id: str) -> Answer:
    return _first(_start(session_id, "spawn"), prompt)


def resume_session_headless(session_id: str, text: str, cwd: str | None = None, idempotency_key: str | None = None) -> Answer:
    if (routed := _control_plane_engine_call("claude", "resume", {"session_id": session_id, "text": text})) is not None:
        return routed
    entry = _find(session_id)
    if entry is not None:
        if _write_stream_json_user_message(entry, text):
            return {"ok": True, "pid": entry["pid"], "reused": True}
        if _headless_turn_in_progress(entry):
            return {"ok": False, "pid": entry["pid"], "error": "session input pipe is busy"}
        _retire_unresponsive_spawn_entry(entry, terminate=True, reason="write_failed")
    return _first(_start(session_id, "resume"), text)


def _first(entry: Entry, text: str) -> Answer:
    if not _write_stream_json_user_message(entry, text, timeout=30):
        _retire_unresponsive_spawn_entry(entry, terminate=True, reason="write_failed")
        return {"ok": False, "code": "spawn_stdin_unavailable", "error": "could not write the prompt"}
    _spawned_sessions.append(entry)
    _save_registry()
    return {"ok": True, "pid": entry["pid"], "log": entry["log"]}


def inject_into_spawned(pid: int, text: str) -> Answer:
    entry = next((e for e in _spawned_sessions if e["pid"] == pid), None)
    if entry is None:
        return {"ok": False, "error": "unknown pid"}
    return {"ok": _write_stream_json_user_message(entry, text), "pid": pid}


def _inject_text_into_session(
    session_id: str, text: str, *, _from_terminal_queue: bool = False, mode: str = "send", source: str = "api"
) -> Answer:
    args = {"session_id": session_id, "text": text, "from_terminal_queue": _from_terminal_queue}
    if (routed := _control_plane_engine_call("claude", "inject", args)) is not None:
        return routed
    entry = _find(session_id)
    if entry is None:
        return resume_session_headless(session_id, text)
    status = {"status": "headless", "pid": entry["pid"]}
    if mode == "steer" and _write_stream_json_interrupt(entry):
        done = _write_stream_json_user_message(entry, text)
        return {"ok": True, "via": "steer"} if done else _queue_terminal_input(session_id, text, status)
    if not _from_terminal_queue and _terminal_input_queue_has_pending(session_id):
        return _queue_terminal_input(session_id, text, status)
    if not _headless_turn_in_progress(entry) and _headless_spawn_is_stale(entry, session_id):
        _retire_unresponsive_spawn_entry(entry, terminate=True, reason="stale_transcript", caller="inject-stale-detection")
        return resume_session_headless(session_id, text)
    if _write_stream_json_user_message(entry, text):
        return {"ok": True, "pid": entry["pid"], "via": "spawn-fifo"}
    if _headless_turn_in_progress(entry):
        busy = {"ok": False, "pid": entry["pid"], "error": "session input pipe is busy"}
        return busy if _from_terminal_queue else _queue_terminal_input(session_id, text, status)
    _retire_unresponsive_spawn_entry(entry, terminate=True, reason="write_failed")
    return resume_session_headless(session_id, text)


def ask_session_and_wait(session_id: str, text: str, timeout_ms: int = 30000, cwd: str | None = None) -> Answer:
    entry = _find(session_id)
    if entry is None:
        answer = resume_session_headless(session_id, text, cwd=cwd)
        entry = _find(session_id)
        if not answer.get("ok") or entry is None:
            return answer
    elif not _write_stream_json_user_message(entry, text):
        return {"ok": False, "error": "failed to write user message (broken pipe?)", "source": "resume-headless"}
    deadline = time.monotonic() + timeout_ms / 1000
    while time.monotonic() < deadline:
        for event in _events(entry):
            if event.get("type") == "result" and event["user_message_uuid"] == entry["input_command_uuids"][-1]:
                return {"ok": True, "text": event["result"], "source": "resume-headless"}
        time.sleep(0.02)
    return {"ok": False, "error": "timeout", "source": "resume-headless"}


def compact_session_context(session_id: str, *, terminal_app: str | None = None, _from_terminal_queue: bool = False) -> Answer:
    entry = _find(session_id)
    if entry is None:
        return {"ok": False, "code": "compact_needs_manual"}
    done = _write_stream_json_user_message(entry, "/compact")
    return {"ok": done, "via": "live-spawn-stdin"} | ({} if done else {"code": "compact_stdin_write_failed"})


def clear_session_context(
    session_id: str, *, terminal_app: str | None = None, initial_message: str | None = None, _from_terminal_queue: bool = False
) -> Answer:
    entry = _find(session_id)
    if entry is None or not _write_stream_json_user_message(entry, "/clear"):
        return {"ok": False, "code": "clear_stdin_write_failed"}
    deadline = time.monotonic() + 20
    while (new_session_id := _events(entry)[-1]["session_id"]) == session_id:
        if time.monotonic() > deadline:
            return {"ok": False, "code": "clear_timeout"}
        time.sleep(0.01)
    entry.update({key: new_session_id for key in ("session_id", "resumed_sid") if key in entry})
    if initial_message:
        _write_stream_json_user_message(entry, initial_message)
    return {"ok": True, "via": "live-spawn-clear", "old_session_id": session_id, "new_session_id": new_session_id}


# --- the queue


def _queue_terminal_input(session_id: str, text: str, status: dict[str, Any] | None = None) -> Answer:
    _pending_terminal_input_queue.setdefault(session_id, []).append(text)
    _save_pending_inputs()
    return {"ok": True, "queued": True, "via": "terminal-queued", "session_id": session_id, "queued_reason": "the current turn is running"}


def _save_pending_inputs() -> None:
    PENDING_INPUTS_FILE.parent.mkdir(parents=True, exist_ok=True)
    PENDING_INPUTS_FILE.write_text(json.dumps({"terminal_queue": _pending_terminal_input_queue}))


def _terminal_input_queue_has_pending(session_id: str) -> bool:
    return bool(_pending_terminal_input_queue.get(session_id))


def _terminal_queue_waits_for_headless_turn(session_id: str, status: dict[str, Any] | None) -> bool:
    entry = _find(session_id)
    if entry is not None:
        return _headless_turn_in_progress(entry)
    state = _control_plane_engine_call("claude", "input_state", {"session_id": session_id}, mutate=False)
    return bool((state or {}).get("busy"))


def _write_pending_input_handoff(session_id: str, text: str, *, front: bool = False) -> Path | None:
    PENDING_INPUT_HANDOFF_DIR.mkdir(parents=True, exist_ok=True)
    path = PENDING_INPUT_HANDOFF_DIR / f"{time.time_ns()}-{uuid.uuid4()}.json"
    path.write_text(json.dumps({"id": path.stem, "session_id": session_id, "text": text, "front": front}))
    return path


def _archive_session_is_live(session_id: str) -> bool:
    return _find(session_id) is not None


def drain() -> None:
    """One pass of the thread that delivers the queue: of each session at most one text; the queue of a dead session is dropped."""
    _pending_terminal_input_queue.update(
        json.loads(PENDING_INPUTS_FILE.read_text())["terminal_queue"] if PENDING_INPUTS_FILE.exists() else {}
    )
    for session_id in list(_pending_terminal_input_queue):
        if not _archive_session_is_live(session_id):
            del _pending_terminal_input_queue[session_id]
        elif not _terminal_queue_waits_for_headless_turn(session_id, {}):
            text = _pending_terminal_input_queue[session_id].pop(0)
            if not _inject_text_into_session(session_id, text, _from_terminal_queue=True, source="terminal-queue-watcher").get("ok"):
                _pending_terminal_input_queue[session_id].insert(0, text)
            if not _pending_terminal_input_queue[session_id]:
                del _pending_terminal_input_queue[session_id]
        _save_pending_inputs()


def _try_wt_send_for_headless_delivery(session_id: str, text: str) -> Answer | None:
    return {"ok": True, "via": "wt-send"}


def _try_wt_ask_for_headless_delivery(session_id: str, text: str, timeout_ms: int) -> Answer | None:
    return {"ok": True, "via": "wt-ask"}


# --- the rest


def launch_terminal_for_session(
    session_id: str,
    cwd: str | None = None,
    terminal_app: str | None = None,
    post_slash_commands: list[str] | None = None,
    stop_headless: bool = False,
) -> Answer:
    terminals.append(session_id)
    return {"ok": True, "command": f"claude --resume {session_id}"}


def _control_plane_routes_engines() -> bool:
    return worker is not None and os.environ.get("CCC_WORKER_PROCESS") != "1"


def _control_plane_engine_call(
    engine: str, operation: str, args: dict[str, Any], *, mutate: bool = True, idempotency_key: str | None = None
) -> Answer | None:
    return worker(engine, operation, args) if worker is not None and _control_plane_routes_engines() else None


def _log_activity(category: str, verb: str, detail: str) -> None:
    activity.append((category, verb, detail))


class EngineHost:
    """The worker's side, which in CCC is `worker_engines.EngineHost`."""

    def _legacy(self) -> Any:
        return sys.modules[__name__]

    def query(self, params: dict[str, Any]) -> Answer:
        if params["operation"] == "input_state":
            entry = _find(params["args"]["session_id"])
            return {"ok": True, "owned": entry is not None, "busy": entry is not None and _headless_turn_in_progress(entry)}
        raise ValueError(f"unsupported worker engine operation: {params['engine']}.{params['operation']}")
