"""Tables of trained models: train or go on, measure, one row a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fenchel.data import read_official
from fenchel.recipes import Recipe, recipe
from fenchel.recipes.figures import figures_of
from fenchel.recipes.reading import Splits
from fenchel.recipes.reproductions.table import Experiment, PaperTable, TrainedTable
from fenchel.recipes.running import Trained, learn
from fenchel.training.progress import Record

Figure = tuple[str, float, float | None]  # name, ours, the paper's
QUICK = ("embedding_size=16", "hidden_size=16", "layers=1", "merges=60", "epochs=1", "width=2")
QUICK_EXAMPLES = 24


@dataclass(frozen=True)
class Occasion:
    """Where and how a table is made.

    Args:
        runs: the folder of the runs; what is there already is not trained again.
        changes: settings over those of the table.
        quick: tiny models on a few examples, to see that everything works.
        say: called with a sentence when something begins.
        report: called with the record of every validation.
    """

    runs: Path
    changes: tuple[str, ...] = ()
    quick: bool = False
    say: Callable[[str], object] = lambda sentence: None
    report: Callable[[Record], None] | None = None


def configured(table: PaperTable, experiment: Experiment, occasion: Occasion) -> Recipe:
    """The recipe of an experiment, its own settings over the table's and the occasion's over both."""
    quick = QUICK if occasion.quick else ()
    return recipe(table.recipe, [*table.changes, *experiment.changes, *quick, *occasion.changes])


def loaded(table: PaperTable, folder: Path, occasion: Occasion) -> Splits:
    """The table's data; a few examples of each part where it is quick."""
    parts = read_official(table.dataset, folder, **table.options)
    sizes = ", ".join(f"{len(examples)} {split}" for split, examples in parts.items())
    notes = [f"{table.dataset}: {sizes} examples"]
    if occasion.quick:
        parts = {split: examples[:QUICK_EXAMPLES] for split, examples in parts.items()}
        notes.append(f"quick: {QUICK_EXAMPLES} of each")
    return Splits(**parts, notes=tuple(notes))


def trained_figures(
    table: TrainedTable, experiments: Sequence[Experiment], data: Splits, occasion: Occasion
) -> Iterator[tuple[Experiment, list[Figure]]]:
    """The figures of one experiment after the other; a run that was stopped goes on."""
    for experiment in experiments:
        made = configured(table, experiment, occasion)
        folder = occasion.runs / ("quick" if occasion.quick else "") / experiment.folder
        occasion.say(f"{experiment.name}: {folder}")
        result = learn(made, data, folder, report=occasion.report)
        if not result.finished:
            occasion.say(f"{experiment.name}: time ran out; the same command goes on")
            continue
        trained = Trained.load(folder)
        splits = dict.fromkeys(measure.split for measure in table.measures)
        found = {split: figures_of(trained, getattr(data, split))[0] for split in splits}
        yield (
            experiment,
            [
                (
                    f"{experiment.name}: {measure.name}",
                    found[measure.split][measure.key],
                    experiment.paper.get(measure.name),
                )
                for measure in table.measures
            ],
        )
