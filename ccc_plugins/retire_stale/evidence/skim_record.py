"""The entry of a transcript record, read off the bytes of its line: see `skim`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, TypeAlias

from ccc_hookspecs.claude.jsonl import Line, Lines, Record, parse
from ccc_plugins.retire_stale.evidence.skim import ID, MESSAGE_END, NAME, TAIL, TEXT, member
from ccc_plugins.retire_stale.judgement.entries import Entry, Kind, seconds, writer_of

Nothing: TypeAlias = Literal["nothing"]

_RECORD = re.compile(
    rb'\{"parentUuid":(?:null|"(?P<parent>' + ID + rb')"),"isSidechain":false,'
    rb'(?P<members>(?:"(?:userType|cwd|sessionId|version|gitBranch|slug|promptId)":' + TEXT + rb",)*+)"
    rb'(?:"type":"user","message":\{"role":"user","content":\[\{"tool_use_id":"' + NAME + rb'"(?P<user>),"type":"tool_result",'
    rb'|"message":\{(?:"(?:model|type|role)":"' + NAME + rb'",)*+"id":"(?P<message>' + NAME + rb')"(?P<assistant>),'
    rb'|"attachment":\{"type":"(?!queued_command")[a-z_]++"(?P<attachment>)[,}])'
)
_NAMED = re.compile(rb'"uuid":"(' + ID + rb')","timestamp":"([0-9T:.Z-]{20,30})"')
_MEANT = (b"type", b"uuid", b"timestamp", b"parentUuid", b"isSidechain", b"message", b"attachment")
_PLAIN = re.compile(rb"(?:," + member(*_MEANT) + rb")*+\}")
_VERSION = re.compile(rb'"version":"(' + NAME + rb')"')
_ENTRYPOINT = re.compile(rb'"entrypoint":"(' + NAME + rb')"')
_KINDS: dict[str, Kind] = {"user": "other", "assistant": "answer", "attachment": "other"}


def skimmed(lines: Lines, decoded: tuple[bytes, ...] = ()) -> Iterator[Entry | Record]:
    """Each record of some lines: its entry where that can be read off the bytes, else the record. Lines that hold neither a record with a
    `uuid` nor a queue operation are left out, but for those that begin with one of `decoded`."""
    if not lines.plain:
        for line in lines:
            yield from parse(line)
        return
    data, start = lines.data, 0
    while start < len(data):
        stop = data.find(b"\n", start)
        entry = None if decoded and data.startswith(decoded, start) else entry_at(data, start, stop, lines.offset + start)
        if entry is None:
            yield from parse(Line(lines.offset + start, lines.offset + stop + 1, data[start:stop]))
        elif entry != "nothing":
            yield entry
        start = stop + 1


def entry_at(data: bytes, start: int, stop: int, offset: int) -> Entry | Nothing | None:
    """The entry of the record on `data[start:stop]`, a line that stands at `offset` in its transcript, as `entry_of` gives it.

    `nothing`: the line holds neither a record with a `uuid` nor a queue operation. None: it must be decoded.
    """
    if data.startswith(b'{"type":"', start, stop):
        return None if _counts(data, start, stop) else "nothing"
    head = _RECORD.match(data, start, stop)
    if head is None or data.rfind(b'{"parentUuid":', head.end(), stop) >= 0:
        return None
    kind = str(head.lastgroup)
    named = _behind_message(data, head.end(), stop) if kind == "user" else _at_end(data, kind.encode(), head.end(), stop)
    end = None if named is None else _members(data, named.end(), stop, plain=kind != "user", before=head["members"])
    return None if named is None or end is None else _entry(head, kind, named, end, offset)


def _counts(data: bytes, start: int, stop: int) -> bool:
    return data.rfind(b'"uuid"', start, stop) >= 0 or data.rfind(b'"queue-operation"', start, stop) >= 0


def _behind_message(data: bytes, start: int, stop: int) -> re.Match[bytes] | None:
    at = data.find(MESSAGE_END, start, stop)
    return _NAMED.match(data, at + 3, stop) if at >= 0 else None


def _at_end(data: bytes, kind: bytes, start: int, stop: int) -> re.Match[bytes] | None:
    mark = b',"type":"%s",' % kind
    at = data.rfind(mark, max(start, stop - TAIL), stop)
    return _NAMED.match(data, at + len(mark), stop) if at >= 0 else None


def _members(data: bytes, start: int, stop: int, *, plain: bool, before: bytes) -> bytes | None:
    """The plain members that name the writer: the last ones of the line or, on releases up to 2.1.61, those `before` the message.

    `plain`: nothing but plain members may stand from `start` on.
    """
    if plain:
        end = data[start:stop]
        return before + end if _is_plain(end) else None
    if b'"version"' in before:
        again = data.rfind(b'"version"', start, stop) >= 0 or data.rfind(b'"entrypoint"', start, stop) >= 0
        return None if again or not data.endswith(b"}", start, stop) else before
    at = data.rfind(b',"userType":', max(start, stop - TAIL), stop)
    end = data[at:stop]
    return end if at >= 0 and _is_plain(end) and None not in _writer(end) else None


@lru_cache(maxsize=64)
def _is_plain(end: bytes) -> bool:
    return _PLAIN.fullmatch(end) is not None


@lru_cache(maxsize=64)
def _writer(members: bytes) -> tuple[str | None, str | None]:
    """The release and the entry point."""
    version, entrypoint = _VERSION.search(members), _ENTRYPOINT.search(members)
    return (version[1].decode() if version else None), (entrypoint[1].decode() if entrypoint else None)


def _entry(head: re.Match[bytes], kind: str, named: re.Match[bytes], end: bytes, offset: int) -> Entry:
    parent, message = head["parent"], head["message"]
    release, entrypoint = _writer(end)
    return Entry(
        offset=offset,
        type=kind,
        kind=_KINDS[kind],
        uuid=named[1].decode(),
        parent=None if parent is None else parent.decode(),
        message_id=None if message is None else message.decode(),
        entrypoint=entrypoint,
        writer=writer_of(entrypoint),
        timestamp=seconds(named[2].decode()),
        release=release,
        in_tree=True,
    )
