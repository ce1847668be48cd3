"""What a table of a paper compares: experiments on one data set, and the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Split = Literal["dev", "test"]


@dataclass(frozen=True)
class Measure:
    """One figure of an experiment: which value of an evaluation, on which part of the data."""

    name: str
    key: str
    split: Split = "test"


@dataclass(frozen=True)
class Experiment:
    """One model of a table: the settings that make it, and what the paper measured with them.

    `paper` holds the paper's figures by the name of the measure; those that it does not give are
    missing. `folder` is where the run is kept, shared by all tables that need the same model.
    """

    name: str
    folder: str
    changes: tuple[str, ...]
    paper: Mapping[str, float] = field(default_factory=dict)


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


PaperTable = TrainedTable | TimedTable
