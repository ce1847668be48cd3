"""What a beam reads of the rows of probabilities: everything at once, since the rows are long."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from fenchel.search.largest import largest
from fenchel.search.soundness import summarize

PART = 2**21  # entries: what the cache of a CPU holds


class Candidates(NamedTuple):
    """The continuations of prefixes (B, K) that can be among the best K + 1 of a sentence.

    They are the K + 2 best of every prefix, one of which may be `eos`. Continuations by `eos` are
    no prefixes, and stand before them.

    >>> candidates = Candidates.of(torch.tensor([[[0.0, 0.1, 0.4, 0.3, 0.2]]]), eos=2)
    >>> candidates.probabilities, candidates.tokens
    (tensor([[[0.4000, 0.4000, 0.3000, 0.2000]]]), tensor([[[2, 3, 4]]]))
    """

    probabilities: Tensor  # (B, K, 1 + C) of `eos`, then of the best
    tokens: Tensor  # (B, K, C) the best
    summaries: Tensor  # (B, K, 3) the sum, the smallest and the largest entry of each row

    @classmethod
    def of(cls, probabilities: Tensor, eos: int) -> Candidates:
        """The candidates of rows (B, K, V).

        The rows are read for the largest entries, the sum and the smallest entry. On a CPU that is
        done part by part, so that memory is read once and the cache after that.
        """
        _, width, size = probabilities.shape
        read = partial(_read, eos=eos, count=min(width + 2, size))
        if probabilities.device.type != "cpu" or probabilities.numel() <= PART:
            return cls(*read(probabilities))
        parts = map(read, probabilities.split(max(1, PART // (width * size))))
        return cls(*map(torch.cat, zip(*parts, strict=True)))


def _read(probabilities: Tensor, eos: int, count: int) -> tuple[Tensor, ...]:
    best, tokens = largest(probabilities, count)
    both = torch.cat((probabilities[..., eos : eos + 1], best), -1)
    return both, tokens, summarize(probabilities, largest=best[..., 0])
