r"""What most lines say, read off their bytes without decoding them: a tool's result of 100 KB names three ids that matter.

Only lines of exactly the shapes that Claude Code 2.0.42 to 2.1.332 writes are read so (`skim_record`, `skim_event`), in the compact
form in which it writes them; of any other line the answer is None, and the caller decodes it.

Why that is sound: inside a JSON string a quote is escaped, so the bytes `,"uuid":"` are structure, never text. What is read at
the start of a line stands before anything nested. What is read at its end is a run of plain members up to the last brace, hence
members of the record itself. What is read in the middle is taken from the first place where the message can end. A line on
which a second record may begin (a crash can leave that) is never read so.
"""

from __future__ import annotations

ID = rb"[0-9a-f-]{36}"
NAME = rb"[A-Za-z0-9_.:+-]{1,128}"
TEXT = rb'"[^"\\\n]*+(?:\\["\\/bfnrtu][^"\\\n]*+)*+"'
MESSAGE_END = b']},"'
"""A message's list of blocks ends here, and so does the message; a nested list that ends so is followed by another name."""

TAIL = 2048
"""Bytes at the end of a line in which its last plain members begin."""


def member(*meant: bytes) -> bytes:
    """A pattern for one plain member of a record (a text, a number, a truth value or null) with another name than these."""
    return rb'"(?!(?:' + rb"|".join(meant) + rb')")[A-Za-z_]++":(?:' + TEXT + rb"|null|true|false|-?[0-9.]++)"
