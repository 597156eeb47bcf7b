"""A session's files are found by its id, wherever and in whatever folder they lie, and never another's."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ccc_hookspecs.claude import paths
from ccc_hookspecs.claude.paths import TranscriptFinder, config_dir, find_transcript, process_config_dir, project_folders, subagent_files

S = "7d5f2c31-4c58-4a36-9d7f-0c2d6a1b9e10"
OTHER = "0a8e3f42-1111-4222-8333-944445555666"

Sleeper = Callable[[dict[str, str], Path], int]


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """Writes a transcript into a project folder of the config directory `tmp_path`."""

    def write(folder: str, session_id: str = S, content: str = "{}\n", mtime: float = 1_700_000_000) -> Path:
        path = tmp_path / "projects" / folder / f"{session_id}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        os.utime(path, (mtime, mtime))
        return path

    return write


@pytest.fixture
def sleeper() -> Iterator[Sleeper]:
    """Starts a process with exactly that environment and directory, which is up when the pid is given, and ends it afterwards."""
    started: list[subprocess.Popen[bytes]] = []

    def start(environ: dict[str, str], cwd: Path) -> int:
        code = "import sys; print('up', flush=True); sys.stdin.read()"
        process = subprocess.Popen([sys.executable, "-c", code], env=environ, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        return process.pid

    yield start
    for process in started:
        process.communicate(timeout=20)


@pytest.mark.case("C43")
@pytest.mark.parametrize(
    ("environ", "cwd", "expected"),
    [
        ({"HOME": "/home/u"}, None, "/home/u/.claude"),
        ({"HOME": "/home/u", "CLAUDE_CONFIG_DIR": ""}, None, "/home/u/.claude"),
        ({"HOME": "/home/u", "CLAUDE_CONFIG_DIR": ""}, "/w/p", "/w/p"),
        ({"HOME": "/home/u", "CLAUDE_CONFIG_DIR": "/x"}, "/w/p", "/x"),
        ({"HOME": "/home/u", "CLAUDE_CONFIG_DIR": "~/x"}, "/w/p", "/w/p/~/x"),
        ({"HOME": "/home/u", "CLAUDE_CONFIG_DIR": "c"}, "/w/p", "/w/p/c"),
        ({"CLAUDE_CONFIG_DIR": unicodedata.normalize("NFD", "/é")}, None, "/é"),
    ],
)
def test_config_dir_is_taken_as_the_program_takes_it(environ: dict[str, str], cwd: str | None, expected: str) -> None:
    """The variable counts literally: no `~` is expanded, and nothing but its absence surely means the home directory."""
    assert config_dir(environ, None if cwd is None else Path(cwd)) == Path(expected)


def test_config_dir_without_a_home_is_that_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the environment names no home, the user's own counts."""
    monkeypatch.setenv("HOME", "/home/somebody")
    assert config_dir({}) == Path("/home/somebody/.claude")


@pytest.mark.case("C38")
def test_different_directories_share_a_folder_name() -> None:
    """Every character but ASCII letters and digits becomes a dash, two for one outside the basic plane."""
    assert {project_folders(Path(p)) for p in ("/w/my_app", "/w/my-app", "/w/my.app")} == {("-w-my-app",)}
    assert project_folders(Path("/w/日本")) == project_folders(Path("/w/中文")) == ("-w---",)
    assert project_folders(Path("/w/\N{GRINNING FACE}")) == ("-w---",)


def test_a_long_directory_has_a_cut_name_with_a_sum() -> None:
    """Names above 200 characters are cut and get the sum that tells them apart, as read from the program."""
    (first,), (second,) = (project_folders(Path("/" + "a" * 250 + end)) for end in ("x", "y"))
    assert first[:201] == second[:201] == "-" + "a" * 199 + "-"
    assert first != second
    assert paths._base36(abs(paths._hash32([ord(c) for c in "hello"]))) == "1n1e4y"


@pytest.mark.case("C38", "C41")
def test_a_transcript_is_found_by_its_id_whatever_its_folder(tmp_path: Path, put: Callable[..., Path]) -> None:
    """The folder named after the directory is only a guess: a moved project, another encoding and a shared folder are no obstacle."""
    put("-w-my-app", OTHER)
    assert find_transcript(tmp_path, S, Path("/w/my_app")) is None
    there = put("-somewhere_else")
    assert find_transcript(tmp_path, S, Path("/w/my_app")) == there
    assert find_transcript(tmp_path, S) == there


@pytest.mark.case("C07", "C15")
def test_only_the_id_decides_never_what_is_newest(tmp_path: Path, put: Callable[..., Path]) -> None:
    """Another session's file in the same folder, newer and with the same content, is never taken."""
    own = put("-w", S, "old\n", mtime=1_600_000_000)
    put("-w", OTHER, "old\nnew\n", mtime=1_800_000_000)
    assert find_transcript(tmp_path, S, Path("/w")) == own


def test_of_several_files_of_one_id_that_of_the_own_directory_is_taken(tmp_path: Path, put: Callable[..., Path]) -> None:
    """A process started in the directory reads and appends to that file; without it, the last written; an empty one only alone."""
    own = put("-w", mtime=1_600_000_000)
    newest = put("-x", mtime=1_800_000_000)
    put("-y", mtime=1_700_000_000)
    assert find_transcript(tmp_path, S, Path("/w")) == own
    assert find_transcript(tmp_path, S, Path("/elsewhere")) == newest
    own.write_text("")
    assert find_transcript(tmp_path, S, Path("/w")) == newest
    newest.write_text("")
    (tmp_path / "projects" / "-y" / f"{S}.jsonl").write_text("")
    assert find_transcript(tmp_path, S, Path("/w")) == own


@pytest.mark.case("C39")
def test_a_linked_directory_is_found_under_its_real_path(tmp_path: Path, put: Callable[..., Path]) -> None:
    """A session started in a link to a directory lies in the folder of the real one, which is preferred to any other."""
    (tmp_path / "private").mkdir()
    (tmp_path / "t").symlink_to(tmp_path / "private")
    own = put(project_folders(tmp_path / "private")[0], mtime=1_600_000_000)
    put("-copy", mtime=1_800_000_000)
    assert find_transcript(tmp_path, S, tmp_path / "t") == own


@pytest.mark.case("C40")
def test_linked_folders_count_once_and_loops_end(tmp_path: Path, put: Callable[..., Path]) -> None:
    """A folder reachable by two names gives one file, always by the same name; a link to itself or to nothing is stepped over."""
    put("../shared")
    for name, target in (("-a", tmp_path / "shared"), ("-b", tmp_path / "shared"), ("-loop", Path("-loop")), ("-gone", Path("nothing"))):
        (tmp_path / "projects").mkdir(exist_ok=True)
        (tmp_path / "projects" / name).symlink_to(target)
    assert find_transcript(tmp_path, S) == tmp_path / "projects" / "-a" / f"{S}.jsonl"
    assert TranscriptFinder().find(tmp_path, S) == tmp_path / "projects" / "-a" / f"{S}.jsonl"


@pytest.mark.parametrize("session_id", ["", "../x", "a\0b", "x" * 5000])
def test_what_is_no_session_id_is_found_nowhere(tmp_path: Path, put: Callable[..., Path], session_id: str) -> None:
    """An id that leaves the folder, or that no file can have, has no transcript; nor has any below a missing directory."""
    put("-w", "x")
    assert find_transcript(tmp_path, session_id, Path("/w")) is None
    assert find_transcript(tmp_path / "missing", S, Path("/w")) is None


@pytest.mark.case("C41")
def test_a_known_transcript_is_found_again_after_it_moved(tmp_path: Path, put: Callable[..., Path]) -> None:
    """The finder answers from memory while the file is there, and looks again once it is not."""
    finder = TranscriptFinder()
    first = put("-w")
    assert finder.find(tmp_path, S) == first
    put("-x", mtime=1_900_000_000)
    assert finder.find(tmp_path, S) == first
    first.unlink()
    assert finder.find(tmp_path, S) == tmp_path / "projects" / "-x" / f"{S}.jsonl"


@pytest.mark.case("C45")
def test_a_transcript_that_appears_in_its_own_folder_is_seen_at_once(tmp_path: Path, put: Callable[..., Path]) -> None:
    """That there was none a moment ago does not hide a file in the directory's own folder."""
    finder = TranscriptFinder()
    assert finder.find(tmp_path, S, Path("/w")) is None
    assert finder.find(tmp_path, S) is None
    own = put("-w")
    assert finder.find(tmp_path, S, Path("/w")) == own


def test_that_there_is_none_is_believed_for_a_second(tmp_path: Path, put: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A miss is not searched for again at once, and is after a second."""
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    finder = TranscriptFinder()
    assert finder.find(tmp_path, S) is None
    own = put("-w")
    assert finder.find(tmp_path, S) is None
    now += 1.1
    assert finder.find(tmp_path, S) == own


def test_a_finder_forgets_rather_than_grows_without_end(tmp_path: Path, put: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory is bounded, and what it forgot it finds again."""
    monkeypatch.setattr(paths, "_REMEMBERED", 4)
    finder = TranscriptFinder()
    ids = [f"{number:08}-0000-4000-8000-000000000000" for number in range(12)]
    files = [put("-w", session_id) for session_id in ids]
    assert [finder.find(tmp_path, session_id) for session_id in ids] == files
    assert len(finder._known) <= 4
    assert finder.find(tmp_path, ids[0]) == files[0]


@pytest.mark.case("C26")
def test_subagents_are_found_in_both_layouts(tmp_path: Path, put: Callable[..., Path]) -> None:
    """Those below the session's own folder at any depth, and those beside it whose lines name the session; no other file."""
    transcript = put("-w")
    folder = transcript.parent
    nested = [folder / S / "subagents" / "agent-a.jsonl", folder / S / "subagents" / "deep" / "agent-b.jsonl"]
    for path in nested:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")
    (folder / S / "subagents" / "notes.txt").write_text("x")
    beside = folder / "agent-1234.jsonl"
    beside.write_text(f'{{"isSidechain":true,"sessionId":"{S}"}}\n')
    (folder / "agent-5678.jsonl").write_text(f'{{"isSidechain":true,"sessionId":"{OTHER}"}}\n')
    (folder / "agent-empty.jsonl").touch()
    assert set(subagent_files(transcript)) == {*nested, beside}
    assert subagent_files(tmp_path / "missing" / f"{S}.jsonl") == ()


@pytest.mark.case("C43")
@pytest.mark.skipif(sys.platform != "linux", reason="reads another process's environment as Linux shows it")
def test_a_process_keeps_its_files_where_its_own_environment_says(tmp_path: Path, sleeper: Sleeper, put: Callable[..., Path]) -> None:
    """Each process by its own variable, not by ours, so that a copy of the transcript in the usual place is not read."""
    home = {"HOME": "/home/u"}
    assert process_config_dir(sleeper(home, tmp_path)) == Path("/home/u/.claude")
    assert process_config_dir(sleeper({**home, "CLAUDE_CONFIG_DIR": ""}, tmp_path)) == tmp_path
    assert process_config_dir(sleeper({**home, "CLAUDE_CONFIG_DIR": "~/x"}, tmp_path)) == tmp_path / "~/x"
    own = process_config_dir(sleeper({**home, "CLAUDE_CONFIG_DIR": str(tmp_path / "x")}, tmp_path))
    assert own == tmp_path / "x"
    put("-w")
    assert find_transcript(own, S, Path("/w")) is None


@pytest.mark.case("C42", "C50")
@pytest.mark.skipif(sys.platform != "linux", reason="reads another process's environment as Linux shows it")
def test_where_a_process_keeps_its_files_may_be_unknown(tmp_path: Path, sleeper: Sleeper) -> None:
    """A deleted working directory, an empty environment and a process that is gone are unknown, not an error."""
    gone = tmp_path / "gone"
    gone.mkdir()
    pid = sleeper({"HOME": "/home/u", "CLAUDE_CONFIG_DIR": "relative"}, gone)
    gone.rmdir()
    assert process_config_dir(pid) is None
    assert process_config_dir(sleeper({}, tmp_path)) is None
    assert process_config_dir(2**22 + 1) is None


def test_other_systems_are_asked_through_psutil(tmp_path: Path, sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no /proc the same answers come from psutil, and its errors are unknown."""
    pid = sleeper({"HOME": "/home/u", "CLAUDE_CONFIG_DIR": "x"}, tmp_path)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert process_config_dir(pid) == tmp_path / "x"
    assert process_config_dir(2**22 + 1) is None
