"""Where the commands write: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fenchel.analysis.tables import Cell, shown
from fenchel.cli.printable import UNSAFE, one_line, printable

WIDEST_TITLE = 76  # a longer one is broken rather than widening its table
out = Console()
notes = Console(stderr=True)


def note(message: str) -> None:
    """A remark for the person; it never mixes with the results."""
    notes.print(plain(message), soft_wrap=True)


def warn(message: str) -> None:
    """Something that the person should know before trusting the results."""
    notes.print(plain(message, "yellow"), soft_wrap=True)


def plain(text: str, style: str = "") -> Text:
    """Text for rich, on one line and without markup."""
    return Text(one_line(text), style=style)


def write(lines: str) -> None:
    """One or more lines of results."""
    print(printable(lines), flush=True)


def write_json(value: object) -> None:
    """One object of results, on one line.

    Characters that are unsafe to print, or that the encoding lacks, are escaped as JSON has it, so that
    the value stays exact.
    """
    encodes_all = (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
    text = json.dumps(value, ensure_ascii=not encodes_all, allow_nan=False)
    write(UNSAFE.sub(lambda found: json.dumps(found[0])[1:-1], text))


def grid(title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Table:
    """A table for the terminal; columns of numbers are set to the right."""
    body = [list(row) for row in rows]
    head = plain(title, "bold")
    result = Table(box=SIMPLE_HEAD, title=head, title_justify="left")
    result.min_width = min(head.cell_len, WIDEST_TITLE)
    for k, name in enumerate(columns):
        numeric = bool(body) and all(isinstance(row[k], int | float | None) for row in body)
        result.add_column(plain(name), justify="right" if numeric else "left", overflow="fold")
    for row in body:
        result.add_row(*(plain(shown(value)) for value in row))
    return result
