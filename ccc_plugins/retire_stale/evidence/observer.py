"""Everything that is known of one headless at one moment, from the transcript, the log and its surroundings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ccc_hookspecs.checks import is_uuid
from ccc_hookspecs.outcomes import Facts
from ccc_hookspecs.values import Headless, SentInput
from ccc_plugins.retire_stale.evidence.anchor import find_record
from ccc_plugins.retire_stale.evidence.branches import last_of, lost_prompts, read_ending, read_tree
from ccc_plugins.retire_stale.evidence.checkpoints import Checkpoints
from ccc_plugins.retire_stale.evidence.files import Files
from ccc_plugins.retire_stale.evidence.frames import Frame, frames_of
from ccc_plugins.retire_stale.evidence.transcript import Transcript
from ccc_plugins.retire_stale.judgement.attribution import Attribution, AttributionFacts, attribute
from ccc_plugins.retire_stale.judgement.branches import Tree, release_numbers, resumed_leaf
from ccc_plugins.retire_stale.judgement.copies import is_copy_id
from ccc_plugins.retire_stale.judgement.entries import Entry
from ccc_plugins.retire_stale.judgement.history import Lack, Memory, lack, takes_history, whole_branch
from ccc_plugins.retire_stale.judgement.idleness import Idleness, IdlenessFacts, UnacknowledgedInput, judge_idleness
from ccc_plugins.retire_stale.judgement.intake import Intake

_STAMP_SLACK = 0.5
_AT_ONCE = 2.0
"""Seconds within which a headless that does nothing takes an input."""
_UNDER_WAY = 30.0
"""Seconds within which an input that was read from the FIFO shows in the log: it takes tens of milliseconds, with some commands seconds."""
_NOTICES_STAY_QUEUED = (2, 1, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is known of a headless besides its files, at `now` (seconds since the epoch); None is *unknown* throughout.

    `release`: of Claude Code, as its record in the registry says. `writers`: another live process on the session may be at work on it.
    `woke_at`: when the machine last woke from a sleep, in seconds since the epoch. `unread`: bytes in its FIFO. `tools`: its running tool
    processes. `children`: the number of its live children. `registry_status` and `registered`: from its record in the live-session
    registry. `others`: whether another process is alive on the session. `computing`: it used more than a trace of CPU. `subagents`: a
    subagent's transcript grew.
    """

    now: float
    woke_at: float | None = None
    unread: int | None = None
    tools: tuple[str, ...] | None = None
    children: int | None = None
    registry_status: str | None = None
    registered: bool | None = None
    others: bool | None = None
    writers: bool | None = None
    release: str | None = None
    computing: bool | None = None
    subagents: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Both verdicts on one headless.

    `on_disk`: the transcript is there to be read. `resumable`: ending it loses no history: the
    transcript is there, and holds its last turn or will once it has caught up with the log. `takes_history`: its release is known to.
    `writers`: as in `Surroundings`. `release`: the one that wrote last to the transcript.
    """

    attribution: Attribution
    idleness: Idleness
    resumable: bool
    on_disk: bool
    takes_history: bool
    writers: bool | None
    release: str | None
    transcript_size: int | None
    log_size: int | None

    @property
    def may_heal(self) -> bool:
        """Whether it could be given what it lacks now: it can take that, runs no turn, and nobody is at work on what it would be given."""
        return self.takes_history and self.idleness.between_turns and self.on_disk and self.writers is False

    def facts(self) -> Facts:
        """As signals carry it."""
        return Facts(
            attribution=self.attribution.verdict,
            attribution_reason=self.attribution.reason,
            idleness=self.idleness.verdict,
            signs=self.idleness.signs,
            foreign=self.attribution.foreign,
            transcript_size=self.transcript_size,
            log_size=self.log_size,
        )


class Observer:
    """Follows the files of one headless. Not for use by several threads at once.

    `transcript_path` may change between looks; a transcript that is found elsewhere is read anew. `checkpoints`: where what was
    read is kept for the time after a restart; without them the first look reads everything, and says the same. `copied`: the files are
    copies, so that when they were written to is not known.
    """

    def __init__(
        self, headless: Headless, spawned_at: float | None, checkpoints: Checkpoints | None = None, *, copied: bool = False
    ) -> None:
        self._headless = headless
        self._times_count = not copied
        self._files = Files(headless, spawned_at, checkpoints)

    @property
    def transcript_path(self) -> Path | None:
        return None if self._files.transcript is None else self._files.transcript.path

    @property
    def reports_states(self) -> bool:
        """Whether the log itself says when the process is idle, or when an input is finished."""
        return self._files.log.stream.state is not None or self._files.log.stream.lifecycle

    def read(self, headless: Headless, transcript_path: Path | None) -> None:
        """Read what is new in the log, then in the transcript: so every own record that is seen was also claimed, or will be."""
        self._headless = headless
        self._files.read(headless, transcript_path)

    def attribution(self) -> Attribution:
        """Whether the headless has seen everything that was on disk at the last `read`."""
        transcript = self._files.transcript
        left_over, foreign = self._left_over()
        return attribute(
            AttributionFacts(
                transcript=self._files.state,
                log_readable=self._files.log_state == "readable",
                anchored=transcript is not None and transcript.anchored,
                left_over=foreign,
                unprinted=len(left_over) - len(foreign),
                moved_to=self._moved_to(),
                answered=self._files.log.stream.last_answer is not None,
                holds_last_answer=self.settled(),
            )
        )

    def _left_over(self) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
        """The records that are left over, and those of them that are certainly another writer's.

        Some releases write an answer before they print it; only while a turn of the headless is open can one be such.
        """
        transcript = self._files.transcript
        if transcript is None or not transcript.anchored:
            return (), ()
        left_over = transcript.left_over()
        return left_over, left_over if self._files.log.stream.turn is None else transcript.certainly_foreign()

    def settled(self) -> bool:
        """Whether the transcript holds the last answer that the log shows; it lags behind by up to a second (2.1.332).

        After a `/clear` that is the one of the session that the headless went on to.
        """
        answer, moved_to, transcript = self._files.log.stream.last_answer, self._moved_to(), self._files.transcript
        if answer is None or self._holds(answer):
            return True
        if transcript is None or not is_uuid(moved_to):
            return False
        beside = str(transcript.path.with_name(f"{moved_to}.jsonl"))
        return any(i is not None and find_record(beside, i) is not None for i in answer)

    def _holds(self, answer: tuple[str | None, str | None]) -> bool:
        return self._files.transcript is not None and self._files.state == "readable" and self._files.transcript.holds(answer)

    def judge(self, around: Surroundings) -> Judgement:
        """Both verdicts, from the last `read` and these surroundings."""
        attribution = self.attribution()
        return Judgement(
            attribution=attribution,
            idleness=judge_idleness(self._idleness_facts(around)),
            resumable=self._files.state == "readable" and (attribution.verdict == "stale" or self.settled()),
            on_disk=self._files.state == "readable",
            takes_history=takes_history(self._files.log.stream.release or around.release),
            writers=around.writers,
            release=self._files.transcript.release if self._files.transcript is not None else None,
            transcript_size=self._files.transcript.size if self._files.transcript is not None else None,
            log_size=self._files.log.size,
        )

    def lost(self, release: str | None = None, *, alive: bool = True) -> tuple[str, ...]:
        """The `uuid`s of the prompts that a fresh `--resume` would lack, by `release` or by the one that wrote last.

        `alive`: the headless has yet to exit, and will name the last record that it knows. Reads the end of the transcript anew.
        """
        if self._files.transcript is None or self._files.state != "readable":
            return ()
        tree = read_tree(self._files.transcript.path)
        leaf = last_of(tree, self._own_ids()) if alive else None
        found = lost_prompts(tree, release or self._files.transcript.release, headless_leaf=leaf)
        return tuple(e.uuid for e in found if e.uuid is not None)

    def lack(self) -> Lack:
        """What the headless lacks of what everybody said. Reads the end of the transcript anew."""
        transcript = self._files.transcript
        if transcript is None or not transcript.anchored or self._files.state != "readable" or self._files.log_state != "readable":
            return Lack(obstacle="what it knows cannot be told")
        if self._moved_to() is not None:
            return Lack(obstacle="it went on to another session")
        ending = read_ending(transcript.path)
        tree, before = ending.tree(), ending.tree(transcript.loaded_to)
        return lack(tree, self._files.log.stream.release or tree.release, self._memory(tree, before, transcript))

    def frames(self, lack: Lack) -> tuple[Frame, ...]:
        """The lines that give it what it lacks, in order; see `frames_of`."""
        transcript, background = self._files.transcript, self._files.log.stream.background
        return () if transcript is None else frames_of(transcript.path, self._headless.session_id, lack, frozenset(background.open))

    def _memory(self, tree: Tree, before: Tree, transcript: Transcript) -> Memory:
        """What it knows. `before`: the transcript as it was when the headless loaded it."""
        sent = self._headless.sent or ()
        given = frozenset(s.message_id for s in sent if s.history and self._is_written(tree, s.message_id))
        leaf = last_of(tree, [*self._own_ids(), *given])
        loaded = next((e.uuid for e in tree.above(leaf) if e.uuid in before.nodes and e.uuid not in given), None)
        read = resumed_leaf(before, self._files.log.stream.release or before.release) if loaded is None else loaded
        return Memory(
            loaded_to=transcript.loaded_to,
            loaded=whole_branch(before, read),
            left_over=transcript.has_left_over,
            given=given,
            begins_at=transcript.begins_at,
            leaf=leaf,
        )

    def _own_ids(self) -> list[str | None]:
        """The ids of its inputs and of its last answer; not of history, which it may not have written yet."""
        stream, sent = self._files.log.stream, self._headless.sent or ()
        history = {s.message_id for s in sent if s.history}
        return [*({*stream.mentioned, *(s.message_id for s in sent)} - history), *(stream.last_answer or ())]

    def _is_written(self, tree: Tree, uuid: str) -> bool:
        """Whether the headless has written this record of history, which is a copy or another writer's own."""
        found = tree.nodes.get(uuid)
        return found is not None and (is_copy_id(uuid) or found.offset > tree.first_offsets[uuid])

    def dismiss_left_over(self) -> None:
        """What is left over at the last `read` is not for the headless to know."""
        transcript = self._files.transcript
        if transcript is not None:
            transcript.dismiss([entry.uuid for entry in transcript.left_over() if entry.uuid is not None])

    def _moved_to(self) -> str | None:
        """The session that a `/clear` led to. An id that `--resume` alone prints from the start is not one.

        Nor is one that takes turns with this one, or whose answers stand in this one's transcript: then the headless writes both.
        """
        stream, mine = self._files.log.stream, self._headless.session_id
        ids = stream.session_ids
        if not ids or ids[-1] == mine or ids.count(mine) > 1 or (mine not in ids and not stream.reset):
            return None
        here = stream.answered_in == ids[-1] and stream.last_answer is not None and self._holds(stream.last_answer)
        return None if here else ids[-1]

    def _idleness_facts(self, around: Surroundings) -> IdlenessFacts:
        sent = self._headless.sent
        pending = None if sent is None else self._pending(sent)
        return IdlenessFacts(
            now=around.now,
            woke_at=around.woke_at,
            log=self._files.log_state,
            stream=self._files.log.stream,
            unacknowledged=None if sent is None or pending is None else tuple(self._owed(pending, sent, around.now)),
            asked=bool(sent),
            unread=around.unread,
            tools=around.tools,
            children=around.children,
            registry_status=around.registry_status,
            registered=around.registered,
            queued=self._queued(),
            unanswered=self._unanswered(pending, around.now),
            quiet=None if self._files.log.written_at is None else around.now - self._files.log.written_at,
            noticed=self._files.transcript.intake.noticed if self._files.transcript is not None else frozenset(),
            subagents=around.subagents,
            silent=self._files.went_on and around.others is False,
            computing=around.computing,
        )

    def _queued(self) -> int:
        """Inputs enqueued and not taken; 0 where that says nothing: another writer's queue stands in the same file, and up to
        2.1.6 a finished task's notice stays in the queue until the next input."""
        transcript = self._files.transcript
        if transcript is None or not transcript.anchored or transcript.left_over():
            return 0
        numbers = release_numbers(transcript.release)
        return 0 if numbers is not None and numbers <= _NOTICES_STAY_QUEUED else transcript.intake.waiting

    def _unanswered(self, pending: list[SentInput] | None, now: float) -> bool:
        """Whether an input was taken of which the log says nothing. One that reports commands says it itself, and after a `/clear`
        what was taken stands in another file."""
        transcript, closed_at = self._files.transcript, self._files.log.closed_at
        silent = self._files.log_state == "readable" and not self._files.log.stream.lifecycle and self._moved_to() is None
        if transcript is None or not silent:
            return False
        known = closed_at if closed_at is not None and self._is_in_time(closed_at, now) else None
        return transcript.unanswered(known, owes=self._may_have_taken(pending, transcript.intake, known))

    def _is_in_time(self, moment: float, now: float) -> bool:
        """Whether a time of the log's can be right: that of a file that was copied says nothing."""
        return self._times_count and (self._headless.spawned_at or 0.0) - _STAMP_SLACK <= moment <= now + _STAMP_SLACK

    def _may_have_taken(self, pending: list[SentInput] | None, intake: Intake, closed_at: float | None) -> bool:
        """Whether an input is left that the headless itself may have taken last: one that was sent, or the notice of a task of its own.

        Another writer's queue operations stand in the same file, and name nobody.
        """
        background = self._files.log.stream.background
        if pending is None or any(task in background.open or task in background.ended for task in intake.noticed):
            return True
        times = [s.sent_at for s in pending if s.sent_at is not None]
        if len(times) < len(pending) or not times or closed_at is None:
            return bool(pending)
        if intake.takes_between(min(times) - _STAMP_SLACK, closed_at) < len(pending):
            return True
        # Taken at once they were, and are over. Sent in the middle of a turn, another writer's take may stand for one that comes behind it.
        at_once = intake.takes_between(max(times) - _STAMP_SLACK, max(times) + _AT_ONCE)
        return not at_once and intake.takes_between(closed_at, closed_at + _UNDER_WAY) > 0

    def _pending(self, sent: tuple[SentInput, ...]) -> list[SentInput]:
        """The inputs of which no id tells that they are finished, or were taken. History that was lost on its way is given again."""
        pending = [s for s in sent if not s.history and s.message_id not in self._files.log.stream.finished]
        return pending if self._files.log.stream.lifecycle else self._after_last_seen(pending)

    def _owed(self, pending: list[SentInput], sent: tuple[SentInput, ...], now: float) -> list[UnacknowledgedInput]:
        """The inputs that nothing shows to be finished.

        A release that reports commands finishes each by name. Another one shows an input as a record, and what comes later was
        read later; a command that it handles itself, or a text that joins a running turn, leaves only a queue operation.
        """
        if pending and not self._files.log.stream.lifecycle and self._was_taken(pending[-1], sent, now):
            pending = []
        return [UnacknowledgedInput(message_id=s.message_id, age=None if s.sent_at is None else max(0.0, now - s.sent_at)) for s in pending]

    def _after_last_seen(self, pending: list[SentInput]) -> list[SentInput]:
        seen = self._files.log.stream.mentioned | (self._files.transcript.inputs if self._files.transcript is not None else set())
        last = max((i for i, s in enumerate(pending) if s.message_id in seen), default=-1)
        return pending[last + 1 :]

    def _was_taken(self, last: SentInput, sent: tuple[SentInput, ...], now: float) -> bool:
        """Whether the queue operations show that the last input was taken from the queue: as many were as were sent since just before it.

        After a `/clear` they stand in another file.
        """
        if self._files.log.stream.turn is not None:
            return False
        if self._moved_to() is not None:
            return last.sent_at is None or now - last.sent_at > _UNDER_WAY
        if self._files.transcript is None or self._queued() > 0:
            return False
        intake = self._files.transcript.intake
        if last.sent_at is None:
            return intake.taken >= len(sent)
        since = last.sent_at - _STAMP_SLACK
        return intake.takes_since(since) >= sum(1 for s in sent if s.sent_at is not None and s.sent_at >= since)
