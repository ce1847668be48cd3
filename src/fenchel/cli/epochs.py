"""What is said of a validation where no progress bar can be seen."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fenchel.cli.console import note, notes
from fenchel.training.progress import Record, in_words


def teller(name: str = "") -> Callable[[Record], None] | None:
    """A function that tells of every validation; None on a terminal, where the bar does."""
    return None if notes.is_terminal else partial(tell, name)


def tell(name: str, record: Record) -> None:
    """Say what a validation came to, and whose it was."""
    note(f"{name}: {in_words(record)}" if name else in_words(record))
