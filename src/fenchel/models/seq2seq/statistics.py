"""Sums over a batch, kept on the device; reading them is left to who needs the numbers."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Statistics(NamedTuple):
    """Sums that add up over batches and processes; all are scalars on the device of the model.

    >>> one = Statistics(*torch.tensor([6.0, 4.0, 3.0, 8.0, 12.0, 2.0, 1.0]))
    >>> Statistics.of(one.stacked() + one.stacked()).means()["accuracy"]
    0.75
    """

    loss: Tensor  # summed over the tokens
    tokens: Tensor  # of the targets, their ends included
    correct: Tensor  # tokens that are the most probable one
    output_support: Tensor  # tokens of positive probability, summed over the positions
    attention_support: Tensor  # source positions with positive weight, summed over the positions
    sequences: Tensor
    exact: Tensor  # sequences all of whose tokens are the most probable: greedy search is right

    def stacked(self) -> Tensor:
        """The sums as one vector, in which even long sums of counts are exact."""
        exact = torch.float32 if self.loss.device.type == "mps" else torch.float64
        return torch.stack([value.to(exact) for value in self])

    @classmethod
    def of(cls, stacked: Tensor) -> Statistics:
        """The inverse of `stacked`."""
        return cls(*stacked.unbind())

    def means(self) -> dict[str, float]:
        """Means a token and a sequence, read in one transfer."""
        loss, tokens, correct, output, attention, sequences, exact = self.stacked().tolist()
        return {
            "loss": loss / max(tokens, 1),
            "accuracy": correct / max(tokens, 1),
            "exact": exact / max(sequences, 1),
            "output_support": output / max(tokens, 1),
            "attention_support": attention / max(tokens, 1),
        }
