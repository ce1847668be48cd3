"""The linear model of labels makes proportions and sets of its scores."""

from __future__ import annotations

import pytest
import torch

import fenchel
from fenchel.models.labels import LabelBatch, LinearLabels, LinearLabelsConfig
from fenchel.models.means import read_means, stack_means

LOSSES = ("softmax", "logistic", "entmax", "sparsemax")


def make(loss: str, rule: float = 1.0) -> LinearLabels:
    torch.manual_seed(0)
    model = LinearLabels(LinearLabelsConfig(feature_count=3, label_count=4, loss=loss))
    model.rule.fill_(rule)
    model.alpha.fill_(1.5)
    return model


def draw() -> LabelBatch:
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(6, 3, generator=generator, dtype=torch.float64)
    targets = (torch.rand(6, 4, generator=generator) < 0.5).double()
    targets[:, 0] = 1
    return LabelBatch(features, targets)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_loss_is_the_mean_of_the_losses_of_examples(loss):
    model, batch = make(loss), draw()
    scores = model.output(batch.features)
    q = batch.targets / batch.targets.sum(1, keepdim=True)
    expected = {
        "softmax": lambda: fenchel.entmax_loss(scores, q, 1.0),
        "sparsemax": lambda: fenchel.sparsemax_loss(scores, q),
        "entmax": lambda: fenchel.entmax_loss(scores, q, 1.5),
        "logistic": lambda: (
            -(
                batch.targets * scores.sigmoid().log()
                + (1 - batch.targets) * (-scores).sigmoid().log()
            )
            .sum(1)
            .mean()
        ),
    }[loss]()
    means = model.loss(batch)
    assert read_means(list(means), stack_means(means))["loss"] == pytest.approx(expected.item())


@pytest.mark.parametrize("loss", LOSSES)
def test_sets_follow_the_rule(loss):
    model, batch = make(loss, rule=0.3), draw()
    scores = model.output(batch.features)
    if loss in ("softmax", "logistic"):
        expected = model.proportions(scores) > 0.3
    else:
        expected = fenchel.entmax(0.3 * scores, 2.0 if loss == "sparsemax" else 1.5) > 0
    assert torch.equal(model.sets(scores), expected)


def test_f1_counts_pairs_of_an_example_and_a_label():
    model, batch = make("softmax", rule=0.25), draw()
    sets = model.sets(model.output(batch.features))
    hits = (sets & (batch.targets > 0)).sum()
    means = model.loss(batch)
    f1 = read_means(list(means), stack_means(means))["f1_micro"]
    assert f1 == pytest.approx(float(2 * hits / (sets.sum() + batch.targets.sum())))


def test_examples_without_labels_count_in_the_logistic_loss_alone():
    batch = draw()
    without = LabelBatch(batch.features, torch.cat([batch.targets[:5], torch.zeros(1, 4)]))
    for loss in LOSSES:
        assert make(loss).loss(without)["loss"].count == (6 if loss == "logistic" else 5)
