"""Training jobs, which train or resume a run and evaluate it; and the metrics of ensembles of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from fenchel.errors import FenchelError
from fenchel.recipes.reproductions.config import TableData
from fenchel.recipes.reproductions.results import commit, source_digest
from fenchel.settings import to_json
from fenchel.tasks import load_run
from fenchel.training import DataSource, Recipe, Run, Splits, fit
from fenchel.training.progress import ValidationRecord, validation_line
from fenchel.training.splits import SPLITS
from fenchel.training.task import Metrics

QUICK_EXAMPLES = 24


@dataclass(frozen=True)
class Reporter:
    """Reports messages and validations of jobs.

    Args:
        message: Called with a message.
        progress_bar: Whether validations appear in a progress bar rather than as messages.
    """

    message: Callable[[str], object]
    progress_bar: bool = False


@dataclass(frozen=True)
class RunMetrics:
    """The metrics of a run by split, and whether its training was completed."""

    by_split: dict[str, Metrics]
    finished: bool


@dataclass(frozen=True)
class TrainingJob:
    """A run to be trained and evaluated.

    Args:
        name: The name of the experiment, with the seed if there are several.
        folder: The folder of the run.
        recipe: Its settings.
        source: Its data.
        splits: The splits to evaluate on.
    """

    name: str
    folder: Path
    recipe: Recipe
    source: TableData
    splits: tuple[str, ...]

    def __call__(self, reporter: Reporter) -> RunMetrics:
        """Train or resume the run and evaluate its best weights, even if the time limit was reached."""
        key = _evaluation_key(self.recipe)
        data = read_splits(self.source, self.recipe)
        reporter.message(f"{self.name}: {self.folder}; {', '.join(data.notes)}")

        def on_validation(record: ValidationRecord) -> None:
            line = validation_line(record, self.recipe.task.describe_means)
            reporter.message(f"{self.name}: {line}")

        result = fit(
            self.folder,
            self.recipe,
            data,
            source=DataSource(public=self.source.public),
            on_validation=None if reporter.progress_bar else on_validation,
            progress_bar=reporter.progress_bar,
        )
        if not result.finished:
            epochs = f"{result.history[-1]['epoch']:.0f} of {self.recipe.training.epochs} epochs"
            limit = f"time limit reached after {epochs}; run the command again to resume"
            reporter.message(f"{self.name}: {limit}")
        metrics = {split: _evaluate(result.run, data, split, key) for split in self.splits}
        return RunMetrics(metrics, result.finished)


def _evaluate(run: Run, data: Splits, split: str, key: Metrics) -> Metrics:
    """The metrics on a split, which are stored in the run with the key and reused if it is the same.

    Training removes stored metrics when it finds a better model.
    """
    stored = run.metrics.get(f"{split}_evaluation", {})
    if {name: stored.get(name) for name in key} == key:
        return stored
    metrics = run.task.evaluate(run, data.part(split)).metrics | key
    run.save_metrics(f"{split}_evaluation", metrics)
    return metrics


def ensemble_metrics(
    name: str, jobs: Sequence[TrainingJob], split: str, reporter: Reporter
) -> Metrics:
    """The metrics of an ensemble of trained runs, whose probabilities are averaged."""
    reporter.message(f"{name}: ensemble of {len(jobs)} runs")
    runs = [load_run(job.folder) for job in jobs]
    if any(run.processor.state() != runs[0].processor.state() for run in runs):
        raise FenchelError("all runs of an ensemble must share a vocabulary, got different ones")
    examples = read_splits(jobs[0].source, jobs[0].recipe).part(split)
    return runs[0].task.evaluate_ensemble(runs, examples)


@lru_cache(maxsize=2)
def read_splits(source: TableData, recipe: Recipe) -> Splits:
    """The examples of a data set, as the task of a recipe reads them. The last two are cached."""
    splits = DataSource(public=source.public).splits(recipe)
    parts = {name: getattr(splits, name) for name in SPLITS}
    others = dict(splits.others)
    sizes = ", ".join(f"{len(examples)} {name}" for name, examples in (parts | others).items())
    notes = [f"{source.dataset}: {sizes} examples"]
    if source.quick:
        parts, others = (
            {name: _spread(examples) for name, examples in each.items()} for each in (parts, others)
        )
        notes.append(f"quick: {QUICK_EXAMPLES} of each")
    return Splits(**parts, notes=tuple(notes), others=others)


def _spread(examples: Sequence[Any]) -> Sequence[Any]:
    """A few examples, spread over the split in case it is sorted by label."""
    return examples[:: max(1, len(examples) // QUICK_EXAMPLES)][:QUICK_EXAMPLES]


def _evaluation_key(recipe: Recipe) -> Metrics:
    """The settings and the sources that metrics depend on besides the weights."""
    task = to_json(recipe.task)
    settings = {name: task[name] for name in recipe.task.free_settings}
    return {"settings": settings, "commit": commit(), "sources": source_digest()}
