"""The two files of one headless, followed together: its stdout log and its session's transcript."""

from __future__ import annotations

from pathlib import Path

from ccc_hookspecs.claude.jsonl import Place
from ccc_hookspecs.values import Headless, SentInput
from ccc_plugins.retire_stale.evidence.checkpoints import Checkpoints
from ccc_plugins.retire_stale.evidence.news import News
from ccc_plugins.retire_stale.evidence.stdout_log import StdoutLog
from ccc_plugins.retire_stale.evidence.transcript import State, Transcript
from ccc_plugins.retire_stale.judgement.copies import is_copy_id
from ccc_plugins.retire_stale.judgement.idleness import Log
from ccc_plugins.retire_stale.judgement.stream import Stream


class Files:
    """Reads what is new in both. Not for use by several threads at once.

    `log`, `log_state`; `transcript` (None while it is not known where it is) and its `state`. `went_on`: at the last look the
    transcript had new lines and the log had none. `checkpoints`: where what was read is kept for the time after a restart.
    """

    def __init__(self, headless: Headless, spawned_at: float | None, checkpoints: Checkpoints | None = None) -> None:
        self.log = StdoutLog(headless.stdout_log)
        self.log_state: Log = "not known"
        self.transcript: Transcript | None = None
        self.state: State = "missing"
        self.went_on = False
        self._spawned_at = spawned_at
        self._checkpoints = checkpoints
        self._claimed: tuple[SentInput, ...] = ()
        self._ids_given = False
        self._kept_at = 0

    def read(self, headless: Headless, path: Path | None) -> None:
        """Read what is new in the log, then in the transcript: so every own record that is seen was also claimed, or will be."""
        self._turn_to(headless, path)
        self.log_state = self.log.look()
        if self.transcript is None:
            self.state = "missing"
            return
        self._read_transcript(self.transcript, headless.sent or ())
        self._keep(headless)

    def _turn_to(self, headless: Headless, path: Path | None) -> None:
        """Follow that transcript. Another one than before needs all own ids again, and so the whole log."""
        if self.transcript is not None and self.transcript.path == path:
            return
        self.transcript = None if path is None else Transcript(path, headless, self._spawned_at)
        if self.transcript is None:
            return
        if self._ids_given:
            self.log.rewind()
        self._ids_given, self._claimed, self._kept_at = False, (), 0
        if self.log.offset == 0:
            self._restore(headless, self.transcript)

    def _restore(self, headless: Headless, transcript: Transcript) -> None:
        match None if self._checkpoints is None else self._checkpoints.load(headless):
            case (str(path), (Place() as log_place, Stream() as stream, None | float() as closed), (Place() as place, News() as news)):
                if path == str(transcript.path) and self.log.resume(log_place, stream, closed) and not transcript.resume(place, news):
                    self.log.rewind()
        self._kept_at = self.log.offset + transcript.bytes_read

    def _keep(self, headless: Headless) -> None:
        """Keep what is known by now, once enough was read to be worth it."""
        transcript, checkpoints = self.transcript, self._checkpoints
        if transcript is None or checkpoints is None or self.state != "readable" or self.log_state != "readable":
            return
        read = self.log.offset + transcript.bytes_read
        if read - self._kept_at < checkpoints.every:
            return
        log, news = self.log.kept(), transcript.kept()
        if log is not None and news is not None:
            checkpoints.save(headless, (str(transcript.path), log, news))
            self._kept_at = read

    def _read_transcript(self, transcript: Transcript, sent: tuple[SentInput, ...]) -> None:
        stream, newly_sent = self.log.stream, self._newly_sent(sent)
        transcript.give([s.message_id for s in newly_sent if is_others_record(s)])
        new = stream.take_ids() + [s.message_id for s in newly_sent if not is_others_record(s)]
        self._ids_given = True
        first = [own for own in (*stream.first_ids, *(s.message_id for s in sent[:4])) if not transcript.was_given(own)]
        self.state = transcript.look(first, new, compacted=stream.compactions > 0)
        if self.state == "replaced":
            self.transcript = None
        elif self.state == "readable" and transcript.grew and transcript.left_over():
            self._claim_late(transcript)
        self.went_on = transcript.grew and not self.log.grew

    def _claim_late(self, transcript: Transcript) -> None:
        """What the headless printed since the log was read may account for what the transcript holds by now."""
        grew, self.log_state = self.log.grew, self.log.look()
        self.log.grew = self.log.grew or grew
        transcript.claim(self.log.stream.take_ids())

    def _newly_sent(self, sent: tuple[SentInput, ...]) -> tuple[SentInput, ...]:
        """The inputs not claimed yet. A host that leaves out what was acknowledged long ago has its ids claimed again: no harm."""
        before, self._claimed = self._claimed, sent
        goes_on = before and sent[:1] == before[:1] and sent[len(before) - 1 : len(before)] == before[-1:]
        return sent[len(before) :] if goes_on else sent


def is_others_record(sent: SentInput) -> bool:
    """Whether this input gives a headless a record that another writer wrote, under that record's own id."""
    return sent.history and not is_copy_id(sent.message_id)
