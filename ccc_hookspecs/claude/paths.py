"""Where Claude Code keeps its files.

Measured on releases from 2.0.42 to 2.1.332: the transcript of a session is `<config dir>/projects/<folder>/<session id>.jsonl`.
The folder is named after the real path of the directory the process was started in, with every UTF-16 unit that is not an
ASCII letter or digit turned into `-`, so that different directories may share a folder and none can be read back from its name.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import time
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_LONGEST_NAME = 200
_FIRST_LINE = 4096
_REMEMBERED = 4096
_MISS_SECONDS = 1.0


def config_dir(environ: Mapping[str, str], cwd: Path | None = None) -> Path:
    """The directory in which a process with this environment, started in `cwd`, keeps its files.

    `CLAUDE_CONFIG_DIR` as it is: a leading `~` is an ordinary name, and what is relative is so to `cwd`. Not set, it is
    `.claude` in the home directory. Set to nothing it was measured on four releases to mean `cwd` itself; where `cwd` is not
    known it is taken for not set.
    """
    value = environ.get("CLAUDE_CONFIG_DIR")
    if value is None or (value == "" and cwd is None):
        return Path(environ.get("HOME") or Path("~").expanduser(), ".claude")
    path = Path(unicodedata.normalize("NFC", value))
    return path if cwd is None else cwd / path


def project_folders(cwd: Path) -> tuple[str, ...]:
    """The names that the folder of a session started in `cwd` may have, the likeliest first: after its real path, and after itself."""
    return tuple(dict.fromkeys(_folder_name(path) for path in (os.path.realpath(cwd), str(cwd))))


def _folder_name(path: str) -> str:
    units = path.encode("utf-16-le", "surrogatepass")
    codes = [int.from_bytes(units[at : at + 2], "little") for at in range(0, len(units), 2)]
    name = "".join(chr(code) if code < 128 and chr(code).isalnum() else "-" for code in codes)
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}-{_base36(abs(_hash32(codes)))}"


def _hash32(codes: list[int]) -> int:
    value = 0
    for code in codes:
        value = (value * 31 + code) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _base36(value: int) -> str:
    digits = ""
    while value or not digits:
        value, digit = divmod(value, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits


class _Found(NamedTuple):
    """A file that may be the transcript, so that the greater of two is the better one."""

    has_content: bool
    mtime_ns: int
    path: str
    file: tuple[int, int]


def find_transcript(config_dir: Path, session_id: str, cwd: Path | None = None) -> Path | None:
    """The transcript of a session, or None when there is none (yet).

    Looked for by its name, in every project folder: a folder's name proves nothing, and a project may have been moved. When
    several folders hold a file of that name, the one in the folder of `cwd` is taken, because that is the one a process started
    there reads and appends to; else the one last written. An empty file is taken only when there is no other. Folders that
    are links count once.
    """
    if not session_id or os.sep in session_id or "\0" in session_id:
        return None
    projects = os.path.join(config_dir, "projects")
    own = _best(_look_in(projects, project_folders(cwd), session_id)) if cwd is not None else None
    if own is not None and own.has_content:
        return Path(own.path)
    best = _best(_look_in(projects, _names(projects), session_id))
    if own is not None and (best is None or not best.has_content):
        return Path(own.path)
    return None if best is None else Path(best.path)


def _best(found: Iterator[_Found]) -> _Found | None:
    """The best candidate; of the several paths of one file the one that comes first by name."""
    paths: dict[tuple[int, int], _Found] = {}
    for candidate in found:
        known = paths.get(candidate.file)
        if known is None or candidate.path < known.path:
            paths[candidate.file] = candidate
    return max(paths.values(), default=None)


def _look_in(projects: str, folders: tuple[str, ...], session_id: str) -> Iterator[_Found]:
    for folder in folders:
        path = os.path.join(projects, folder, session_id + ".jsonl")
        try:
            seen = os.stat(path)
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(seen.st_mode):
            yield _Found(seen.st_size > 0, seen.st_mtime_ns, path, (seen.st_dev, seen.st_ino))


def _names(folder: str) -> tuple[str, ...]:
    try:
        return tuple(os.listdir(folder))
    except OSError:
        return ()


class TranscriptFinder:
    """`find_transcript` that remembers: a known transcript costs one `stat`, and is looked for again once it is gone.

    That a session has no transcript is believed for a second, except for the folder of its own directory, which is looked into each time.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Path, str, Path | None], str] = {}
        self._missed: dict[tuple[Path, str, Path | None], float] = {}

    def find(self, config_dir: Path, session_id: str, cwd: Path | None = None) -> Path | None:
        """As `find_transcript`."""
        key = (config_dir, session_id, cwd)
        known = self._known.get(key)
        if known is not None and os.path.isfile(known):
            return Path(known)
        if time.monotonic() - self._missed.get(key, -_MISS_SECONDS) < _MISS_SECONDS and not self._is_in_own_folder(*key):
            return None
        found = find_transcript(config_dir, session_id, cwd)
        self._remember(key, found)
        return found

    def _is_in_own_folder(self, config_dir: Path, session_id: str, cwd: Path | None) -> bool:
        folders = () if cwd is None else project_folders(cwd)
        return any(True for _ in _look_in(os.path.join(config_dir, "projects"), folders, session_id))

    def _remember(self, key: tuple[Path, str, Path | None], found: Path | None) -> None:
        for memory in (self._known, self._missed):
            memory.pop(key, None)
            if len(memory) >= _REMEMBERED:
                memory.clear()
        if found is None:
            self._missed[key] = time.monotonic()
        else:
            self._known[key] = str(found)


def subagent_files(transcript: Path, *, beside: bool = True) -> tuple[Path, ...]:
    """The transcripts of a session's subagents, in no particular order.

    Current releases put them under `<session id>/subagents/`, at any depth. Releases up to about 2.1.0 put `agent-*.jsonl` beside
    the session's own, where only their first lines tell whose they are; each such file costs one short read, and `beside=False`
    leaves them out.
    """
    session_id = transcript.name.removesuffix(".jsonl")
    nested = [
        Path(folder, name)
        for folder, _, names in os.walk(transcript.parent / session_id / "subagents")
        for name in names
        if _is_subagents(name)
    ]
    neighbours = [transcript.parent / name for name in _names(str(transcript.parent)) if _is_subagents(name)] if beside else []
    return tuple(nested + [path for path in neighbours if _names_session(path, session_id)])


def _is_subagents(name: str) -> bool:
    return name.startswith("agent-") and name.endswith(".jsonl")


def _names_session(path: Path, session_id: str) -> bool:
    try:
        with path.open("rb") as file:
            start = file.read(_FIRST_LINE)
    except OSError:
        return False
    return re.search(rb'"sessionId"\s*:\s*"' + re.escape(session_id.encode()) + b'"', start) is not None


def process_config_dir(pid: int) -> Path | None:
    """The directory in which a running process keeps its files, by the environment it was started with.

    None when it cannot be told: no such process, another user's, or a relative value and a working directory that cannot be read.
    """
    environ = _environ_of(pid)
    if environ is None:
        return None
    value = environ.get("CLAUDE_CONFIG_DIR")
    if value is None or os.path.isabs(value):
        return config_dir(environ) if value is not None or environ.get("HOME") else None
    cwd = _cwd_of(pid)
    return None if cwd is None else config_dir(environ, cwd)


def _environ_of(pid: int) -> dict[str, str] | None:
    if sys.platform == "linux":
        try:
            entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return None
        pairs = [entry.partition(b"=") for entry in entries if b"=" in entry]
        return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs} or None
    import psutil

    try:
        return psutil.Process(pid).environ() or None
    except (psutil.Error, OSError):
        return None


def _cwd_of(pid: int) -> Path | None:
    """The directory a process works in; None when it cannot be read or was deleted."""
    import psutil

    try:
        cwd = psutil.Process(pid).cwd()
    except (psutil.Error, OSError):
        return None
    return Path(cwd) if cwd and os.path.isdir(cwd) else None
