"""The story this project is about, told by simulated processes: memory, forks and what a fresh process reads."""

from __future__ import annotations

import uuid

import pytest

from ccc_hookspecs.testing.harness import NotSeen, Simulator, recited
from ccc_hookspecs.testing.simulator import MEASURED, NEWEST

some_releases = pytest.mark.parametrize("release", ["2.0.42", "2.1.119", NEWEST])


@pytest.mark.parametrize("release", MEASURED)
def test_a_headless_answers_without_the_turn_that_a_terminal_took(simulator: Simulator, release: str) -> None:
    """A headless recites its own turns only, although the terminal's is in the transcript."""
    head = simulator.headless(release=release)
    head.ask("first")
    terminal = simulator.terminal(head.session_id, release=release)
    assert recited(terminal.ask("from terminal")) == ["first", "from terminal"]
    terminal.exit()
    assert recited(head.ask("second")) == ["first", "second"]


@some_releases
def test_a_stale_answer_forks_the_tree(simulator: Simulator, release: str) -> None:
    """Both turns after the first hang on one branch point."""
    head = simulator.headless(release=release)
    head.ask("first")
    simulator.terminal(head.session_id, release=release).ask("from terminal")
    head.ask("second")
    prompts = [record for record in head.records() if record["type"] == "user" and _text(record) in {"from terminal", "second"}]
    parents = {record["uuid"]: record["parentUuid"] for record in head.records() if "uuid" in record}
    roots = [set(_ancestors(parents, record["uuid"])) for record in prompts]
    assert len(prompts) == 2
    assert prompts[0]["uuid"] not in roots[1]
    assert prompts[1]["uuid"] not in roots[0]


@some_releases
def test_a_fresh_headless_reads_what_a_terminal_wrote(simulator: Simulator, release: str) -> None:
    """What was on disk at the start is in the memory of a process that resumes."""
    head = simulator.headless(release=release)
    head.ask("first")
    simulator.terminal(head.session_id, release=release).ask("from terminal")
    head.stop()
    assert recited(simulator.headless(head.session_id, release=release).ask("after")) == ["first", "from terminal", "after"]


@some_releases
def test_a_one_shot_is_a_writer_like_any_other(simulator: Simulator, release: str) -> None:
    """`claude -p --resume` remembers the session and adds to it."""
    head = simulator.headless(release=release)
    head.ask("first")
    assert recited(simulator.one_shot(head.session_id, "one shot", release=release)) == ["first", "one shot"]
    assert recited(head.ask("second")) == ["first", "second"]


@pytest.mark.parametrize(
    ("release", "end", "remembered"),
    [
        ("2.1.332", "stop", ["first", "SLOW 1.5", "after"]),
        ("2.1.332", "kill", ["first", "SLOW 1.5", "from terminal", "after"]),
        ("2.1.168", "stop", ["first", "SLOW 1.5", "after"]),
        ("2.1.168", "kill", ["first", "SLOW 1.5", "from terminal", "after"]),
    ],
)
def test_how_a_process_ends_decides_which_branch_is_read(simulator: Simulator, release: str, end: str, remembered: list[str]) -> None:
    """Ended by SIGTERM a headless names its own branch; killed it leaves the terminal's word. Measured on the real ones."""
    head = simulator.headless(release=release)
    head.ask("first")
    head.send("SLOW 1.5")
    head.wait_event("system", "init", count=2)
    terminal = simulator.terminal(head.session_id, release=release)
    terminal.ask("from terminal")
    terminal.exit()
    head.wait_idle()
    if end == "stop":
        head.stop()
    else:
        head.kill()
    assert recited(simulator.headless(head.session_id, release=release).ask("after")) == remembered


@pytest.mark.parametrize("release", ["2.1.119", "2.1.168", "2.1.216", "2.1.275", "2.1.332"])
@pytest.mark.parametrize("end", ["stop", "kill", "heal"])
def test_how_a_process_ends_decides_whether_a_compaction_is_read(simulator: Simulator, release: str, end: str) -> None:
    """Nothing before a boundary is above what is behind it: ended by SIGTERM a stale headless leads away from a terminal's `/compact`."""
    simulator.release = release
    head = simulator.headless()
    head.ask("first")
    before = len(head.records())
    terminal = simulator.terminal(head.session_id)
    terminal.type("/compact")
    terminal.wait_idle()
    summary, _ = recited(terminal.ask("from terminal"))
    terminal.exit()
    if end == "heal":
        head.feed(*(record for record in head.records()[before:] if record["type"] in {"user", "assistant"} and not record.get("isMeta")))
        assert recited(head.ask("healed")) == ["first", summary, "from terminal", "healed"]
    head.kill() if end == "kill" else head.stop()
    known = {"stop": ["first"], "kill": [summary, "from terminal"], "heal": ["first", summary, "from terminal", "healed"]}[end]
    if end == "stop" and not head.release.has("last_prompt_leaf"):
        known = [summary, "from terminal"]
    assert recited(simulator.one_shot(head.session_id, "fresh")) == [*known, "fresh"]


@some_releases
def test_an_input_seen_before_is_dropped(simulator: Simulator, release: str) -> None:
    """A repeated message id is answered once, also by a process that found it in the transcript."""
    head = simulator.headless(release=release)
    message_id = head.send("first")
    head.wait_idle()
    head.send("first", message_id=message_id)
    head.wait_idle()
    assert len(head.answers()) == 1
    head.stop()
    again = simulator.headless(head.session_id, release=release)
    again.send("first", message_id=message_id)
    again.wait_idle()
    assert again.answers() == []


def test_a_session_without_transcript_cannot_be_resumed(simulator: Simulator) -> None:
    """A terminal on an unknown session ends at once."""
    with pytest.raises(NotSeen, match="exit code 1"):
        simulator.terminal(str(uuid.uuid4()))


def _text(record: dict[str, object]) -> str | None:
    message = record["message"]
    assert isinstance(message, dict)
    content = message["content"]
    return str(content) if isinstance(content, str) else content[0].get("text")


def _ancestors(parents: dict[str, str | None], leaf: str | None) -> list[str]:
    line: list[str] = []
    while leaf is not None:
        line.append(leaf)
        leaf = parents.get(leaf)
    return line
