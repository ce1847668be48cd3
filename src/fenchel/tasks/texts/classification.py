"""Predictions of a classifier of texts: labels by probability, and what was attended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fenchel.continuous.mixture import Mixture
from fenchel.data.batches import LengthBuckets
from fenchel.data.texts import LabelledText
from fenchel.maps.entmax import entmax
from fenchel.models.means import read_means, stack_means
from fenchel.models.text_classifier import Attended
from fenchel.operators.layout import at_least_float32
from fenchel.training.device import best_device
from fenchel.training.run import Run
from fenchel.training.task import OnProgress

BATCH_SIZE = 256


class Classification(NamedTuple):
    """Labels by probability, without those of probability zero, and what was attended.

    Attributes:
        labels: The probability of each label, the largest first.
        words: The words of the text that is attended to, the first of an example.
        weights: The weight of every word; None without attention.
        density: The density of continuous attention over the text.
    """

    labels: dict[str, float]
    words: list[str]
    weights: list[float] | None
    density: Mixture | None = None

    @property
    def best(self) -> str:
        return next(iter(self.labels))

    @property
    def caption(self) -> str:
        return ", ".join(f"{label} {100 * value:.1f} %" for label, value in self.labels.items())

    @property
    def attended(self) -> list[tuple[str, float]]:
        """The words with their weights; none without attention."""
        return [] if self.weights is None else list(zip(self.words, self.weights, strict=True))


def classify(
    run: Run, examples: Sequence[LabelledText], progress: OnProgress | None = None
) -> list[Classification]:
    """The predictions of a run's model, in the order of the examples."""
    return _classify(run, [example._replace(label=None) for example in examples], progress)[0]


def classify_and_measure(
    run: Run, examples: Sequence[LabelledText], progress: OnProgress | None = None
) -> tuple[list[Classification], dict[str, float]]:
    """The predictions, and the means of the model's validation metrics."""
    return _classify(run, examples, progress)


def _classify(
    run: Run, examples: Sequence[LabelledText], progress: OnProgress | None
) -> tuple[list[Classification], dict[str, float]]:
    processor: Any = run.processor
    model: Any = run.model.to(best_device()).eval()
    data = processor.encode(examples).to(best_device())
    found: dict[int, Classification] = {}
    names, total = [], torch.zeros(())
    for index in LengthBuckets(data, BATCH_SIZE, shuffle=False).batches():
        batch = data.batch(index)
        with torch.no_grad():
            scores, attended = model(*batch.inputs)
            means = model.means(scores, attended, batch)
            probabilities = entmax(at_least_float32(scores), model.config.output_alpha)
        names, total = list(means), total + stack_means(means).cpu()
        for place, each in zip(index.tolist(), _rows(probabilities, attended), strict=True):
            found[place] = _classification(processor, examples[place], *each)
        if progress is not None:
            progress(len(index))
    return [found[place] for place in range(len(examples))], read_means(names, total)


def _rows(
    probabilities: Tensor, attended: Attended
) -> Iterator[tuple[list[float], list[float] | None, Mixture | None]]:
    """The predictions of a batch one by one."""
    weights = None if attended.weights is None else attended.weights.tolist()
    density = None if attended.density is None else Mixture(*(p.cpu() for p in attended.density))
    for row, probability in enumerate(probabilities.tolist()):
        yield (
            probability,
            None if weights is None else weights[row],
            None if density is None else density.at(row),
        )


def _classification(
    processor: Any,
    example: LabelledText,
    probability: list[float],
    weights: list[float] | None,
    density: Mixture | None,
) -> Classification:
    ranked = sorted(zip(processor.labels, probability, strict=True), key=lambda pair: -pair[1])
    labels = {label: value for label, value in ranked if value > 0}
    words = processor.words(example.texts[0])
    return Classification(
        labels, words, None if weights is None else weights[: len(words)], density
    )
