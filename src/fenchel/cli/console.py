"""Where the commands write: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from fenchel.analysis.tables import Cell, shown

WIDEST_TITLE = 76  # a longer one is broken rather than widening its table
out = Console()
notes = Console(stderr=True)


def note(message: str) -> None:
    """A remark for the person; it never mixes with the results."""
    notes.print(Text(message), soft_wrap=True)


def warn(message: str) -> None:
    """Something that the person should know before trusting the results."""
    notes.print(Text(message, style="yellow"), soft_wrap=True)


def write(line: str) -> None:
    """One line of results, exactly as it is."""
    print(line, flush=True)


def write_json(value: object) -> None:
    """One object of results, on one line."""
    write(json.dumps(value, ensure_ascii=False, allow_nan=False))


def grid(title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Table:
    """A table for the terminal; columns of numbers are set to the right."""
    body = [list(row) for row in rows]
    result = Table(box=SIMPLE_HEAD, title=escape(title), title_justify="left", title_style="bold")
    result.min_width = min(len(title), WIDEST_TITLE)
    for k, name in enumerate(columns):
        numeric = bool(body) and all(isinstance(row[k], int | float | None) for row in body)
        result.add_column(escape(name), justify="right" if numeric else "left", overflow="fold")
    for row in body:
        result.add_row(*(Text(shown(value)) for value in row))
    return result
