"""The fixtures, as a plugin author uses them, and the guide that shows how."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from ccc_hookspecs import Host
from ccc_hookspecs.errors import NotWritten, SessionLockTimeout
from ccc_hookspecs.outcomes import Kept, PluginFailure
from ccc_hookspecs.signals import emit, headless_kept, headless_retired, namespace, plugin_failed
from ccc_hookspecs.testing import fixtures
from ccc_hookspecs.testing.harness import ClaudeHome, NotSeen, Simulator, as_history, read_jsonl, recited, simulated, wait_until
from ccc_hookspecs.testing.recording import CapturedSignals, RecordingHost
from ccc_hookspecs.testing.simulator import MEASURED, model, settings
from ccc_hookspecs.values import Headless, SentInput

GUIDE = (Path(__file__).parents[3] / "docs" / "testing-plugins.md").read_text()
NAMES = ("claude_home", "simulator", "recording_host", "captured_signals")


def test_the_guide_s_example_passes(tmp_path: Path) -> None:
    """A plugin in one file and its test, taken from the guide, run in a directory of their own."""
    conftest, plugin, test = re.findall(r"^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)[:3]
    for name, text in (("conftest.py", conftest), ("one_at_a_time.py", plugin), ("test_one_at_a_time.py", test)):
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_the_guide_names_every_fixture_text_and_variable() -> None:
    """Nothing that the simulator hears to is missing from the tables."""
    assert all(f"| `{name}` |" in GUIDE and hasattr(fixtures, name) for name in NAMES)
    assert model.__doc__ is not None
    assert all(word.rstrip(":") in GUIDE for word in re.findall(r"^    ([A-Z]+\d*:?)", model.__doc__, re.MULTILINE))
    assert settings.__file__ is not None
    assert all(f"| `{name}` |" in GUIDE for name in set(re.findall(r'"(CCC_SIM_[A-Z_]+)"', Path(settings.__file__).read_text())))


def test_the_recording_host_is_a_host(recording_host: RecordingHost) -> None:
    """It has everything that the contract promises a plugin."""
    assert isinstance(recording_host, Host)
    assert recording_host.state_dir.is_dir()


def test_a_host_knows_what_it_adopted_until_that_is_released(simulator: Simulator, recording_host: RecordingHost) -> None:
    """The live headless is found by its session, with fresh values, and is gone after its release."""
    head = simulator.headless()
    value = recording_host.adopt(head)
    head.ask("first")
    found = recording_host.headless_for(head.session_id)
    assert found is not None
    assert (found.pid, found.sent, value.sent) == (head.pid, tuple(head.sent), ())
    assert recording_host.config_dir(found) == simulator.home.config_dir
    recording_host.released(found)
    recording_host.released(found)
    assert [gone.pid for gone in recording_host.releases] == [head.pid]
    assert recording_host.headless_agents() == []


HISTORY = "3d3f6d6c-6f57-4c53-8a55-6d0b38f1c0a1"


def line(text: str, message_id: str = HISTORY, **fields: object) -> bytes:
    """A line of history."""
    record = {"type": "user", "uuid": message_id, "message": {"role": "user", "content": [{"type": "text", "text": text}]}}
    return json.dumps(as_history(record) | fields).encode() + b"\n"


def test_a_host_writes_what_a_plugin_gives_it(simulator: Simulator, recording_host: RecordingHost) -> None:
    """A simulated headless takes it, however long it is; an input stands once in `sent`, a request is none."""
    head = simulator.headless()
    head.ask("first")
    value = recording_host.adopt(head)
    request = {"type": "control_request", "request_id": "1", "request": {"subtype": "initialize"}}
    lines = [line("from elsewhere " * 100_000), line("again"), json.dumps(request).encode() + b"\n"]
    with recording_host.session_lock(head.session_id, 0):
        for one in lines:
            recording_host.write(value, one)
    head.wait_idle()
    assert recited(head.ask("second")) == ["first", "from elsewhere " * 100_000, "second"]
    assert [one.history for one in head.sent] == [False, True, False]
    assert head.sent[1].message_id == HISTORY
    assert recording_host.written[0] == (value, lines[0])
    assert [given for _, given in recording_host.written] == lines
    assert head.events("control_response")


def test_a_host_writes_only_to_the_process_that_is_meant(simulator: Simulator, recording_host: RecordingHost) -> None:
    """What is no line, or goes to another process or one that does not read, raises and is no input."""
    head = simulator.headless()
    value = recording_host.adopt(head)
    for wrong in (replace(value, pid=1), replace(value, start_time=1.0), replace(value, session_id=str(uuid.uuid4()))):
        with pytest.raises(NotWritten, match="is not the session's headless"):
            recording_host.write(wrong, line("x"))
    for text in (b"{}", b"{\n}\n", b"no JSON\n"):
        with pytest.raises(NotWritten):
            recording_host.write(value, text)
    head.stop()
    with pytest.raises(BrokenPipeError):
        head.give(line("x"))
    with pytest.raises(NotWritten, match="is not the session's headless"):
        recording_host.write(value, line("x"))
    assert (head.sent, recording_host.written) == ([], [])


def test_a_process_that_does_not_read_is_not_waited_for_for_ever(
    simulator: Simulator, recording_host: RecordingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is no input then."""
    monkeypatch.setattr("ccc_hookspecs.testing.handles.PATIENCE", 0.05)
    head = simulator.headless()
    value = recording_host.adopt(head)
    head.signal(signal.SIGSTOP)
    with pytest.raises(NotWritten, match="were not read within"):
        recording_host.write(value, line("long " * 1_000_000))
    assert head.sent == []
    head.kill()


def test_a_host_notes_what_a_value_that_is_no_process_was_given(recording_host: RecordingHost) -> None:
    """Once each, and nothing when it is not known what that was sent."""
    for sent in ((), None):
        value = Headless(session_id=str(uuid.uuid4()), pid=4_000_001, start_time=1.0, sent=sent)
        recording_host.adopt(value)
        for one in (line("x"), line("x"), line("y", str(uuid.uuid4()), shouldQuery=True)):
            recording_host.write(value, one)
        found = recording_host.headless_for(value.session_id)
        assert found is not None
        marks = None if found.sent is None else [one.history for one in found.sent]
        assert marks == (None if sent is None else [True, False])
        with pytest.raises(NotWritten):
            recording_host.write(value, b"{")
    assert len(recording_host.written) == 6


def test_what_is_fed_past_the_host_is_not_among_what_it_sent(simulator: Simulator) -> None:
    """A host knows what it wrote itself."""
    head = simulator.headless()
    message_id = head.send("first")
    head.wait_idle()
    head.feed(*[record | {"uuid": str(uuid.uuid4())} for record in head.records() if record["type"] == "user"])
    assert [one.message_id for one in head.sent] == [message_id]
    assert isinstance(head.sent[0], SentInput)


def test_a_dead_headless_is_no_longer_listed(simulator: Simulator, recording_host: RecordingHost) -> None:
    """A host believes alive what it could see alive."""
    head = simulator.headless()
    recording_host.adopt(head)
    head.stop()
    assert recording_host.headless_for(head.session_id) is None


def test_a_host_takes_any_value(recording_host: RecordingHost) -> None:
    """A headless of another engine needs no process."""
    value = Headless(session_id="72350742-dff3-4ee0-a645-6602d6d2b86e", pid=1, start_time=None, engine="codex")
    assert recording_host.adopt(value) is value
    assert recording_host.headless_agents() == [value]


def test_a_session_s_lock_is_reentrant_and_exclusive(recording_host: RecordingHost) -> None:
    """The thread that has it may take it again; another waits its time and gives up."""
    refused: list[str] = []

    def other() -> None:
        try:
            with recording_host.session_lock("s", 0.05):
                pass
        except SessionLockTimeout as error:
            refused.append(error.session_id)

    with recording_host.session_lock("s", 0), recording_host.session_lock("s", 0):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert refused == ["s"]
    other()
    assert refused == ["s"]


def test_every_signal_is_captured_in_order(captured_signals: CapturedSignals) -> None:
    """Each signal of the namespace, with its sender and its value."""
    failure = PluginFailure(plugin="p", where="on_tick", error="ValueError: x")
    emit(plugin_failed, "p", failure)
    kept = Kept(headless=Headless(session_id="72350742-dff3-4ee0-a645-6602d6d2b86e", pid=1, start_time=None), mechanism="m", reason="fresh")
    emit(headless_kept, "m", kept)
    assert captured_signals.names() == ["plugin_failed", "headless_kept"]
    assert captured_signals.of(headless_kept) == captured_signals.of("headless_kept") == [kept]
    assert captured_signals.of(headless_retired) == []
    assert [one.sender for one in captured_signals.sent] == ["p", "m"]


def test_no_receiver_is_left_behind() -> None:
    """After a test the signals have the receivers that they had before."""
    before = {name: set(signal.receivers) for name, signal in namespace.items()}
    captured = CapturedSignals()
    captured.connect()
    captured.disconnect()
    assert all(set(signal.receivers) <= before[name] for name, signal in namespace.items())


def test_a_simulator_leaves_no_process(tmp_path: Path) -> None:
    """Whatever state they are in, all are gone when the block is left."""
    with simulated(ClaudeHome(tmp_path)) as simulator:
        idle, slow, deaf = (simulator.headless() for _ in range(3))
        idle.ask("first")
        slow.send("SLOW 60")
        deaf.ask("DEAF")
        terminal = simulator.terminal(idle.session_id)
    assert not any(process.alive for process in (idle, slow, deaf, terminal))


def test_a_wait_says_what_did_not_come(simulator: Simulator) -> None:
    """The message names what was waited for and how long."""
    with pytest.raises(NotSeen, match=r"the moon: not within 0\.05 s"):
        wait_until(lambda: False, "the moon", timeout=0.05)
    head = simulator.headless()
    head.kill()
    with pytest.raises(NotSeen, match="ended with exit code -9"):
        head.wait_idle()


def test_what_is_read_back(tmp_path: Path) -> None:
    """Unfinished lines are left out, a missing file is empty, and an answer that recites nothing is refused."""
    path = tmp_path / "x.jsonl"
    assert read_jsonl(path) == []
    path.write_text('{"a":1}\nnoise\n[2]\n{"b"')
    assert read_jsonl(path) == [{"a": 1}]
    assert recited('w0 SEEN ["a"]') == ["a"]
    with pytest.raises(ValueError, match="recites nothing"):
        recited("API Error")


def test_the_default_release_is_the_newest_measured(simulator: Simulator) -> None:
    """A headless says which release it is."""
    head = simulator.headless()
    head.ask("first")
    assert head.events("system", "init")[0]["claude_code_version"] == MEASURED[-1]
