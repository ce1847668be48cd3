"""Progress: a bar in a terminal if rich is installed, otherwise lines."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def steps(
    title: str, items: Iterable[Item], total: int, name: Callable[[Item], str] | None = None
) -> Iterator[Item]:
    """Iterate over items and show the progress, one step of `total` per item.

    Without a function `name`, all items share one line.
    """
    if total and sys.stdout.isatty() and importlib.util.find_spec("rich") is not None:
        return _bar(title, items, total, name or str)
    return _lines(title, items, total, name)


def _bar(
    title: str, items: Iterable[Item], total: int, name: Callable[[Item], str]
) -> Iterator[Item]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = MofNCompleteColumn(), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, TextColumn("{task.description}")) as progress:
        task = progress.add_task(title, total=total)
        for item in items:
            progress.update(task, description=f"{title}: {name(item)}")
            yield item
            progress.advance(task)


def _lines(
    title: str, items: Iterable[Item], total: int, name: Callable[[Item], str] | None
) -> Iterator[Item]:
    start = time.monotonic()
    for number, item in enumerate(items, 1):
        if name is not None:
            print(f"{title} {number}/{total}: {name(item)}", flush=True)
        yield item
    if total:
        print(f"{title}, {total} done: {time.monotonic() - start:.0f} s", flush=True)
