"""A linear model of the labels of an example: their proportions, and the set of those that it has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fenchel.checks import check_count
from fenchel.linear.links import EntmaxLink, Link, LogisticLink
from fenchel.losses.functional import entmax_loss
from fenchel.models.means import Mean, Means

LabelLoss = Literal["softmax", "logistic", "entmax", "sparsemax"]
BY_THRESHOLD = ("softmax", "logistic")  # the others have the labels of their support


class LabelBatch(NamedTuple):
    """Features (B, D) and targets (B, K), 1 for the labels of an example, in float64."""

    features: Tensor
    targets: Tensor


@dataclass(frozen=True)
class LinearLabelsConfig:
    """Settings of a `LinearLabels`."""

    feature_count: int = field(default=1, metadata={"derived": True})
    """Number of features."""
    label_count: int = field(default=2, metadata={"derived": True})
    """Number of labels."""
    loss: LabelLoss = "sparsemax"
    """Loss: "sparsemax", "entmax" (with α between softmax and sparsemax), "softmax", or "logistic", which
    has an independent probability for every label."""

    def __post_init__(self) -> None:
        check_count(self.feature_count, "feature_count")
        check_count(self.label_count, "label_count", least=2)


@final
class LinearLabels(nn.Module):
    """Scores W x + b, with the rule that makes proportions and sets of them.

    The rule is a threshold of the probabilities or, for sparse losses, the number with which scores are
    multiplied before their support is taken.

    >>> model = LinearLabels(LinearLabelsConfig(feature_count=3, label_count=2))
    >>> model.proportions(torch.tensor([[0.2, -0.4], [2.0, 0.0]], dtype=torch.float64))
    tensor([[0.8000, 0.2000],
            [1.0000, 0.0000]], dtype=torch.float64)
    """

    rule: Tensor
    alpha: Tensor

    def __init__(self, config: LinearLabelsConfig) -> None:
        super().__init__()
        self.config = config
        self.output = nn.Linear(config.feature_count, config.label_count, dtype=torch.float64)
        self.register_buffer("rule", torch.tensor(1.0, dtype=torch.float64))
        self.register_buffer("alpha", torch.tensor(2.0, dtype=torch.float64))

    @property
    def link(self) -> Link:
        """The map from scores to proportions."""
        return LogisticLink() if self.config.loss == "logistic" else EntmaxLink(self._alpha)

    @property
    def _alpha(self) -> float:
        fixed = {"softmax": 1.0, "sparsemax": 2.0}
        return fixed.get(self.config.loss, float(self.alpha))

    def proportions(self, scores: Tensor) -> Tensor:
        """The proportions of the labels, or their independent probabilities."""
        return self.link.probabilities(scores)

    def sets(self, scores: Tensor) -> Tensor:
        """Whether an example has a label, (B, K)."""
        if self.config.loss in BY_THRESHOLD:
            return self.proportions(scores) > self.rule
        return self.proportions(self.rule * scores) > 0

    def loss(self, batch: LabelBatch, *, describe: bool = True) -> Means:
        """The mean loss per example and, if wanted, F1 over all pairs of an example and a label.

        Examples without a label count only in the logistic loss and in F1.
        """
        scores = self.output(batch.features)
        counts = batch.targets.sum(1, keepdim=True)
        if self.config.loss == "logistic":
            total = F.binary_cross_entropy_with_logits(scores, batch.targets, reduction="sum")
            count = torch.tensor(len(scores))
        else:
            labelled = counts[:, 0] > 0
            uniform = batch.targets[labelled] / counts[labelled]
            total = entmax_loss(scores[labelled], uniform, self._alpha, reduction="sum")
            count = labelled.sum()
        means = {"loss": Mean(total, count)}
        if describe:
            sets = self.sets(scores)
            hits = (sets * batch.targets).sum()
            means["f1_micro"] = Mean(2 * hits, sets.sum() + counts.sum())
        return means
