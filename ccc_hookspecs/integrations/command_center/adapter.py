"""The host that CCC's `server` module makes: what a plugin sees of CCC."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import filelock

from ccc_hookspecs.checks import is_uuid
from ccc_hookspecs.errors import NotWritten, SessionLockTimeout
from ccc_hookspecs.host.pipe import input_of
from ccc_hookspecs.integrations.command_center.attempts import Entry
from ccc_hookspecs.integrations.command_center.debts import Debt, Debts
from ccc_hookspecs.integrations.command_center.feeding import Feeder, Unwritten
from ccc_hookspecs.integrations.command_center.patches import Function
from ccc_hookspecs.integrations.command_center.records import SpawnRecord, SpawnRecords
from ccc_hookspecs.integrations.command_center.spawns import engine_of, inputs_in, log_of, path_of, pid_of, resumed, spawned_at, sure_start
from ccc_hookspecs.processes import is_in_use, start_time
from ccc_hookspecs.values import Headless, SentInput

UNKNOWN_MECHANISM = "retire-stale"


class CommandCenterHost:
    """`ccc_hookspecs.specs.Host` over CCC's server module. Only what CCC spawned, or found again, in this process is owned.

    `state_dir` lies in CCC's own state directory, which the dashboard and the worker share.
    """

    def __init__(self, server: ModuleType) -> None:
        self._server = server
        self._retire: Function = server._retire_unresponsive_spawn_entry
        self._feeder = Feeder(server)
        self.state_dir: Path = server.COMMAND_CENTER_STATE_DIR / "plugins"
        self._locks = self.state_dir / "locks"
        self._locks.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.state_dir.chmod(0o700)
        self.records = SpawnRecords(self.state_dir / "spawns")
        self.debts = Debts(self.state_dir / "owed")
        self.reasons: dict[int, tuple[str, str]] = {}
        self._gone: deque[Entry] = deque(maxlen=256)
        self._starting: dict[int, Entry] = {}
        self._lock_files: dict[str, filelock.FileLock] = {}

    # --- the contract ---------------------------------------------------------------------------------------------------

    def headless_for(self, session_id: str) -> Headless | None:
        """The live headless of this session; one that this process owns is preferred."""
        found = [one for one in self.headless_agents() if one.session_id == session_id and one.engine == "claude"]
        return next((one for one in found if one.owned), found[0] if found else None)

    def headless_agents(self) -> Sequence[Headless]:
        """What this process owns, and what CCC's registry file says that another one owns."""
        own = [one for entry in self.live() if (one := self.headless(entry)) is not None]
        return own + list(self._of_others({one.pid for one in own}))

    @contextmanager
    def session_lock(self, session_id: str, timeout: float) -> Iterator[None]:
        """A lock file in the state directory. Raises `SessionLockTimeout`."""
        # One object a session: it counts the entries of each thread, and threads exclude each other as processes do.
        lock = self._lock_files.get(session_id)
        if lock is None:
            lock = self._lock_files.setdefault(session_id, filelock.FileLock(self._locks / f"{session_id}.lock", mode=0o600))
        try:
            lock.acquire(timeout=timeout)
        except filelock.Timeout as error:
            raise SessionLockTimeout(session_id, timeout) from error
        try:
            yield
        finally:
            lock.release()

    def write(self, headless: Headless, line: bytes) -> None:
        """CCC writes it as it writes texts, without a question to the plugins. Raises `NotWritten`, also for a line that Claude Code
        would end at.
        """
        entry = self.entry(headless.pid)
        found = self.headless(entry) if entry is not None and self.alive(entry) else None
        same = found is not None and (found.session_id, found.start_time) == (headless.session_id, headless.start_time)
        if entry is None or not same or headless.start_time is None:
            raise NotWritten(headless.session_id, f"process {headless.pid} is not the session's headless")
        try:
            given = input_of(line)
            self._feeder.prepare(entry, line)
            with self.records.sending(headless.pid, given):
                self._feeder.write(entry, line)
        except (Unwritten, OSError, ValueError) as error:
            raise NotWritten(headless.session_id, str(error)) from error

    def released(self, headless: Headless) -> None:
        """CCC drops the process as it drops one that it ended itself, and says so where it says that; the session is owed a successor."""
        entry = self.entry(headless.pid)
        if entry is None:
            return
        mechanism, reason = self.reasons.pop(headless.pid, (UNKNOWN_MECHANISM, "retired"))
        # CCC reports the end under this key, which a spawn that began its session has only after a restart of CCC.
        entry.setdefault("resumed_sid", headless.session_id)
        self._retire(entry, terminate=False, reason=f"{UNKNOWN_MECHANISM}: {reason}", caller=mechanism)
        self._gone.append(entry)
        self.records.drop(headless.pid)
        known = self.debts.get(headless.session_id) or Debt(reason=reason, mechanism=mechanism)
        self.debts.put(headless.session_id, known.replaced(headless, mechanism, reason))

    def config_dir(self, headless: Headless) -> Path:
        """Where this headless's Claude Code keeps its files."""
        default: Path = self._server.PROJECTS_ROOT.parent
        return headless.config_dir or default

    # --- for the rest of the integration --------------------------------------------------------------------------------

    def forget_ended(self) -> None:
        """Forget what is kept of processes that ended by themselves."""
        self.records.forget_ended()
        for pid in [pid for pid in self.reasons if not is_in_use(pid)]:
            self.reasons.pop(pid, None)

    def live(self) -> list[Entry]:
        """The rows of this process whose process is alive, of any engine."""
        rows = [row for row in list(self._server._spawned_sessions) if isinstance(row, dict)]
        return [row for row in rows if pid_of(row) is not None and self._server._poll_spawn_entry(row) is None]

    def listed(self, entry: Entry) -> bool:
        """True when this very row is among CCC's spawns; a process that has got no input yet is not."""
        return any(row is entry for row in list(self._server._spawned_sessions))

    def gone(self, entry: object) -> bool:
        """True for the row of a process that a mechanism retired."""
        return any(row is entry for row in self._gone)

    def alive(self, entry: Entry) -> bool:
        """True while the row's process runs."""
        return self._server._poll_spawn_entry(entry) is None

    @contextmanager
    def starting(self, entry: Entry) -> Iterator[None]:
        """A row that CCC puts on its list only when the first text was written."""
        self._starting[entry["pid"]] = entry
        try:
            yield
        finally:
            del self._starting[entry["pid"]]

    def entry(self, pid: int) -> Entry | None:
        """This process's row of that pid, or None."""
        listed = (row for row in list(self._server._spawned_sessions) if isinstance(row, dict) and row.get("pid") == pid)
        return next(listed, self._starting.get(pid))

    def session_of(self, entry: Entry) -> str | None:
        """The session that a row is registered under: what CCC has on it, else what its log named first; None while unknown."""
        record = self.record(entry)
        candidates = (entry.get("resumed_sid"), entry.get("session_id"), record.session_id if record else None)
        found = next((one for one in candidates if is_uuid(one)), None)
        if found is None and engine_of(entry) == "claude":
            found = self._server.extract_session_id(str(entry.get("log") or ""))
            if is_uuid(found) and record is not None:
                self.records.begin(record.of_session(found))
        return found if is_uuid(found) else None

    def headless(self, entry: Entry) -> Headless | None:
        """The value of a row; None while it has no session, or no pid."""
        session_id, pid, record = self.session_of(entry), pid_of(entry), self.record(entry)
        if session_id is None or pid is None:
            return None
        return Headless(
            session_id=session_id,
            pid=pid,
            start_time=record.start_time if record is not None else None,
            engine=engine_of(entry),
            fifo=path_of(entry.get("fifo")),
            stdout_log=log_of(entry),
            cwd=path_of(entry.get("cwd")),
            sent=record.known_inputs() if record is not None else None,
            spawned_at=record.spawned_at if record is not None else spawned_at(entry),
            resumed=record.resumed if record is not None else resumed(entry),
            transcript_size=record.transcript_size if record is not None else None,
            config_dir=path_of(record.config_dir) if record is not None else None,
        )

    def record(self, entry: Entry) -> SpawnRecord | None:
        """The record of a row, made now for one that was spawned without us; None when its identity is not certain."""
        pid = pid_of(entry)
        if pid is None:
            return None
        return self.records.get(pid) or self._note_late(entry, pid)

    def _note_late(self, entry: Entry, pid: int) -> SpawnRecord | None:
        """For a process that was given inputs before we were there: its log names them, from 2.1.216 on, and CCC the last ones."""
        if self.note(entry, sure_start(entry), None, late=True) is None:
            return None
        pending = entry.get("input_command_uuids")
        named = [*inputs_in(log_of(entry)), *(pending if isinstance(pending, list) else [])]
        for message_id in dict.fromkeys(filter(is_uuid, named)):
            self.records.sent(pid, SentInput(message_id=message_id))
        return self.records.get(pid)

    def note(self, entry: Entry, start: float | None, transcript_size: int | None, *, late: bool = False) -> SpawnRecord | None:
        """Make the record of a row whose process started at `start`; None, and no record, without one."""
        pid = pid_of(entry)
        if pid is None or start is None:
            return None
        session_id = entry.get("resumed_sid") or entry.get("session_id")
        record = SpawnRecord(
            pid=pid,
            start_time=start,
            session_id=session_id if is_uuid(session_id) else None,
            spawned_at=spawned_at(entry),
            resumed=resumed(entry),
            transcript_size=transcript_size,
            # One that was found again may have been started with another.
            config_dir=None if late else os.environ.get("CLAUDE_CONFIG_DIR") or None,
            late=late,
        )
        self.records.begin(record)
        return record

    def transcript_size(self, session_id: str) -> int | None:
        """Bytes of the session's transcript now; None when it is not found."""
        path = self._server._find_session_jsonl(session_id)
        try:
            return path.stat().st_size if path is not None else None
        except OSError:
            return None

    def _of_others(self, own: set[int]) -> Iterator[Headless]:
        for row in self._server._load_spawn_registry():
            pid = pid_of(row) if isinstance(row, dict) else None
            if pid is None or pid in own or engine_of(row) != "claude" or not is_uuid(row.get("session_id")):
                continue
            if start_time(pid) is not None and (record := self.records.get(pid)) is not None:
                yield Headless(session_id=row["session_id"], pid=pid, start_time=record.start_time, owned=False)
