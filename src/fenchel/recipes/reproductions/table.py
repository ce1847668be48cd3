"""What a table of a paper compares: experiments on one data set, and the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Split = Literal["dev", "test"]
ENSEMBLE = "ensemble"  # of the runs of several seeds: a figure beside those of the measures
ENSEMBLED = ("accuracy", "bleu")


@dataclass(frozen=True)
class Measure:
    """One figure of an experiment: which value of an evaluation, on which part of the data."""

    name: str
    key: str
    split: Split = "test"


@dataclass(frozen=True)
class Experiment:
    """One model of a table: the settings that make it, and what the paper measured with them.

    `paper` holds the paper's figures by the name of the measure, and under "ensemble" the main one of
    several models together; those that it does not give are missing. `folder` is where the run is
    kept, shared by all tables that need the same model.
    """

    name: str
    folder: str
    changes: tuple[str, ...]
    paper: Mapping[str, float] = field(default_factory=dict)


def row_name(experiment: Experiment, kind: str) -> str:
    """The name of a figure: whose it is, and what it says."""
    return f"{experiment.name}: {kind}"


@dataclass(frozen=True)
class TrainedTable:
    """A table whose rows are trained models.

    Args:
        name: as `fenchel reproduce` calls it, PAPER/TABLE.
        summary: what it compares, in one sentence.
        recipe, changes: the settings that all experiments share.
        dataset, options: the public set, as `fenchel data` calls it, and how it is read.
    """

    name: str
    summary: str
    recipe: str
    changes: tuple[str, ...]
    dataset: str
    measures: tuple[Measure, ...]
    experiments: tuple[Experiment, ...]
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def splits(self) -> tuple[Split, ...]:
        """The parts of the data that models are measured with."""
        return tuple(dict.fromkeys(measure.split for measure in self.measures))

    @property
    def row_names(self) -> tuple[str, ...]:
        """What the rows are called, in the order of the table."""
        kinds = [*(measure.name for measure in self.measures), ENSEMBLE]
        return tuple(row_name(each, kind) for each in self.experiments for kind in kinds)

    @property
    def main(self) -> Measure:
        """The measure that comes first."""
        return self.measures[0]

    @property
    def has_ensembles(self) -> bool:
        """Whether the main measure is one that the papers give for ensembles."""
        return self.main.key in ENSEMBLED


@dataclass(frozen=True)
class TimedTable:
    """A table whose rows are training speeds, taken in turns; `paper` is in words a second."""

    name: str
    summary: str
    recipe: str
    changes: tuple[str, ...]
    dataset: str
    experiments: tuple[Experiment, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    row_names: tuple[str, ...] = ()  # rows stay in the order in which they come


PaperTable = TrainedTable | TimedTable
