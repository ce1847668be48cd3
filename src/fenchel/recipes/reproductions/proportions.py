"""Simulated documents with label proportions, and how well linear models find these.

The simulation of Martins & Astudillo (2016), section 4.1. A document has N labels, where N is Poisson
but not 0, and a word is drawn from the mixture of the words of its labels. Where the paper is silent,
the generator is that of `sklearn.datasets.make_multilabel_classification`: the mean of N is 2, and the
frequencies of labels, and of words given a label, are uniform random numbers divided by their sum.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fenchel import plot
from fenchel.recipes.reproductions.config import ReproductionConfig
from fenchel.recipes.reproductions.jobs import Reporter
from fenchel.recipes.reproductions.results import Measurement, read_rows
from fenchel.recipes.reproductions.tables import Experiment, PaperTable, row_name

Array = NDArray[np.float64]
Curves = dict[str, list[tuple[float, Sequence[float]]]]
Mixture = Literal["uniform", "random"]

MEAN_LABELS = 2
PENALTIES = tuple(10.0**exponent for exponent in range(-9, 1))
LOSSES = {
    "softmax": ("SoftmaxClassifierCV", "threshold"),
    "logistic": ("LogisticClassifierCV", "threshold"),
    "sparsemax": ("SparsemaxClassifierCV", "inverse_temperature"),
    "1.5-entmax": ("EntmaxClassifierCV", "inverse_temperature"),
}
DIGITS = 6  # of the errors of single data sets
FIGURES = ("squared error", "JS divergence")


@dataclass(frozen=True)
class Simulation:
    """Documents to train and to test on.

    Attributes:
        labels: Number of labels, and of words.
        length: Mean number of words of a document.
        mixture: "uniform" proportions of the labels of a document, or "random" ones, which are uniformly
            distributed over all proportions.
        train: Number of training documents.
        test: Number of test documents.
    """

    labels: int
    length: int
    mixture: Mixture
    train: int = 1200
    test: int = 1000

    def draw(self, seed: int) -> tuple[Array, Array]:
        """Word counts and label proportions of all documents, those to train on first."""
        rng = np.random.default_rng(seed)
        count = self.train + self.test
        frequencies = rng.uniform(size=self.labels)
        words = rng.uniform(size=(self.labels, self.labels))
        words /= words.sum(1, keepdims=True)
        proportions = np.zeros((count, self.labels))
        for row in proportions:
            number = _positive_poisson(rng, MEAN_LABELS, self.labels)
            chosen = rng.choice(
                self.labels, number, replace=False, p=frequencies / frequencies.sum()
            )
            uniform = self.mixture == "uniform"
            row[chosen] = 1 / number if uniform else rng.dirichlet(np.ones(number))
        lengths = [_positive_poisson(rng, self.length) for _ in range(count)]
        return rng.multinomial(lengths, proportions @ words).astype(float), proportions


def _positive_poisson(rng: np.random.Generator, mean: float, most: float = np.inf) -> int:
    """A Poisson number, drawn again until it is between 1 and `most`."""
    number = 0
    while not 1 <= number <= most:
        number = int(rng.poisson(mean))
    return number


def proportion_errors(simulation: Simulation, loss: str, seed: int) -> tuple[float, float]:
    """The mean ‖q − p‖² and Jensen–Shannon divergence of a model on the test documents.

    The penalty is that with the least ‖q − p‖² in 5-fold cross-validation. Features are the frequencies
    of words, times the number of words, so that their mean is 1.
    """
    from fenchel import sklearn

    counts, q = simulation.draw(seed)
    X = counts / counts.sum(1, keepdims=True) * simulation.labels
    name, rule = LOSSES[loss]
    options: dict[str, Any] = {"alphas": [1.5]} if loss == "1.5-entmax" else {}
    model = getattr(sklearn, name)(
        Cs=[1 / (penalty * simulation.train) for penalty in PENALTIES],
        scoring=_closeness,
        random_state=seed,
        **{rule: 1.0},
        **options,
    )
    train = slice(simulation.train)
    model.fit(X[train], q[train])
    test = slice(simulation.train, None)
    p = model.predict_proba(X[test])
    return squared_error(q[test], p), jensen_shannon(q[test], p)


def _closeness(model: Any, X: Any, q: Array) -> float:
    return -squared_error(q, model.predict_proba(X))


def squared_error(q: Array, p: Array) -> float:
    """The mean of ‖q − p‖² over rows.

    >>> squared_error(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))
    2.0
    """
    return float(((q - p) ** 2).sum(1).mean())


def jensen_shannon(q: Array, p: Array) -> float:
    """The mean of ½ KL(q‖m) + ½ KL(p‖m) over rows, with m = (p + q)/2.

    >>> float(jensen_shannon(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])) / np.log(2))
    1.0
    """
    m = (p + q) / 2
    parts = [np.where(each > 0, each, 1) / np.where(m > 0, m, 1) for each in (q, p)]
    divergences = [(e * np.log(part)).sum(1) for e, part in zip((q, p), parts, strict=True)]
    return float(0.5 * sum(divergences).mean())  # type: ignore[union-attr]


@dataclass(frozen=True, kw_only=True)
class SimulatedTable(PaperTable):
    """Errors of linear models on simulated documents, by the names of the experiments."""

    simulations: Mapping[str, Simulation]

    @property
    def row_names(self) -> tuple[str, ...]:
        """The names of the rows."""
        kinds = [_kind(loss, name) for loss in LOSSES for name in FIGURES]
        return tuple(row_name(each, kind) for each in self.experiments for kind in kinds)


@dataclass(frozen=True)
class SimulationJob:
    """A table of simulations to be measured and drawn.

    Args:
        table: The table.
        experiments: Those of its experiments that are measured.
        seeds: Number of data sets that are drawn for each.
        quick: Whether a few documents are enough, as a test.
        folder: The folder of the results.
    """

    table: SimulatedTable
    experiments: Sequence[Experiment]
    seeds: int
    quick: bool
    folder: Path

    @classmethod
    def of(
        cls, table: SimulatedTable, experiments: Sequence[Experiment], config: ReproductionConfig
    ) -> SimulationJob:
        """The job for some experiments of a table."""
        return cls(table, experiments, config.seeds, config.quick, config.results / table.name)

    def __call__(self, reporter: Reporter) -> list[Measurement]:
        """The errors of all losses: means over data sets, and those of each."""
        found = []
        for experiment in self.experiments:
            for loss in LOSSES:
                found += self._measure(experiment, loss)
            reporter.message(f"{self.table.name}: {experiment.name}")
        self._draw(found)
        return found

    def _measure(self, experiment: Experiment, loss: str) -> list[Measurement]:
        simulation = self.table.simulations[experiment.name]
        if self.quick:
            simulation = replace(simulation, train=60, test=20)
        with warnings.catch_warnings():  # of rare labels without an example, and of early stops
            warnings.simplefilter("ignore", UserWarning)
            errors = [proportion_errors(simulation, loss, seed) for seed in range(self.seeds)]
        return [
            Measurement(
                row_name(experiment, _kind(loss, name)),
                fmean(runs),
                None,
                [round(run, DIGITS) for run in runs],
            )
            for name, runs in zip(FIGURES, zip(*errors, strict=True), strict=True)
        ]

    def _draw(self, measurements: Sequence[Measurement]) -> None:
        """Draw these figures and those measured before."""
        if self.quick:
            return
        known = {each.name: each for each in read_rows(self.folder / "metrics.json")}
        known |= {each.name: each for each in measurements}
        panels: dict[str, Curves] = {}
        for experiment in self.table.experiments:
            simulation = self.table.simulations[experiment.name]
            for loss in LOSSES:
                for name in FIGURES:
                    row = known.get(row_name(experiment, _kind(loss, name)))
                    if row is not None:
                        title = f"{simulation.labels} labels, {simulation.mixture}: {name}"
                        curve = panels.setdefault(title, {}).setdefault(loss, [])
                        curve.append((simulation.length, row.runs))
        figure = plot.courses_with_errors(panels, xlabel="words of a document, on average")
        self.folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(self.folder / "figure.png")


def _kind(loss: str, name: str) -> str:
    return f"{loss}, {name}"
