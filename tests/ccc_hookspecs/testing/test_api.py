"""The loopback stand-in for the Messages API, asked as Claude Code asks it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ccc_hookspecs.testing.api import MessagesApi
from ccc_hookspecs.testing.harness import read_jsonl, wait_until

TOOLS = ("Bash", "Agent", "ScheduleWakeup")


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    with MessagesApi() as running:
        yield running


def user(*texts: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def ask(url: str, *messages: dict[str, Any], stream: bool = True, tools: tuple[str, ...] = TOOLS) -> Any:
    """The reply: the events of a stream, or the one object."""
    body = {"model": "m", "stream": stream, "messages": list(messages), "tools": [{"name": name} for name in tools]}
    request = urllib.request.Request(f"{url}/v1/messages?beta=true", json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as response:
        text = response.read().decode()
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")] if stream else json.loads(text)


def said(events: list[dict[str, Any]]) -> str:
    return "".join(event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta")


def uses(events: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """The tools that were called, with their arguments."""
    blocks = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    arguments = [event["delta"]["partial_json"] for event in events if event["type"] == "content_block_delta"]
    return [(block["name"], json.loads(given)) for block, given in zip(blocks, arguments, strict=True)]


def test_it_recites_every_user_text_in_full(api: MessagesApi) -> None:
    """Strings and blocks, in order, long ones too, without reminders and without what the assistant said."""
    long = "x" * 500
    events = ask(
        api.url,
        {"role": "user", "content": "plain"},
        {"role": "assistant", "content": [{"type": "text", "text": "mine"}]},
        user("<system-reminder>\nno\n</system-reminder>", "one", long),
    )
    assert said(events) == "SEEN " + json.dumps(["plain", "one", long])
    assert [event["type"] for event in events][:2] == ["message_start", "content_block_start"]
    assert [event["type"] for event in events][-2:] == ["message_delta", "message_stop"]


def test_a_slow_answer_is_released(api: MessagesApi) -> None:
    """It comes to its end at once when it is released, by the method or by a request, and the next one is slow again."""
    for release in (api.release, lambda: urllib.request.urlopen(f"{api.url}/release", b"", timeout=10).close()):
        threading.Timer(0.3, release).start()
        began = time.monotonic()
        assert said(ask(api.url, user("SLOW 60"))).endswith('SEEN ["SLOW 60"]')
        assert 0.25 < time.monotonic() - began < 30
    assert [request.asked for request in api.requests] == ["SLOW 60", "SLOW 60"]


def test_a_request_is_kept_with_what_both_sides_said(api: MessagesApi) -> None:
    """The texts of the user and those of the model, each in order."""
    mine = {
        "role": "assistant",
        "content": [{"type": "text", "text": "mine"}, {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}],
    }
    ask(api.url, user("one"), mine, user("two"))
    assert (api.requests[-1].texts, api.requests[-1].answers, api.requests[-1].asked) == (("one", "two"), ("mine",), "two")


def test_it_answers_without_a_stream_too(api: MessagesApi) -> None:
    """The same answer as one object."""
    answer = ask(api.url, user("one"), stream=False)
    assert answer["content"] == [{"type": "text", "text": 'SEEN ["one"]'}]


@pytest.mark.parametrize(
    ("text", "name", "key", "value"),
    [
        ("RUN: echo hi", "Bash", "command", "echo hi"),
        ("BG: sleep 1", "Bash", "run_in_background", True),
        ("TASK: hello", "Agent", "prompt", "hello"),
        ("WAKE: 90", "ScheduleWakeup", "delaySeconds", 90.0),
        ('CUSTOM: Read {"file_path": "/x"}', "Read", "file_path", "/x"),
    ],
)
def test_a_text_calls_a_tool(api: MessagesApi, text: str, name: str, key: str, value: object) -> None:
    """The call stands in a `tool_use` block, and the stop reason says so."""
    events = ask(api.url, user(text))
    [(called, arguments)] = uses(events)
    assert (called, arguments[key]) == (name, value)
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


def test_two_tools_stand_in_one_answer(api: MessagesApi) -> None:
    """`TWO:` calls twice."""
    assert [name for name, _ in uses(ask(api.url, user("TWO:")))] == ["Bash", "Bash"]


def test_a_subagent_has_the_name_that_is_offered(api: MessagesApi) -> None:
    """Older releases offer `Task`."""
    assert [name for name, _ in uses(ask(api.url, user("TASK: x"), tools=("Bash", "Task")))] == ["Task"]


@pytest.mark.parametrize("text", ["RUN: echo hi", "CRASH", "DEAF"])
def test_without_tools_it_recites(api: MessagesApi, text: str) -> None:
    """What cannot be done is only recited."""
    assert said(ask(api.url, user(text), tools=())) == f'SEEN ["{text}"]'


def test_after_a_tool_s_result_it_recites(api: MessagesApi) -> None:
    """The command is not called again."""
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "hi"}]}
    assert said(ask(api.url, user("RUN: echo hi"), result)) == 'SEEN ["RUN: echo hi"]'


def test_it_thinks_first(api: MessagesApi) -> None:
    """A signed thinking block stands before the text."""
    starts = [event["content_block"]["type"] for event in ask(api.url, user("THINK")) if event["type"] == "content_block_start"]
    assert starts == ["thinking", "text"]


def test_it_streams_slowly(api: MessagesApi) -> None:
    """Words come first, the recital last."""
    assert said(ask(api.url, user("SLOW 1"))) == 'w0 w1 SEEN ["SLOW 1"]'


def test_it_refuses(api: MessagesApi) -> None:
    """A bad request always fails, a server error twice."""
    with pytest.raises(urllib.error.HTTPError, match="400"):
        ask(api.url, user("FAIL400"))
    for _ in range(2):
        with pytest.raises(urllib.error.HTTPError, match="500"):
            ask(api.url, user("FAIL500"))
    assert said(ask(api.url, user("FAIL500"))) == 'SEEN ["FAIL500"]'


@pytest.mark.case("C77")
def test_it_refuses_half_a_surrogate_pair_wherever_it_stands(api: MessagesApi) -> None:
    """As the Messages API does, which says so of the whole body."""
    with pytest.raises(urllib.error.HTTPError) as error:
        ask(api.url, user("half \ud83d"), user("later"))
    error.value.close()
    assert error.value.code == 400


def test_it_keeps_what_it_was_asked(api: MessagesApi) -> None:
    """Each request is there with its texts and what was asked last."""
    ask(api.url, user("one", "two"))
    [request] = api.requests
    assert (request.texts, request.asked, request.model, request.stream, request.tools) == (("one", "two"), "two", "m", True, TOOLS)


def test_other_requests_are_answered_with_something(api: MessagesApi) -> None:
    """A count of tokens, a look at an unknown address and a body that is none."""
    assert fetch(f"{api.url}/v1/messages/count_tokens", b"{}") == {"input_tokens": 100}
    assert fetch(f"{api.url}/api/hello") == {}
    assert fetch(f"{api.url}/api/event", b"\xff") == {}


def fetch(url: str, body: bytes | None = None) -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, body), timeout=10) as response:
        return json.loads(response.read())


def test_it_runs_as_a_program(tmp_path: Path) -> None:
    """It tells its port in a file and logs each request as a line."""
    log, port = tmp_path / "log.jsonl", tmp_path / "port"
    command = [sys.executable, "-m", "ccc_hookspecs.testing.api", "0", str(log), "--port-file", str(port)]
    with subprocess.Popen(command) as process:
        try:
            wait_until(lambda: port.exists() and port.read_text().endswith("\n"), "the port")
            ask(f"http://127.0.0.1:{port.read_text().strip()}", user("one"))
        finally:
            process.terminate()
    [line] = read_jsonl(log)
    assert (line["texts"], line["asked"], line["method"]) == (["one"], "one", "POST")
