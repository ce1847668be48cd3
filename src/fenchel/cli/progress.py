"""Progress bars on standard error, where they do not mix with results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fenchel.cli.console import notes
from fenchel.cli.printable import one_line


@contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar for `total` things; the function that it gives is called with how many more are done."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=notes, transient=True, disable=not notes.is_terminal
    ) as progress:
        task = progress.add_task(one_line(what), total=total)
        yield lambda count: progress.advance(task, count)
