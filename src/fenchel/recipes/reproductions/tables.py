"""What a table of a paper compares: experiments on one data set, with the paper's figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ENSEMBLE = "ensemble"  # the measure of an ensemble of several seeds
ENSEMBLE_KEYS = ("accuracy", "bleu")

# The papers halve the learning rate whenever the validation loss rises. A cosine schedule is used here,
# so that the length of a run is known before it starts.
COSINE_SCHEDULE = ("schedule=cosine", "warmup_steps=200", "clip=1")
TEXT_SCHEDULE = (*COSINE_SCHEDULE, "epochs=20", "validate_every=2")


@dataclass(frozen=True)
class Measure:
    """A metric that a table reports, by its key in the metrics of a run."""

    name: str
    key: str
    split: str = "test"


@dataclass(frozen=True)
class Experiment:
    """A model of a table and the paper's figures for it.

    Args:
        name: Its name in the table.
        folder: The folder of its run, shared by all tables that use the same model.
        overrides: Its settings, `key=value`.
        paper: The paper's figures by the name of the measure. A figure of an ensemble is under
            "ensemble", a training speed under "words", or under "speed" if it is relative.
        dataset: Its data set, if that is not the one of the table.
        options: Options for reading the data set, beside those of the table.
        measures: The names of the measures that count; by default, all those of the table.
    """

    name: str
    folder: str
    overrides: tuple[str, ...]
    paper: Mapping[str, float] = field(default_factory=dict)
    dataset: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    measures: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table or figure of a paper.

    Args:
        name: Its name on the command line, PAPER/TABLE.
        summary: What it compares, in one sentence.
        recipe: The recipe of its models, if they are those of one.
        overrides: Settings of the recipe that all experiments share, `key=value`.
        dataset: The public data set, as named by `fenchel data`.
        options: Options for reading the data set.
        files: Settings that are files in the folder of the data sets: their paths there, of which the
            first that exists is taken.
        experiments: Its experiments.
    """

    name: str
    summary: str
    recipe: str = ""
    overrides: tuple[str, ...] = ()
    dataset: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    experiments: tuple[Experiment, ...]

    @property
    def row_names(self) -> tuple[str, ...]:
        """The names of the rows in order; empty if rows keep the order in which they are written."""
        return ()


@dataclass(frozen=True, kw_only=True)
class TrainedTable(PaperTable):
    """A table of metrics of trained models.

    Args:
        measures: The metrics, the main one first.
        ensembles: Whether several seeds may also be measured as an ensemble.
    """

    measures: tuple[Measure, ...]
    ensembles: bool = True

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that models are evaluated on."""
        return tuple(dict.fromkeys(measure.split for measure in self.measures))

    @property
    def row_names(self) -> tuple[str, ...]:
        """The names of the rows, measure by measure for each experiment."""
        kinds = [measure.name for measure in self.measures]
        kinds += [ENSEMBLE] if self.ensembles else []
        return tuple(row_name(each, kind) for each in self.experiments for kind in kinds)

    @property
    def has_ensembles(self) -> bool:
        """Whether ensembles are measured: the papers report them for some main measures only."""
        return self.ensembles and self.measures[0].key in ENSEMBLE_KEYS


@dataclass(frozen=True, kw_only=True)
class HeadsTable(TrainedTable):
    """Figures of the attention heads of trained models on their development set.

    Args:
        interrogatives: The language of the interrogative words, or these words.
    """

    measures: tuple[Measure, ...] = ()
    ensembles: bool = False
    interrogatives: str = "en"


@dataclass(frozen=True, kw_only=True)
class TimedTable(PaperTable):
    """A table of training speeds, in target words per second.

    Args:
        baselines: Other models of the same size that are timed as well: by name, functions from the
            configuration of the model of the first experiment.
    """

    baselines: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)


def row_name(experiment: Experiment, measure: str) -> str:
    """The name of a row."""
    return f"{experiment.name}: {measure}"
