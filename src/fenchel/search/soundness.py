"""Checks that a model returns probabilities, and how they are counted.

The bound of a search rests on one fact: no sequence is more probable than its prefixes. It holds if
no probability is above 1, whatever the rows sum to. So an entry that rounding left outside [0, 1]
counts as 0 or 1, in every row, also in those that a search never asks for. What rounding does not
explain is refused where it is seen.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.errors import rule

SUM = 0.02  # how much the sum of a row in half precision may exceed 1
ENTRY = 1e-4  # how far an entry computed in float32 may lie outside [0, 1]


class Soundness:
    """Collects the rows of probabilities that a search reads, and checks them when asked.

    Entries must be in [0, 1], and a row must not sum to more than 1, both up to rounding. A sum may
    be below 1, where a model forbids some tokens. The collected numbers stay on the device: only
    `check` makes the host wait.

    >>> sound = Soundness(torch.device("cpu"))
    >>> rows = torch.tensor([[0.5, 0.5, 0.0], [2.0, -1.0, 0.0]])
    >>> sound.look(summarize(rows), idle=torch.tensor([False, True]))
    >>> sound.check()
    """

    def __init__(self, device: torch.device) -> None:
        self._valid = torch.tensor([[1.0, 0.0, 1.0]], device=device)
        self._seen = [self._valid]

    def look(self, summaries: Tensor, idle: Tensor) -> None:
        """Take rows with these summaries into account, except for the `idle` ones: not in use."""
        used = torch.where(idle.unsqueeze(-1), self._valid, summaries)
        self._seen.append(used.reshape(-1, 3))

    def check(self) -> None:
        """Raise if a row was no distribution."""
        sums, least, most = torch.cat(self._seen).unbind(-1)
        total, low, high = torch.stack((sums.amax(), least.amin(), most.amax())).tolist()
        del self._seen[1:]
        if total <= 1 + SUM and low >= -ENTRY and high <= 1 + ENTRY:
            return
        if total != total:
            got = "a row with NaN"
        elif low >= -ENTRY and high <= 1 + ENTRY:
            got = f"a row with sum {total:.6g}"
        else:
            got = f"an entry of {low if low < -ENTRY else high:.6g}"
        expected = "entries from 0 to 1, and rows that sum to at most 1"
        raise rule("a stepper must return probabilities", expected=expected, got=got)


def summarize(probabilities: Tensor, largest: Tensor | None = None) -> Tensor:
    """The sum, the smallest and the largest entry of each row (…, V), as (…, 3).

    `largest` is the largest entry, if it is known already.

    >>> summarize(torch.tensor([[0.5, 0.5, 0.0], [0.25, 0.5, 0.0]]))
    tensor([[1.0000, 0.0000, 0.5000],
            [0.7500, 0.0000, 0.5000]])
    """
    most = probabilities.amax(-1) if largest is None else largest
    return torch.stack((probabilities.sum(-1), probabilities.amin(-1), most), -1)


def bounded(probabilities: Tensor) -> Tensor:
    """The probabilities as every search counts them, in float64: an entry above 1 is 1.

    NaN is 0 here, so that idle rows have no effect; in a row in use it is refused.

    >>> bounded(torch.tensor([1.00001, -0.00001, float("nan")])).tolist()
    [1.0, 0.0, 0.0]
    """
    return probabilities.double().nan_to_num().clamp(0, 1)
