"""The plan of a reproduction: training jobs, each run once for all tables, then speed measurements."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from fenchel.errors import FenchelError
from fenchel.recipes.reproductions.config import ReproductionConfig, TableData
from fenchel.recipes.reproductions.heads import HeadsJob
from fenchel.recipes.reproductions.jobs import (
    Reporter,
    RunMetrics,
    TrainingJob,
    ensemble_metrics,
)
from fenchel.recipes.reproductions.process_pool import Failure, ProcessPool, attempt
from fenchel.recipes.reproductions.proportions import SimulatedTable, SimulationJob
from fenchel.recipes.reproductions.results import Measurement
from fenchel.recipes.reproductions.tables import (
    ENSEMBLE,
    Experiment,
    HeadsTable,
    Measure,
    PaperTable,
    TimedTable,
    TrainedTable,
    row_name,
)
from fenchel.recipes.reproductions.throughput import ThroughputJob

SIGNED = ("bleu", "chrf")  # the metrics that the signature describes
Selection = Sequence[tuple[PaperTable, Sequence[Experiment]]]
Metrics = Mapping[Path, RunMetrics]


@dataclass(frozen=True)
class ExperimentRuns:
    """An experiment of a table with its training jobs, one per seed."""

    name: str
    table: TrainedTable
    experiment: Experiment
    jobs: tuple[TrainingJob, ...]

    def uses(self, job: TrainingJob) -> bool:
        """Whether the job is one of this experiment, perhaps planned for another table."""
        return any(job.folder == each.folder for each in self.jobs)

    def measurements(self, metrics: Metrics) -> list[Measurement]:
        """The figures of the runs that have been evaluated."""
        evaluated = [metrics[job.folder] for job in self.jobs if job.folder in metrics]
        finished = all(run.finished for run in evaluated)
        parts = {
            measure: [run.by_split[measure.split] for run in evaluated]
            for measure in self.table.measures
        }
        return [
            self._measurement(measure.name, measure, figures, finished)
            for measure, figures in parts.items()
            if all(measure.key in each for each in figures)  # not every model has every metric
            and measure.name in (self.experiment.measures or (measure.name,))
        ]

    def has_ensemble(self, metrics: Metrics) -> bool:
        """Whether an ensemble can now be measured, and the table has a figure for it."""
        complete = all(job.folder in metrics for job in self.jobs)
        return complete and len(self.jobs) > 1 and self.table.has_ensembles

    def evaluate_ensemble(self, reporter: Reporter) -> dict[str, Any]:
        """The metrics of the ensemble on the split of the main measure."""
        return ensemble_metrics(self.name, self.jobs, self.table.measures[0].split, reporter)

    def ensemble_measurement(self, figures: dict[str, Any], metrics: Metrics) -> Measurement:
        """The figure of the ensemble."""
        finished = all(metrics[job.folder].finished for job in self.jobs)
        measurement = self._measurement(ENSEMBLE, self.table.measures[0], [figures], finished)
        return replace(measurement, runs=[])

    def _measurement(
        self, name: str, measure: Measure, figures: Sequence[dict[str, Any]], finished: bool
    ) -> Measurement:
        runs = [each[measure.key] for each in figures]
        return Measurement(
            row_name(self.experiment, name),
            ours=fmean(runs),
            paper=self.experiment.paper.get(name),
            runs=runs,
            signature=figures[0]["signature"] if measure.key in SIGNED else "",
            finished=finished,
        )


@dataclass(frozen=True)
class Plan:
    """The experiments of trained models, and then the jobs of figures and of tables of speeds."""

    experiments: list[ExperimentRuns]
    jobs: list[HeadsJob | ThroughputJob | SimulationJob]


@dataclass(frozen=True)
class FailedJob:
    """The name of a job and its failure."""

    name: str
    failure: Failure


def make_plan(selection: Selection, config: ReproductionConfig) -> Plan:
    """Plan the selected experiments. Invalid settings and missing data sets are errors."""
    trained = [(table, some) for table, some in selection if isinstance(table, TrainedTable)]
    timed = [(table, some) for table, some in selection if isinstance(table, TimedTable)]
    jobs: list[HeadsJob | ThroughputJob | SimulationJob] = [
        HeadsJob.of(table, experiments, config)
        for table, experiments in trained
        if isinstance(table, HeadsTable)
    ]
    jobs += [ThroughputJob.of(table, experiments, config) for table, experiments in timed]
    jobs += [
        SimulationJob.of(table, experiments, config)
        for table, experiments in selection
        if isinstance(table, SimulatedTable)
    ]
    runs = []
    for table, experiments in trained:
        for experiment in experiments:
            source = config.table_data(table, experiment)
            name = experiment.name if len(trained) == 1 else f"{table.name}, {experiment.name}"
            own = _jobs(name, table, experiment, source, config)
            runs.append(ExperimentRuns(name, table, experiment, own))
    return Plan(runs, jobs)


def run_plan(
    plan: Plan, processes: int, reporter: Reporter
) -> Generator[tuple[PaperTable, list[Measurement]] | FailedJob, None, None]:
    """Yield measurements as soon as a run is evaluated, updated after every seed, and failures.

    Args:
        plan: The plan.
        processes: Number of runs trained in parallel; one is trained in this process.
        reporter: Callbacks, which must be picklable if there are several processes.
    """
    metrics: dict[Path, RunMetrics] = {}
    with ProcessPool[TrainingJob | ExperimentRuns](processes) as pool:
        for job in unique_jobs(plan.experiments):
            pool.add(job, partial(job, reporter))
        for key, outcome in pool.outcomes():
            if isinstance(outcome, Failure):
                yield FailedJob(key.name, outcome)
            elif isinstance(key, ExperimentRuns):
                yield key.table, [key.ensemble_measurement(outcome, metrics)]
            else:
                metrics[key.folder] = outcome
                for each in plan.experiments:
                    if each.uses(key):
                        yield each.table, each.measurements(metrics)
                        if each.has_ensemble(metrics):
                            pool.add(each, partial(each.evaluate_ensemble, reporter))
    for job in plan.jobs:  # after training, which would slow down what is timed
        outcome = attempt(partial(job, reporter))
        if isinstance(outcome, Failure):
            yield FailedJob(job.table.name, outcome)
        else:
            yield job.table, outcome


def unique_jobs(experiments: Sequence[ExperimentRuns]) -> list[TrainingJob]:
    """Every job once, even if several experiments use it; those of the first seed come first."""
    seeds = max((len(each.jobs) for each in experiments), default=0)
    unique: dict[Path, TrainingJob] = {}
    for seed in range(seeds):
        for each in experiments:
            job = each.jobs[seed]
            unique[job.folder] = _merged(unique.get(job.folder, job), job)
    return list(unique.values())


def _jobs(
    name: str,
    table: TrainedTable,
    experiment: Experiment,
    source: TableData,
    config: ReproductionConfig,
) -> tuple[TrainingJob, ...]:
    recipe = config.recipe(table, experiment, config.table_files(table))
    first = recipe.training.seed
    return tuple(
        TrainingJob(
            f"{name}, seed {seed}" if config.seeds > 1 else name,
            config.run_folder(experiment, seed),
            replace(recipe, training=replace(recipe.training, seed=seed)),
            source,
            table.splits,
        )
        for seed in range(first, first + config.seeds)
    )


def _merged(one: TrainingJob, other: TrainingJob) -> TrainingJob:
    """One job that evaluates on the splits of both, which must be the same run."""
    if (one.recipe, one.source) != (other.recipe, other.source):
        rule = f"experiments that share {one.folder} must have the same settings and data"
        raise FenchelError(f"{rule}, got different ones in {one.name} and {other.name}")
    return replace(one, splits=tuple(dict.fromkeys((*one.splits, *other.splits))))
