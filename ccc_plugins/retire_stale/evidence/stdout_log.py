"""A headless's stdout log, read as it grows: the state of its work and the ids of what it printed."""

from __future__ import annotations

from pathlib import Path

from ccc_hookspecs.claude.jsonl import JsonlFollower, Line, Lines, Place, parse
from ccc_plugins.retire_stale.evidence.skim_event import event_at, partial_messages
from ccc_plugins.retire_stale.judgement.idleness import Log
from ccc_plugins.retire_stale.judgement.stream import Stream


class StdoutLog:
    """Follows one log. Not for use by several threads at once.

    A log that was replaced or cut short stays so: what stood in it and was not read is not known, and never will be.
    `size`: bytes as last seen. `grew`: whether the last look found new lines. `closed_at`: when the last
    end of a turn was written, in epoch seconds; None when something stood behind it as soon as it was seen.
    """

    def __init__(self, path: Path | None) -> None:
        self._follower = None if path is None else JsonlFollower(path)
        self._path = path
        self._replaced = False
        self._resumed = False
        self.stream = Stream()
        self.grew = False
        self.closed_at: float | None = None

    @property
    def size(self) -> int | None:
        return None if self._follower is None or self._follower.size < 0 else self._follower.size

    @property
    def written_at(self) -> float | None:
        """When it was last written to, in epoch seconds, as last seen."""
        return None if self._follower is None or self._follower.mtime_ns < 0 else self._follower.mtime_ns / 1e9

    @property
    def offset(self) -> int:
        """Bytes up to which it was read."""
        return 0 if self._follower is None else self._follower.offset

    def look(self) -> Log:
        """Read what is new; the state of the log."""
        self.grew = self._resumed
        self._resumed = False
        if self._follower is None:
            return "not known"
        growth = self._follower.poll()
        if growth in ("missing", "unreadable"):
            return "replaced" if self._replaced else growth
        self._replaced = self._replaced or growth == "replaced"
        before = self.stream.closes
        if growth != "unchanged":
            self._read(self._follower)
        if self.stream.closing and self._follower.offset == self._follower.size:
            self.closed_at = self.written_at
        elif self.stream.closes != before:
            # It ended since, and when is hidden by what was printed behind it.
            self.closed_at = None
        return "replaced" if self._replaced else "readable"

    def rewind(self) -> None:
        """Read it from its start again at the next look; of a log that was replaced nothing is forgotten."""
        if self._path is not None and not self._replaced:
            self._follower, self.stream, self.closed_at = JsonlFollower(self._path), Stream(), None

    def kept(self) -> tuple[Place, Stream, float | None] | None:
        """What `resume` needs; None where that cannot be told."""
        place = None if self._follower is None or self._replaced else self._follower.place()
        return None if place is None else (place, self.stream, self.closed_at)

    def resume(self, place: Place, stream: Stream, closed_at: float | None) -> bool:
        """Go on from what another one's `kept` told of this file; False, and nothing changes, when it is not that file."""
        follower = None if self._path is None else JsonlFollower.resume(self._path, place)
        if follower is None:
            return False
        self._follower, self.stream, self._resumed = follower, stream, place.offset > 0
        self.closed_at = closed_at
        return True

    def _read(self, follower: JsonlFollower) -> None:
        for lines in follower.chunks():
            self.grew = True
            if lines.plain:
                self._skim(lines)
            else:
                self._decode(lines)

    def _decode(self, lines: Lines) -> None:
        for line in lines:
            self._feed(line)

    def _skim(self, lines: Lines) -> None:
        data, stream, start = lines.data, self.stream, 0
        pieces = partial_messages(stream)
        while start < len(data):
            if pieces is not None and (found := pieces[0].match(data, start)) is not None:
                stream.feed(pieces[1])
                start = found.end()
                continue
            stop = data.find(b"\n", start)
            event = event_at(data, start, stop, stream)
            if event is not None:
                stream.feed(event)
            else:
                self._feed(Line(lines.offset + start, lines.offset + stop + 1, data[start:stop]))
                pieces = partial_messages(stream)
            start = stop + 1

    def _feed(self, line: Line) -> None:
        self.stream.closing = False
        for record in parse(line):
            self.stream.feed(record.data)
