"""One experiment of a table: its runs, and their figures beside the paper's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from fenchel.recipes.figures import Figures
from fenchel.recipes.reproductions.ensemble import Ensemble
from fenchel.recipes.reproductions.job import Job, Measured
from fenchel.recipes.reproductions.rows import Finding
from fenchel.recipes.reproductions.table import (
    ENSEMBLE,
    Experiment,
    Measure,
    TrainedTable,
    row_name,
)

SIGNED = ("bleu", "chrf")
Results = Mapping[Path, Measured]


@dataclass(frozen=True)
class Comparison:
    """One experiment of a table with its runs, one a seed; `name` tells it from those of others."""

    name: str
    table: TrainedTable
    experiment: Experiment
    jobs: tuple[Job, ...]

    def needs(self, job: Job) -> bool:
        """Whether the run is one of this experiment."""
        return any(job.folder == each.folder for each in self.jobs)

    def findings(self, results: Results) -> list[Finding]:
        """The figures of the runs that are done."""
        done = [results[job.folder] for job in self.jobs if job.folder in results]
        found = []
        for measure in self.table.measures:
            figures = [each.figures[measure.split] for each in done]
            found.append(self._finding(measure.name, measure, figures))
        finished = all(each.finished for each in done)
        return [finding._replace(finished=finished) for finding in found]

    def ensemble(self, results: Results) -> Ensemble | None:
        """The runs together, once all of several are done, if the table has a figure for them."""
        folders = tuple(job.folder for job in self.jobs)
        several, done = len(folders) > 1, results.keys() >= set(folders)
        if not (several and done and self.table.has_ensembles):
            return None
        first, split = self.jobs[0], self.table.main.split
        return Ensemble(self.name, folders, first.recipe, first.source, split)

    def ensemble_finding(self, figures: Figures, results: Results) -> Finding:
        """The figure of the runs together."""
        finished = all(results[job.folder].finished for job in self.jobs)
        found = self._finding(ENSEMBLE, self.table.main, [figures])
        return found._replace(runs=(), finished=finished)

    def _finding(self, name: str, measure: Measure, told: Sequence[Figures]) -> Finding:
        runs = tuple(figures[measure.key] for figures in told)
        signature = told[0]["signature"] if measure.key in SIGNED else ""
        paper = self.experiment.paper.get(name)
        return Finding(row_name(self.experiment, name), fmean(runs), paper, runs, signature)
