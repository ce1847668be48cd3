"""What is said of a validation where no progress bar can be seen."""

from __future__ import annotations

from collections.abc import Callable

from fenchel.cli.console import note, notes
from fenchel.training.progress import Record


def teller(name: str = "") -> Callable[[Record], None] | None:
    """A function that tells of every validation; None on a terminal, where the bar does."""
    if notes.is_terminal:
        return None
    before = f"{name}: " if name else ""

    def tell(record: Record) -> None:
        note(
            f"{before}epoch {record['epoch']:.0f}  loss {record['loss']:.4f}  "
            f"symbols {100 * record['accuracy']:.1f} %  sequences {100 * record['exact']:.1f} %  "
            f"attended {record['attention_support']:.1f}  considered {record['output_support']:.1f}"
        )

    return tell
