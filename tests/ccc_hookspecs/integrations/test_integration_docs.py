"""The guides for hosts: their code runs, and what they say of CCC is so."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest

from ccc_hookspecs import Decision, Deliver, Headless, Hold, Injection, Respawn, TerminalLaunch, hookimpl
from ccc_hookspecs.errors import SessionLockTimeout
from ccc_hookspecs.integrations.command_center.attach import READ_IN
from ccc_hookspecs.specs import Host
from ccc_hookspecs.values import Tick

DOCS = Path(__file__).parents[3] / "docs"
INTEGRATING = (DOCS / "integrating.md").read_text(encoding="utf-8")
COMMAND_CENTER = (DOCS / "command-center.md").read_text(encoding="utf-8")
SESSION = "7713fc42-3b60-46cb-a3fb-0fcfcfc4e913"


def blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


class Guide:
    """The code of the guide, with a plugin and with what it leaves to the host."""

    def __init__(self, state_dir: Path) -> None:
        self.answers: list[Decision | None] = []
        self.asked: list[Injection] = []
        self.launches: list[TerminalLaunch] = []
        self.written: list[tuple[int, list[str]]] = []
        self.queue: list[tuple[str, str, str]] = []
        self.forgotten: list[Headless] = []
        self.pid = 100
        self.names: dict[str, Any] = {
            "forget_handles": self.forgotten.append,
            "keep": lambda session_id, text, message_id, hold: self.queue.append((session_id, text, message_id)),
            "write": self._write,
            "resume": self._resume,
            "held": self._held,
            "start_terminal": lambda session_id, cwd: self.written.append((0, [f"terminal {session_id}"])),
        }
        for source in blocks(INTEGRATING):
            exec(compile(source, "integrating.md", "exec"), self.names)  # the guide's own code
        self.host = self.names["host"] = self.names["MyHost"](state_dir)
        self.names["manager"].register(self, "guide")

    @hookimpl
    def pre_inject(self, ccc: Host, injection: Injection) -> Decision | None:
        self.asked.append(injection)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Respawn):
            ccc.released(injection.headless)
        return answer

    @hookimpl
    def on_terminal_launch(self, ccc: Host, launch: TerminalLaunch) -> None:
        self.launches.append(launch)

    def _write(self, headless: Headless, line: bytes) -> None:
        self.written.append((headless.pid, [block["text"] for block in json.loads(line)["message"]["content"]]))

    def _resume(self, session_id: str) -> Headless:
        self.pid += 1
        self.host.rows[session_id] = Headless(session_id=session_id, pid=self.pid, start_time=1.0, sent=())
        found: Headless = self.host.rows[session_id]
        return found

    def _held(self) -> list[tuple[str, str, str]]:
        self.queue, held = [], self.queue
        return held


@pytest.fixture
def guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guide:
    """The guide's host, without the plugins that are installed here."""
    monkeypatch.setenv("CCC_PLUGINS_BLOCK", "retire_stale.use_time,retire_stale.watcher,retire_stale.terminal_launch")
    return Guide(tmp_path / "state")


def test_the_host_of_the_guide_is_one(guide: Guide) -> None:
    """What the guide offers to plugins is the protocol that they are promised."""
    assert isinstance(guide.host, Host)
    headless = guide.names["resume"](SESSION)
    with guide.host.session_lock(SESSION, 0), guide.host.session_lock(SESSION, 0):
        assert guide.host.headless_agents() == (headless,)
    assert issubclass(SessionLockTimeout, TimeoutError)
    assert guide.host.config_dir(headless) == Path.home() / ".claude"


def test_the_guide_obeys_each_answer(guide: Guide) -> None:
    """A text goes to its process, waits and is asked about again under the same id, or goes to a fresh process after what that lacks."""
    send = guide.names["send"]
    guide.answers = [Deliver(catch_up="lacked"), Hold(reason="busy"), Respawn(reason="stale", catch_up="lacked too"), None]
    send(SESSION, "first")
    send(SESSION, "second")
    assert guide.written == [(101, ["lacked", "first"])]
    guide.names["tick"](Tick(number=1, monotonic=1.0, interval=5.0))
    assert guide.written[1:] == [(102, ["lacked too", "second"])]
    assert [one.pid for one in guide.forgotten] == [101]
    assert guide.asked[1].message_id == guide.asked[2].message_id
    assert uuid.UUID(guide.asked[1].message_id)
    send(SESSION, "third")
    assert guide.written[2:] == [(102, ["third"])]


def test_the_guide_announces_a_terminal(guide: Guide, tmp_path: Path) -> None:
    """The plugins know of it before it starts."""
    guide.names["open_terminal"](SESSION, tmp_path)
    assert [one.session_id for one in guide.launches] == [SESSION]
    assert guide.written == [(0, [f"terminal {SESSION}"])]


def test_the_guide_to_ccc_names_the_version_and_what_is_logged() -> None:
    """The release that the integration was written to, and every verb in CCC's activity log, are in the guide."""
    source = "".join(path.read_text() for path in (Path(__file__).parents[3] / "ccc_hookspecs/integrations/command_center").glob("*.py"))
    verbs = set(re.findall(r'_log(?:_activity)?\((?:"\w+", )?"([A-Z_]+)"', source))
    assert verbs == {"ATTACH", "HOLD", "HOLD_END", "DEFER", "FAILED", "WOULD"}
    assert all(verb in COMMAND_CENTER for verb in verbs)
    assert f"CCC {READ_IN}" in COMMAND_CENTER


def test_the_guide_to_ccc_shows_what_there_is() -> None:
    """Its example compiles and imports what exists."""
    (example,) = blocks(COMMAND_CENTER)
    names: dict[str, Any] = {}
    exec(compile(example.split("\n\n")[0], "command-center.md", "exec"), names)  # the guide's own imports
    compile(example, "command-center.md", "exec")
    assert {"attach", "AttachError"} <= set(names)
