"""What the commands print: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from fenchel.data.bad_items import BadItems
from fenchel.printable import UNSAFE, one_line, printable
from fenchel.report import Cell, format_cell
from fenchel.training.progress import ValidationRecord, validation_line

WIDEST_TITLE = 76  # a longer one is broken rather than widening its table


class SafeConsole(Console):
    """A console that escapes unsafe characters, whatever is printed: tasks print words of data files."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or not UNSAFE.search(segment.text):
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)


out = SafeConsole()
notes = SafeConsole(stderr=True)


def note(message: str) -> None:
    """Print a remark on standard error, apart from the results."""
    notes.print(plain(message), soft_wrap=True)


def warn(message: str) -> None:
    """Print a warning on standard error, apart from the results."""
    notes.print(plain(message, "yellow"), soft_wrap=True)


def warn_skipped(bad: BadItems) -> None:
    """Print a warning that names the bad items of data files that were skipped, if any."""
    if bad.count:
        warn(bad.summary)


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
    """A table for the terminal; columns of numbers are right-aligned."""
    body = [list(row) for row in rows]
    head = plain(title, "bold")
    result = Table(box=SIMPLE_HEAD, title=head, title_justify="left")
    result.min_width = min(head.cell_len, WIDEST_TITLE)
    for k, name in enumerate(columns):
        numeric = bool(body) and all(isinstance(row[k], int | float | None) for row in body)
        result.add_column(plain(name), justify="right" if numeric else "left", overflow="fold")
    for row in body:
        result.add_row(*(plain(format_cell(value)) for value in row))
    return result


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal; yields a function to call with the number of items done."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=notes, transient=True, disable=not notes.is_terminal
    ) as progress:
        task = progress.add_task(one_line(title), total=total)
        yield lambda count: progress.advance(task, count)


def on_validation(
    describe: Callable[[Mapping[str, float]], list[str]], name: str = ""
) -> Callable[[ValidationRecord], None] | None:
    """A function that prints every validation; None on a terminal, where the progress bar does."""

    def print_record(record: ValidationRecord) -> None:
        line = validation_line(record, describe)
        note(f"{name}: {line}" if name else line)

    return None if notes.is_terminal else print_record
