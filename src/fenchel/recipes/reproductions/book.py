"""The files of reproduced tables, `results/PAPER/TABLE/metrics.json`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from fenchel.recipes.reproductions.origin import commit, hardware
from fenchel.recipes.reproductions.rows import Finding, Row, stored, update
from fenchel.recipes.reproductions.table import PaperTable


@dataclass(frozen=True)
class Book:
    """Where figures are kept, with what made them.

    Args:
        results: the folder of all tables.
        command: the command that makes a table, by its name.
        quick: the figures are those of tiny models, and have files of their own.
        commit: of the sources, as they are when this is made.
    """

    results: Path
    command: Callable[[str], str]
    quick: bool = False
    commit: str = field(default_factory=commit)

    def path(self, table: PaperTable) -> Path:
        """The file of a table."""
        return self.results / table.name / ("quick.json" if self.quick else "metrics.json")

    def keep(self, table: PaperTable, findings: Iterable[Finding]) -> None:
        """Write figures over those of the same name."""
        made = (self.command(table.name), self.commit, hardware())
        rows = [Row(finding, *made) for finding in findings]
        update(self.path(table), rows, table.row_names)

    def findings(self, table: PaperTable) -> list[Finding]:
        """All figures that a table has so far."""
        return [row.finding for row in stored(self.path(table))]
