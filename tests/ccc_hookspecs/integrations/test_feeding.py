"""What a plugin writes into a process of CCC's goes CCC's way, unasked, and is one of its inputs."""

from __future__ import annotations

import json
import os
import signal
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ccc_hookspecs.errors import NotWritten
from ccc_hookspecs.host import pipe as pipes
from ccc_hookspecs.integrations.command_center.adapter import CommandCenterHost
from ccc_hookspecs.integrations.command_center.feeding import LONGEST_IN_PIPE
from ccc_hookspecs.outcomes import Deferral, Facts, Healed, Kept
from ccc_hookspecs.signals import emit, headless_healed, headless_kept, retirement_deferred
from ccc_hookspecs.specs import Host
from ccc_hookspecs.values import Headless, Injection
from tests.ccc_hookspecs.integrations.conftest import Ccc, Home, end, wait_for

TOLD = "3d3f6d6c-6f57-4c53-8a55-6d0b38f1c0a1"
FACTS = Facts(attribution="stale", attribution_reason="a terminal wrote", idleness="busy")


def history(text: str, kind: str = "user", message_id: str = TOLD) -> bytes:
    """The line that tells a headless what was said elsewhere."""
    message = {"role": kind, "content": [{"type": "text", "text": text}]}
    line = {"type": kind, "uuid": message_id, "parent_tool_use_id": None, "message": message}
    return json.dumps(line | ({"shouldQuery": False} if kind == "user" else {})).encode() + b"\n"


def host_of(ccc: Ccc) -> CommandCenterHost:
    return ccc.attachment.host


def headless_of(ccc: Ccc, session_id: str) -> Headless:
    headless = host_of(ccc).headless_for(session_id)
    assert headless is not None
    return headless


def write(ccc: Ccc, session_id: str, *lines: bytes) -> None:
    """Write lines as a plugin does on a tick."""
    with host_of(ccc).session_lock(session_id, 5):
        for line in lines:
            host_of(ccc).write(headless_of(ccc, session_id), line)


def told(row: dict[str, Any]) -> list[str]:
    """The texts that a process was told as history."""
    lines = Path(row["log"]).read_text().splitlines(keepends=True)
    events = [json.loads(line) for line in lines if line.endswith("\n")]
    return [event["message"]["message"]["content"][0]["text"] for event in events if event["type"] == "told"]


def marked(ccc: Ccc, session_id: str) -> list[tuple[str, bool]]:
    return [(one.message_id, one.history) for one in headless_of(ccc, session_id).sent or ()]


def test_what_ccc_offers_is_a_host(ccc: Ccc) -> None:
    """All that the contract promises."""
    assert isinstance(host_of(ccc), Host)


def test_history_goes_before_the_text_that_a_plugin_is_asked_about(ccc: Ccc) -> None:
    """To the same process, without another question, and CCC waits for nothing afterwards."""
    session_id, row = ccc.spawn()
    ccc.plugin.answer = lambda host, injection: host.write(injection.headless, history("from elsewhere"))
    assert ccc.server._inject_text_into_session(session_id, "second")["pid"] == row["pid"]
    ccc.heard(session_id, "second")
    assert [one.text for one in ccc.plugin.asked] == ["second"]
    assert (told(row), ccc.texts(session_id)) == (["from elsewhere"], [["first"], ["second"]])
    first, second = row["input_command_uuids"]
    assert marked(ccc, session_id) == [(first, False), (TOLD, True), (second, False)]
    wait_for(lambda: not ccc.server._headless_turn_in_progress(row))


@pytest.mark.case("C88")
def test_what_was_told_is_known_after_a_restart(home: Home, ccc: Ccc) -> None:
    """As what it is; a record of an earlier release, which knew of no history, is read as before."""
    session_id, row = ccc.spawn()
    said = str(uuid.uuid4())
    write(ccc, session_id, history("from elsewhere"), history("what was said", "assistant", said))
    wait_for(lambda: told(row) == ["from elsewhere", "what was said"])
    before = headless_of(ccc, session_id)
    assert marked(ccc, session_id)[1:] == [(TOLD, True), (said, True)]
    (path,) = (host_of(ccc).state_dir / "spawns").iterdir()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line.get("history") for line in lines] == [None, None, True, True]
    again = home.restart(ccc)
    assert headless_of(again, session_id) == before


def test_a_repeated_line_is_one_input_and_a_request_is_none(ccc: Ccc) -> None:
    """Both are written."""
    session_id, row = ccc.spawn()
    write(ccc, session_id, history("one"), history("one"))
    wait_for(lambda: told(row) == ["one", "one"])
    assert marked(ccc, session_id)[1:] == [(TOLD, True)]
    request = {"type": "control_request", "uuid": str(uuid.uuid4()), "shouldQuery": False, "message": {"content": [{"text": "request"}]}}
    write(ccc, session_id, json.dumps(request).encode() + b"\n")
    wait_for(lambda: told(row)[-1:] != ["one"] or ccc.server._events(row)[-1]["command_uuid"] == request["uuid"])
    assert marked(ccc, session_id)[1:] == [(TOLD, True)]


def test_a_line_larger_than_any_pipe_arrives(ccc: Ccc) -> None:
    """CCC is given the time for it."""
    session_id, row = ccc.spawn()
    text = "very long " * 500_000
    write(ccc, session_id, history(text))
    wait_for(lambda: told(row) == [text])


@pytest.mark.case("C59")
def test_only_the_session_s_own_headless_is_written_to(ccc: Ccc) -> None:
    """Not another process, one of unknown identity, one of another CCC's, or one that is gone."""
    session_id, row = ccc.spawn()
    headless = headless_of(ccc, session_id)
    others = [
        replace(headless, pid=headless.pid + 1),
        replace(headless, start_time=1.0),
        replace(headless, start_time=None),
        replace(headless, session_id=str(uuid.uuid4())),
    ]
    end(row["pid"])
    for other in (*others, headless):
        with pytest.raises(NotWritten, match="is not the session's headless") as error:
            host_of(ccc).write(other, history("x"))
        assert error.value.session_id == other.session_id


@pytest.mark.case("C59")
def test_a_process_of_unknown_identity_is_not_written_to(home: Home, ccc: Ccc) -> None:
    """Neither is it signalled."""
    session_id, row = ccc.spawn()
    host_of(ccc).records.drop(row["pid"])
    row["started"] = "20200101T000000"
    ccc.server._save_registry()
    again = home.restart(ccc)
    with pytest.raises(NotWritten, match="is not the session's headless"):
        write(again, session_id, history("x"))


@pytest.mark.case("C74")
@pytest.mark.parametrize("line", [b"", b"{}", b"{\n}\n", b"[1]\n", b"{\n", history("x") * 2])
def test_a_line_that_claude_would_end_at_is_not_written(ccc: Ccc, line: bytes) -> None:
    """It is no line, or no JSON object."""
    session_id, _ = ccc.spawn()
    with pytest.raises(NotWritten):
        write(ccc, session_id, line)
    ccc.server._inject_text_into_session(session_id, "second")
    ccc.heard(session_id, "second")


@pytest.mark.case("C74")
def test_what_was_not_written_is_no_input(home: Home, ccc: Ccc, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a restart; it may be written again, and what was an input before stays one."""
    session_id, _ = ccc.spawn()
    write(ccc, session_id, history("one"))
    before, two = marked(ccc, session_id), str(uuid.uuid4())
    noted: list[tuple[str, bool]] = []

    def fail(*_: object, **__: object) -> bool:
        noted.extend(marked(ccc, session_id)[-1:])
        return False

    with monkeypatch.context() as patch:
        patch.setattr(host_of(ccc)._feeder, "_fd", fail)
        for line in (history("one"), history("two", "assistant", two)):
            with pytest.raises(NotWritten, match="does not read it, or is gone"):
                write(ccc, session_id, line)
    # It was noted before the first byte.
    assert noted == [before[-1], (two, True)]
    assert marked(ccc, session_id) == before
    again = home.restart(ccc)
    assert marked(again, session_id) == before
    write(again, session_id, history("two", "assistant", two))
    assert marked(again, session_id) == [*before, (two, True)]


@pytest.mark.case("C74")
def test_a_process_that_does_not_read_gets_nothing_of_a_long_line(ccc: Ccc, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short one before it lies in its FIFO; nor does one whose FIFO is gone."""
    monkeypatch.setattr(pipes, "ROOM_SECONDS", 0.05)
    session_id, row = ccc.spawn()
    wait_for(lambda: not ccc.server._headless_turn_in_progress(row))
    os.kill(row["pid"], signal.SIGSTOP)
    stat = Path(f"/proc/{row['pid']}/stat")
    wait_for(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
    write(ccc, session_id, history("short"))
    with pytest.raises(NotWritten, match="does not read its FIFO"):
        write(ccc, session_id, history("long " * 10_000, message_id=str(uuid.uuid4())))
    Path(row["fifo"]).unlink()
    with pytest.raises(NotWritten, match="nobody reads it"):
        write(ccc, session_id, history("after", message_id=str(uuid.uuid4())))
    os.kill(row["pid"], signal.SIGCONT)
    wait_for(lambda: told(row) == ["short"])
    assert marked(ccc, session_id)[1:] == [(TOLD, True)]


def test_a_spawn_without_a_fifo_is_written_to_through_its_pipe(ccc: Ccc) -> None:
    """But nothing so long that half of it could stay there."""
    session_id, row = ccc.spawn()

    class Pipe:
        lines: list[bytes] = []  # noqa: RUF012 - one test's own
        write = lines.append

        def flush(self) -> None: ...

    os.close(row["stdin_fd"])
    row["stdin_fd"], row["fifo"], row["proc"].stdin = None, None, Pipe()
    try:
        write(ccc, session_id, history("short"))
        with pytest.raises(NotWritten, match="has no FIFO"):
            write(ccc, session_id, history("x" * LONGEST_IN_PIPE, message_id=str(uuid.uuid4())))
    finally:
        row["proc"].stdin = None
    assert Pipe.lines == [history("short")]
    assert marked(ccc, session_id)[1:] == [(TOLD, True)]


def test_a_fresh_process_can_be_told_before_its_first_text(ccc: Ccc) -> None:
    """CCC has it on no list yet."""
    session_id, row = ccc.spawn()
    end(row["pid"])
    asked: list[Injection] = []

    def answer(host: Host, injection: Injection) -> None:
        asked.append(injection)
        host.write(injection.headless, history("from elsewhere"))

    ccc.plugin.answer = answer
    assert ccc.server._inject_text_into_session(session_id, "second")["ok"]
    ccc.heard(session_id, "second")
    fresh = ccc.row(session_id)
    assert [one.headless.pid for one in asked] == [fresh["pid"]] != [row["pid"]]
    assert told(fresh) == ["from elsewhere"]
    assert marked(ccc, session_id)[0] == (TOLD, True)


def test_a_healing_is_told_where_ccc_s_user_looks(ccc: Ccc) -> None:
    """And what shadow mode would have healed; the mechanism waits for the process no more."""
    session_id, row = ccc.spawn()
    headless = headless_of(ccc, session_id)
    wait_for(lambda: not ccc.server._headless_turn_in_progress(row))
    emit(retirement_deferred, "m", Deferral(headless=headless, mechanism="m", reason="busy", facts=FACTS, since=1.0))
    assert ccc.server._headless_turn_in_progress(row)
    healed = Healed(headless=headless, mechanism="m", reason="a terminal wrote", facts=FACTS, turns=(TOLD,), records=3, seconds=0.25)
    emit(headless_healed, "m", healed)
    assert ccc.activity("HEALED") == [
        f"pid={row['pid']} sid={session_id[:8]} by=m a terminal wrote; turns: 1, records: 3; in 0.2 s",
    ]
    assert not ccc.server._headless_turn_in_progress(row)
    emit(headless_kept, "m", Kept(headless=headless, mechanism="m", reason="shadow mode", would_heal=True))
    assert ccc.activity("WOULD") == [f"pid={row['pid']} sid={session_id[:8]} by=m heal: shadow mode"]
    emit(headless_healed, "m", replace(healed, headless=replace(headless, pid=1, start_time=1.0)))
    assert len(ccc.activity("HEALED")) == 1
