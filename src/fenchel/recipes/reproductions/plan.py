"""The experiments of some tables as runs to be made, each once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fenchel.errors import rule
from fenchel.recipes.reproductions.comparison import Comparison
from fenchel.recipes.reproductions.job import Job
from fenchel.recipes.reproductions.source import Source
from fenchel.recipes.reproductions.table import Experiment, TrainedTable
from fenchel.recipes.reproductions.training import Occasion, configured

Chosen = Sequence[tuple[TrainedTable, Sequence[Experiment]]]


def planned(chosen: Chosen, data: Path, occasion: Occasion, seeds: int) -> list[Comparison]:
    """The chosen experiments, each with a run for every seed; the sets lie somewhere in `data`."""
    made = []
    for table, experiments in chosen:
        source = Source.of(table, data, quick=occasion.quick)
        for experiment in experiments:
            name = experiment.name if len(chosen) == 1 else f"{table.name}, {experiment.name}"
            jobs = _jobs(name, table, experiment, source, occasion, seeds)
            made.append(Comparison(name, table, experiment, tuple(jobs)))
    return made


def all_jobs(made: Sequence[Comparison]) -> list[Job]:
    """Every run once, however many experiments need it; those of the first seed come first."""
    rounds = max((len(each.jobs) for each in made), default=0)
    known: dict[Path, Job] = {}
    for turn in range(rounds):
        for each in made:
            job = each.jobs[turn]
            known[job.folder] = _merged(known.get(job.folder, job), job)
    return list(known.values())


def _jobs(
    name: str,
    table: TrainedTable,
    experiment: Experiment,
    source: Source,
    occasion: Occasion,
    seeds: int,
) -> list[Job]:
    made = configured(table, experiment, occasion)
    result = []
    for seed in range(made.training.seed, made.training.seed + seeds):
        recipe = replace(made, training=replace(made.training, seed=seed))
        named = f"{name}, seed {seed}" if seeds > 1 else name
        folder = occasion.folder(experiment, seed)
        result.append(Job(named, folder, recipe, source, table.splits))
    return result


def _merged(one: Job, other: Job) -> Job:
    """Two jobs for one folder: the same run, measured with what both ask for."""
    if (one.recipe, one.source) != (other.recipe, other.source):
        expected, got = f"the settings of {one.name}", other.name
        raise rule(f"{one.folder} holds one model", expected=expected, got=got)
    return replace(one, splits=tuple(dict.fromkeys((*one.splits, *other.splits))))
