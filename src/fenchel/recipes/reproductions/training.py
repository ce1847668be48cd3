"""What all tables share: on which occasion they are made, and the recipes of their experiments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fenchel.recipes import Recipe, recipe
from fenchel.recipes.reproductions.table import Experiment, PaperTable

AS_PUBLISHED = ("normalization=none",)
QUICK = (
    "embedding_size=16", "hidden_size=16", "layers=1", "merges=60", "epochs=1", "warmup_steps=0",
    "width=2",
)  # fmt: skip


@dataclass(frozen=True)
class Occasion:
    """Where and how a table is made.

    Args:
        runs: the folder of the runs; what is there already is not trained again.
        changes: settings over those of the table.
        quick: tiny models on a few examples, to see that everything works.
    """

    runs: Path
    changes: tuple[str, ...] = ()
    quick: bool = False

    def folder(self, experiment: Experiment, seed: int) -> Path:
        """Where a run is kept; the one of seed 0 has the plain name."""
        inside = self.runs / ("quick" if self.quick else "")
        return inside / (experiment.folder + (f"-seed{seed}" if seed else ""))


def configured(table: PaperTable, experiment: Experiment, occasion: Occasion) -> Recipe:
    """The recipe of an experiment, its own settings over the table's and the occasion's over both."""
    quick = QUICK if occasion.quick else ()
    changes = [*AS_PUBLISHED, *table.changes, *experiment.changes, *quick, *occasion.changes]
    return recipe(table.recipe, changes)
