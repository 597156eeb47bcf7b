"""A stale process is given what it does not know, and goes on: against simulated Claude Code of every release that takes history."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ccc_hookspecs.errors import NotWritten
from ccc_hookspecs.outcomes import Veto
from ccc_hookspecs.signals import headless_healed, headless_kept, headless_retired, healing_proposed
from ccc_hookspecs.testing.harness import SimulatedHeadless, wait_until
from ccc_hookspecs.values import Deliver, Headless, Hold, Respawn
from ccc_plugins.retire_stale.journal import Journal
from tests.retire_stale.mechanisms.conftest import Stage

HEALABLE = ["2.1.119", *(pytest.param(release, marks=pytest.mark.slow) for release in ("2.1.168", "2.1.216", "2.1.275")), "2.1.332"]
every_healable = pytest.mark.parametrize("release", HEALABLE)
FIRST = "first from headless"
GO_ON = "Go on where it stopped."


@pytest.fixture
def begun(stage: Stage, release: str) -> Stage:
    """The stage with a headless of this release."""
    stage.head.stop()
    stage.simulator.release = release
    stage.head = stage.simulator.headless()
    stage.head.ask(FIRST)
    stage.host.adopt(stage.head)
    return stage


def linger(stage: Stage) -> None:
    """Have a background command run beside the turns that does not end by itself."""
    stage.keep_busy("BG: sleep 300")
    wait_until(lambda: len(stage.head.events("result")) >= 2, "the end of the turn")
    stage.head.wait_idle()


def fork(stage: Stage) -> None:
    """A terminal takes a turn while the headless answers slowly: afterwards each side lacks the other's."""
    gate = stage.simulator.home.root / "gate"
    stage.work(f"UNTIL {gate}")
    stage.take_over("from terminal")
    gate.touch()
    stage.head.wait_idle()


def fresh_memory(stage: Stage, text: str = "what is known") -> list[str]:
    """What a process that resumes the session now remembers, besides its own question."""
    head = stage.simulator.headless(stage.head.session_id)
    head.ask(text)
    known = head.memory()
    head.kill()
    return known[:-1]


@every_healable
def test_a_stale_process_that_cannot_be_ended_is_healed_in_place(begun: Stage) -> None:
    """The same process, its background command alive, takes the text and knows everything; so does whoever resumes the session."""
    linger(begun)
    begun.take_over("from terminal", "RUN: echo hi")
    size = len(begun.head.records())
    assert begun.inject() == Deliver()
    (healed,) = begun.signals.of(headless_healed)
    assert (healed.headless.pid, len(healed.turns)) == (begun.head.pid, 2)
    # From 2.1.168 on a `last-prompt` names what the terminal wrote last, which is given as an answer that says nothing.
    assert healed.records == (6 if begun.head.release.name == "2.1.119" else 7)
    assert begun.signals.of(headless_retired) == []
    assert begun.inject() is None
    begun.head.ask("next")
    assert begun.head.memory() == [FIRST, "BG: sleep 300", "from terminal", "RUN: echo hi", "next"]
    assert all(tool.is_running() for tool in begun.tools)
    assert len(begun.head.records()) > size
    assert begun.inject() is None
    assert fresh_memory(begun) == [FIRST, "BG: sleep 300", "from terminal", "RUN: echo hi", "next"]
    (attempt,) = Journal(begun.host.state_dir).attempts()
    assert attempt.outcome == "healed"


@every_healable
def test_where_a_fresh_process_would_lack_turns_the_old_one_is_healed(begun: Stage) -> None:
    """A forked transcript becomes one line again, and nothing is ended."""
    fork(begun)
    assert begun.inject() == Deliver()
    begun.head.ask("next")
    known = begun.head.memory()
    assert sorted(text.partition(" ")[0] for text in known) == ["UNTIL", "first", "from", "next"]
    assert Counter(fresh_memory(begun)) == Counter(known)


@every_healable
def test_a_linear_idle_process_is_retired_unless_healing_is_asked_for(begun: Stage) -> None:
    """By default a stale process that is idle makes room for a fresh one; with `always` it is healed."""
    begun.take_over("from terminal")
    begun.use(heal="always")
    assert begun.inject() == Deliver()
    assert begun.head.alive
    begun.head.ask("next")
    assert begun.head.memory() == [FIRST, "from terminal", "next"]
    begun.take_over("from terminal again")
    begun.use(heal="held")
    assert isinstance(begun.inject(), Respawn)
    assert not begun.head.alive


@pytest.mark.parametrize("release", ["2.0.42", "2.1.61"])
def test_a_release_that_takes_no_history_is_given_none(begun: Stage) -> None:
    """What is older holds the text for work that lingers, as ever."""
    begun.use(heal="always")
    begun.take_over("from terminal")
    assert isinstance(begun.inject(), Respawn)
    assert begun.signals.of(headless_healed) == []


def test_healing_can_be_switched_off(stage: Stage) -> None:
    """With `never` the text is held for work that lingers, until a person overrules."""
    stage.use(heal="never")
    linger(stage)
    stage.take_over("from terminal")
    decision = stage.inject()
    assert isinstance(decision, Hold)
    assert decision.lingering


def test_a_veto_keeps_a_process_from_being_given_anything(stage: Stage) -> None:
    """A vetoed healing writes nothing, and the text is held."""
    linger(stage)
    stage.take_over("from terminal")
    before = stage.head.records()

    def veto(sender: str, event: object) -> Veto:
        return Veto(reason="under a debugger")

    with healing_proposed.connected_to(veto):
        assert isinstance(stage.inject(), Hold)
    assert stage.head.records() == before


def test_shadow_mode_says_that_it_would_heal_and_gives_nothing(stage: Stage) -> None:
    """The text is delivered, the transcript stays as it was, and the report says what would have been done."""
    stage.use(mode="shadow")
    linger(stage)
    stage.take_over("from terminal")
    before = stage.head.records()
    assert stage.inject() is None
    assert stage.head.records() == before
    (kept,) = stage.signals.of(headless_kept)
    assert (kept.would_heal, kept.would_retire) == (True, False)


@every_healable
@pytest.mark.parametrize("lines", range(4))
def test_a_healing_that_is_broken_off_goes_on_at_the_next_try(begun: Stage, lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the host fails, the text is held; afterwards the process is given the rest, from what stands on the disk alone."""
    linger(begun)
    begun.take_over("from terminal", "from terminal again")
    written: list[bytes] = []
    write = begun.host.write

    def fail_after(headless: Headless, line: bytes) -> None:
        if len(written) == lines:
            raise NotWritten(headless.session_id, "broken off")
        written.append(line)
        write(headless, line)

    monkeypatch.setattr(begun.host, "write", fail_after)
    assert isinstance(begun.inject(), Hold)
    begun.head.wait_idle()
    monkeypatch.setattr(begun.host, "write", write)
    _forget_everything(begun)
    assert begun.inject() == Deliver()
    begun.head.ask("next")
    assert begun.head.memory() == [FIRST, "BG: sleep 300", "from terminal", "from terminal again", "next"]
    assert fresh_memory(begun) == [FIRST, "BG: sleep 300", "from terminal", "from terminal again", "next"]


def _forget_everything(stage: Stage) -> None:
    """As a host that is started anew."""
    stage.use(lock_seconds=3.0)
    stage.use(lock_seconds=2.0)


def test_a_turn_that_its_writer_has_not_finished_is_waited_for(stage: Stage) -> None:
    """While the terminal is in a turn nothing is given, however far that is on the disk."""
    linger(stage)
    gate = stage.simulator.home.root / "gate"
    terminal = stage.terminal("from terminal")
    terminal.type(f"UNTIL {gate}")
    terminal.wait_busy()
    assert isinstance(stage.inject(), Hold)
    assert stage.host.written == []
    gate.touch()
    terminal.wait_idle()
    assert stage.inject() == Deliver()
    stage.head.ask("next")
    assert stage.head.memory()[2:] == ["from terminal", f"UNTIL {gate}", "next"]


@every_healable
def test_what_was_forked_before_it_was_started_is_given_to_a_fresh_process(begun: Stage) -> None:
    """Nobody healed it in time: the fresh process gets the branch that it did not read, once, before its first text."""
    fork(begun)
    begun.head.kill()
    begun.resume()
    assert begun.inject("next") is None
    assert len(begun.signals.of(headless_healed)) == 1
    begun.head.ask("next")
    known = begun.head.memory()
    # 2.1.275 lets a person ask for what it says below an open prompt.
    assert sorted(text.partition(" ")[0] for text in known if text != GO_ON) == ["UNTIL", "first", "from", "next"]
    assert begun.inject("again") is None
    assert Counter(fresh_memory(begun)) == Counter(known)
    begun.head.kill()
    begun.resume()
    assert begun.inject("once more") is None
    assert len(begun.signals.of(headless_healed)) == 1


@every_healable
def test_whoever_reads_next_lacks_nothing_when_a_terminal_opens(begun: Stage) -> None:
    """A launch has a process that left out turns bring them together before it ends."""
    fork(begun)
    begun.launch()
    assert not begun.head.alive
    (retired,) = begun.signals.of(headless_retired)
    assert retired.facts.attribution == "fresh"
    assert sorted(text.partition(" ")[0] for text in fresh_memory(begun)) == ["UNTIL", "first", "from"]


@every_healable
def test_a_process_that_ends_stale_leaves_no_record(begun: Stage) -> None:
    """What it would write at its end would lead the next reader to its own branch."""
    begun.take_over("from terminal")
    before = _content(begun.head)
    assert isinstance(begun.inject(), Respawn)
    assert _content(begun.head) == before
    assert fresh_memory(begun) == [FIRST, "from terminal"]


@every_healable
@pytest.mark.parametrize("command", ["/cost", "/context"])
def test_a_local_command_does_not_hide_another_writers_turn(begun: Stage, command: str) -> None:
    """F37: a local command, then a turn of any other process, then a text."""
    begun.head.send(command)
    begun.head.wait_idle()
    begun.simulator.one_shot(begun.head.session_id, "from one-shot")
    decision = begun.inject()
    if isinstance(decision, Respawn):
        begun.resume()
        assert begun.inject() is None
    begun.head.ask("next")
    assert [text for text in begun.head.memory() if text.startswith(("first", "from", "next"))] == [FIRST, "from one-shot", "next"]


def _content(head: SimulatedHeadless) -> bytes:
    path: Path = head.home.transcript(head.session_id)
    return path.read_bytes()


def test_what_looks_like_a_command_is_history_all_the_same(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that begins with a slash is not run when it is given as history."""
    linger(stage)
    stage.take_over("/tmp/x is a path", "from terminal")
    lines: list[bytes] = []
    write = stage.host.write

    def note(headless: Headless, line: bytes) -> None:
        lines.append(line)
        write(headless, line)

    monkeypatch.setattr(stage.host, "write", note)
    assert stage.inject() == Deliver()
    assert any(b"\\u2060/tmp/x is a path" in line for line in lines)
    stage.head.ask("next")
    assert stage.head.memory()[2:] == ["\u2060/tmp/x is a path", "from terminal", "next"]


def test_shadow_mode_would_retire_what_cannot_be_healed(stage: Stage) -> None:
    """A process that went on to another session cannot be given anything for this one."""
    stage.use(mode="shadow")
    stage.head.send("/clear")
    stage.head.wait_idle()
    stage.head.ask("in the other session")
    assert stage.inject() is None
    (kept,) = stage.signals.of(headless_kept)
    assert (kept.would_heal, kept.would_retire) == (False, True)
