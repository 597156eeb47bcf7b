"""What CCC does not keep of a spawn, and attribution needs: its identity, and every input it was ever sent.

CCC keeps only the inputs that were not acknowledged yet, and recognises a process after its own restart by the program's
name. So the process that owns a spawn writes one file for it: a first line with what was so at the spawn, then a line
for each input, and one more for an input that was noted and then not written. The file is only appended to, and its name
holds the process's identity.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ccc_hookspecs.checks import is_uuid
from ccc_hookspecs.processes import has_ended, start_time
from ccc_hookspecs.values import SentInput

log = logging.getLogger(__name__)

_HEAD: Final = ("session_id", "spawned_at", "resumed", "transcript_size", "config_dir", "late")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnRecord:
    """One spawn. Fields as in `Headless`.

    `late`: the process had got inputs before it was noted. `size`: how many bytes of the file this was read from.
    """

    pid: int
    start_time: float
    session_id: str | None = None
    spawned_at: float | None = None
    resumed: bool | None = None
    transcript_size: int | None = None
    config_dir: str | None = None
    late: bool = False
    sent: tuple[SentInput, ...] = ()
    size: int = 0

    def of_session(self, session_id: str) -> SpawnRecord:
        """The same with the session it turned out to have."""
        return replace(self, session_id=session_id)

    def known_inputs(self) -> tuple[SentInput, ...] | None:
        """Every input, in the order of the writing; None when some were written before the record was made, and nothing names them."""
        return None if self.late and not self.sent else self.sent


class SpawnRecords:
    """The records of one state directory. A record is only found while its very process exists."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[int, SpawnRecord] = {}
        self._unwritten: dict[int, bytes] = {}
        self._lock = threading.Lock()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def begin(self, record: SpawnRecord) -> None:
        """Note a spawn; to be called before anything is written to it."""
        head = {key: getattr(record, key) for key in _HEAD}
        self._append(record, head)

    def sent(self, pid: int, sent: SentInput) -> None:
        """Note an input that was written to this process. Does nothing for a process that was never noted."""
        record = self.get(pid)
        if record is not None:
            line: dict[str, object] = {"message_id": sent.message_id, "sent_at": sent.sent_at}
            self._append(record, line | ({"history": True} if sent.history else {}))

    @contextmanager
    def sending(self, pid: int, given: SentInput | None) -> Iterator[None]:
        """Note an input, if there is one, that is about to be written; an exception says that not all of it was, and it is none."""
        record = self.get(pid)
        if record is None or given is None or given.message_id in {one.message_id for one in record.sent}:
            yield
            return
        self.sent(pid, given)
        try:
            yield
        except BaseException:
            if (record := self.get(pid)) is not None:
                self._append(record, {"message_id": given.message_id, "unsent": True})
            raise

    def get(self, pid: int) -> SpawnRecord | None:
        """The record of the process that has this pid now, also when another process of the host wrote it; None without one."""
        known = self._known.get(pid)
        start = known.start_time if known is not None else start_time(pid)
        if start is None:
            return None
        size = _size(self._path(pid, start))
        if known is None or known.size != size:
            if not size:
                return None
            known = self._known[pid] = _read(self._path(pid, start), SpawnRecord(pid=pid, start_time=start))
        return known

    def drop(self, pid: int) -> None:
        """Forget a process that is gone."""
        with self._lock:
            self._unwritten.pop(pid, None)
            record = self._known.pop(pid, None)
        if record is not None:
            self._path(pid, record.start_time).unlink(missing_ok=True)

    def write_late(self) -> None:
        """Write what could not be written before."""
        for pid in list(self._unwritten):
            with self._lock:
                raw, record = self._unwritten.pop(pid, b""), self._known.get(pid)
                if raw and record is not None:
                    self._put(record, raw)

    def forget_ended(self) -> None:
        """Forget the processes known here that ended by themselves."""
        for pid, record in list(self._known.items()):
            if has_ended(pid, record.start_time):
                self.drop(pid)

    def sweep(self) -> None:
        """Remove the records of all processes that are gone, whoever knew them; to be called once at start."""
        for path in self._folder.glob("*.jsonl"):
            if _is_over(path):
                path.unlink(missing_ok=True)

    def _path(self, pid: int, start: float) -> Path:
        return self._folder / f"{pid}-{start!r}.jsonl"

    def _append(self, record: SpawnRecord, line: dict[str, object]) -> None:
        raw = json.dumps(line).encode() + b"\n"
        with self._lock:
            self._put(_read_lines(record, raw), self._unwritten.pop(record.pid, b"") + raw)

    def _put(self, record: SpawnRecord, raw: bytes) -> None:
        """Make `record` the one that is known, and write the lines of it that are not on disk yet; later when that is not possible."""
        path = self._path(record.pid, record.start_time)
        try:
            _append(path, raw)
        except OSError:
            log.warning("the record of headless %d cannot be written", record.pid, exc_info=True)
            self._unwritten[record.pid] = raw
        self._known[record.pid] = replace(record, size=_size(path))


def _append(path: Path, raw: bytes) -> None:
    """One write of whole lines, so that a reader in another process never sees half of one. Raises `OSError` when it falls short."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        # What an earlier write left behind must not run into this one.
        torn = b"\n" if size and os.pread(descriptor, 1, size - 1) != b"\n" else b""
        if os.write(descriptor, torn + raw) < len(torn + raw):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(descriptor)


def _is_over(path: Path) -> bool:
    """Whether the process that a record's name names is gone, or no process is named."""
    pid, _, start = path.stem.partition("-")
    try:
        return has_ended(int(pid), float(start))
    except ValueError:
        return True


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read(path: Path, record: SpawnRecord) -> SpawnRecord:
    try:
        content = path.read_bytes()
    except OSError:
        # Inputs that cannot be read are not known, rather than none.
        return replace(record, late=True)
    return replace(_read_lines(record, content), size=len(content))


def _read_lines(record: SpawnRecord, content: bytes) -> SpawnRecord:
    head: dict[str, Any] = {}
    sent = {one.message_id: one for one in record.sent}
    for line in _lines(content):
        message_id = str(line.get("message_id"))
        if not is_uuid(message_id):
            head.update({key: value for key, value in line.items() if key in _HEAD})
        elif line.get("unsent") is True:
            sent.pop(message_id, None)
        else:
            # A write that fell short by its last byte was repeated.
            sent.setdefault(message_id, SentInput(message_id=message_id, sent_at=line.get("sent_at"), history=line.get("history") is True))
    return replace(record, sent=tuple(sent.values()), **head)


def _lines(content: bytes) -> Iterator[dict[str, Any]]:
    for raw in content.splitlines():
        try:
            line = json.loads(raw)
        except ValueError:
            continue
        if isinstance(line, dict):
            yield line
