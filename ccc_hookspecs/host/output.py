"""How `ccc-host` talks: answers on standard output, what goes on on standard error, or one JSON value."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text


class Output:
    """`as_json`: print nothing but JSON on standard output, and nothing on standard error but errors."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._out = Console(file=sys.stdout, highlight=False, soft_wrap=True)
        self._err = Console(file=sys.stderr, highlight=False, soft_wrap=True)
        self._status: Status | None = None

    def answer(self, text: str) -> None:
        """A piece of an answer, as it is."""
        if self.as_json:
            return
        if self._status is not None:
            self._status.stop()
        self._out.print(Text(_printable(text)))
        if self._status is not None:
            self._status.start()

    def note(self, text: str) -> None:
        """A line about what goes on."""
        if not self.as_json:
            self._err.print(Text(_printable(text)))

    def error(self, text: str) -> None:
        """One line that says what is wrong and what to do."""
        print(f"ccc-host: {' '.join(text.split())}", file=sys.stderr)

    def value(self, value: Any) -> None:
        """One JSON value on a line of its own."""
        print(json.dumps(value), flush=True)

    def progress(self) -> AbstractContextManager[object]:
        """While it lasts, `status` shows its last line in place where somebody looks; elsewhere each line once."""
        if self.as_json or not self._err.is_terminal:
            return nullcontext()
        self._status = self._err.status("")
        return self._status

    def status(self, text: str) -> None:
        """What is waited for now."""
        if self._status is None:
            self.note(text)
        else:
            self._status.update(Text(_printable(text)))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]], empty: str) -> None:
        """A table; `empty` is said when there is no row."""
        table = Table(*columns, box=None, pad_edge=False)
        for row in rows:
            table.add_row(*(Text(_printable(cell)) for cell in row))
        if table.row_count:
            wide = self._out.is_terminal
            Console(file=sys.stdout, highlight=False, width=None if wide else 240).print(table)
        else:
            self.note(empty)


def _printable(text: str) -> str:
    """A text without what cannot be encoded, and without what would steer the terminal."""
    kept = "".join(char for char in text if char in "\n\t" or char.isprintable())
    encoding = sys.stdout.encoding or "utf-8"
    return kept.encode(encoding, "replace").decode(encoding)
