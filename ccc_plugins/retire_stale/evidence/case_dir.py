"""A recorded case: what one headless had left on disk at one moment, as a directory that can be judged anywhere.

* `case.json`: `session_id`, `head_pid`, `head_started` and `taken` (epoch seconds), `fifo_unread` (bytes), `children` (each with
  `own_group`), `sent` (ids), `claude` (release), `alive`;
* `transcript.jsonl`: the session's transcript; absent when there was none;
* `stdout.log`: the headless's stdout so far;
* `registry/<pid>.json`: Claude's live-session records.

A missing or null field is *unknown*.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeGuard

from ccc_hookspecs.checks import is_uuid
from ccc_hookspecs.values import Headless, SentInput
from ccc_plugins.retire_stale.evidence.observer import Judgement, Observer, Surroundings
from ccc_plugins.retire_stale.judgement.idleness import Idleness

_NO_SESSION = "00000000-0000-0000-0000-000000000000"


class CaseError(Exception):
    """A directory that holds no case. Attribute `directory`."""

    def __init__(self, directory: Path, reason: str) -> None:
        super().__init__(f"{directory}: {reason}")
        self.directory = directory


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCase:
    """Both verdicts on a case, and the prompts that a fresh `--resume` by its release would lack."""

    judgement: Judgement
    lost: tuple[str, ...]


def judge_case(directory: Path) -> JudgedCase:
    """Judge a directory in the form above; raises `CaseError` without a readable `case.json`. No process is looked at."""
    case = _read_case(directory)
    headless = _headless(directory, case)
    observer = Observer(headless, headless.spawned_at, copied=True)
    transcript = directory / "transcript.jsonl"
    observer.read(headless, transcript if transcript.exists() else None)
    release = case.get("claude") if isinstance(case.get("claude"), str) else None
    alive = case.get("alive") is not False
    judgement = observer.judge(_surroundings(directory, case))
    if not alive:
        judgement = replace(judgement, idleness=Idleness("idle", ("the process has ended",)))
    return JudgedCase(judgement=judgement, lost=observer.lost(release, alive=alive))


def _read_case(directory: Path) -> Mapping[str, Any]:
    path = directory / "case.json"
    try:
        case = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise CaseError(directory, "no case.json in it") from None
    except OSError as error:
        raise CaseError(directory, f"case.json cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise CaseError(directory, f"case.json is not JSON: {error}") from error
    if not isinstance(case, dict):
        raise CaseError(directory, "case.json holds no JSON object")
    return case


def _headless(directory: Path, case: Mapping[str, Any]) -> Headless:
    session, pid, sent = case.get("session_id"), case.get("head_pid"), case.get("sent")
    return Headless(
        session_id=str(session) if is_uuid(session) else _NO_SESSION,
        pid=max(1, int(pid)) if _is_count(pid) else 1,
        start_time=None,
        stdout_log=(directory / "stdout.log").absolute(),
        sent=tuple(SentInput(message_id=i) for i in sent if is_uuid(i)) if isinstance(sent, list) else None,
        spawned_at=_number(case.get("head_started")),
    )


def _surroundings(directory: Path, case: Mapping[str, Any]) -> Surroundings:
    records = _registry(directory)
    pid = case.get("head_pid") if _is_count(case.get("head_pid")) else None
    mine = records.get(pid)
    children = case.get("children")
    tools = [c for c in children if isinstance(c, dict) and c.get("own_group")] if isinstance(children, list) else []
    unread = case.get("fifo_unread")
    status = mine.get("status") if mine is not None else None
    return Surroundings(
        now=_number(case.get("taken")) or 0.0,
        unread=unread if _is_count(unread) else None,
        tools=tuple("in a process group of its own" for _ in tools) if isinstance(children, list) else None,
        children=len(children) if isinstance(children, list) else None,
        registry_status=status if isinstance(status, str) else None,
        registered=mine is not None,
        others=any(other != pid for other in records),
    )


def _registry(directory: Path) -> dict[Any, Mapping[str, Any]]:
    found: dict[Any, Mapping[str, Any]] = {}
    for path in sorted((directory / "registry").glob("*.json")):
        try:
            record = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(record, dict) and _is_count(record.get("pid")):
            found[record["pid"]] = record
    return found


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _number(value: object) -> float | None:
    """Seconds since the epoch; None for anything that cannot be that."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0 <= value < 1e12 else None
