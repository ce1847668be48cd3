"""How many source positions a model attends to, and how many tokens it considers, by position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fenchel.data import LengthBuckets
from fenchel.report.blocks import Series
from fenchel.tasks.sequences.codec import Codec
from fenchel.tasks.sequences.decoding import SequenceModel
from fenchel.tasks.sequences.encoded import SequencePairs
from fenchel.tasks.sequences.example import Example

FEWEST = 5  # a mean over fewer examples says little


@dataclass(frozen=True)
class Supports:
    """Mean numbers of non-zeros at the 1st, 2nd, … target position.

    `counts` says how many examples reach a position.
    """

    attention: list[float]
    output: list[float]
    counts: list[int]

    def series(self, name: str) -> Series:
        """The means of "attention" or "output" where enough examples have the position."""
        means = getattr(self, name)
        return [
            (place, mean)
            for place, (mean, count) in enumerate(zip(means, self.counts, strict=True), start=1)
            if count >= FEWEST or count == self.counts[0]
        ]


@torch.no_grad()
def supports(
    model: SequenceModel, codec: Codec, examples: Sequence[Example], batch: int = 64
) -> Supports:
    """The supports while the right answers are given (teacher forcing)."""
    data = SequencePairs.of(examples, codec)
    longest = int(data.target.lengths.max())
    sums = torch.zeros(3, longest, dtype=torch.float64)
    device = next(model.parameters()).device
    for index in LengthBuckets(data, batch, shuffle=False).batches():
        each = data.batch(index)
        seen = model.attend(each.source.to(device), each.source_lengths, each.target.to(device))
        valid = seen.valid.double()
        parts = (seen.attention_support * valid, seen.output_support * valid, valid)
        sums[:, : valid.shape[1]] += torch.stack([part.sum(0).double().cpu() for part in parts])
    attention, output, counts = sums
    return Supports(
        (attention / counts).tolist(), (output / counts).tolist(), [int(n) for n in counts]
    )
