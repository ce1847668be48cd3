"""Whether a model returns probabilities: what is proven from anything else would be false."""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.errors import rule

TOLERANCE = 0.02  # what half precision may add to a sum


class Soundness:
    """Looks at every row of probabilities, and tells when asked.

    A row has no negative entry and no NaN, and its sum is not above 1; it may be below, where a
    model forbids some tokens. What was seen is kept on the device: looking does not make the host
    wait.

    >>> sound = Soundness(torch.device("cpu"))
    >>> rows = torch.tensor([[0.5, 0.5, 0.0], [2.0, -1.0, 0.0]])
    >>> sound.look(totals(rows), idle=torch.tensor([False, True]))
    >>> sound.check()
    """

    def __init__(self, device: torch.device) -> None:
        self._seen = [torch.ones(1, device=device)]

    def look(self, totals: Tensor, idle: Tensor) -> None:
        """Take the rows with these totals into account, but not those that are `idle`: not in use."""
        self._seen.append(totals.masked_fill(idle, 1).flatten())

    def check(self) -> None:
        """Raise if a row was no distribution."""
        worst = float(torch.cat(self._seen).amax()) - 1
        del self._seen[1:]
        if not worst <= TOLERANCE:
            raise rule(
                "a stepper returns probabilities",
                expected="numbers from 0 to 1 that sum to 1",
                got="a row with NaN"
                if worst != worst
                else f"a row that misses this by {worst:.3g}",
            )


def totals(probabilities: Tensor) -> Tensor:
    """The sums of rows (…, V), or more: 1 less the least entry, which says how negative that is.

    >>> totals(torch.tensor([[0.5, 0.5, 0.0], [0.9, -0.5, 0.6], [0.25, 0.5, 0.0]]))
    tensor([1.0000, 1.5000, 1.0000])
    """
    return torch.maximum(probabilities.sum(-1), 1 - probabilities.amin(-1))
