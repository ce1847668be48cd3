"""Whether a model returns probabilities: what is proven from anything else would be false."""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.errors import rule

TOLERANCE = 0.02  # what half precision may add to a sum


class Soundness:
    """Looks at every row of probabilities, and tells when asked.

    A row has no negative entry and no NaN, and its sum is not above 1; it may be below, where a
    model forbids some tokens. The worst is kept on the device: looking does not make the host wait.

    >>> sound = Soundness(torch.device("cpu"))
    >>> sound.look(torch.tensor([[0.5, 0.5, 0.0], [2.0, -1.0, 0.0]]), torch.tensor([True, False]))
    >>> sound.check()
    """

    def __init__(self, device: torch.device) -> None:
        self._worst = torch.zeros(1, device=device)

    def look(self, probabilities: Tensor, live: Tensor) -> None:
        """Take the rows (…, V) into account where `live` (…) says that they are in use."""
        excess = torch.maximum(probabilities.sum(-1) - 1, -probabilities.amin(-1))
        used = excess.masked_fill(~live, 0).flatten()
        self._worst = torch.cat((self._worst, used)).amax(0, keepdim=True)

    def check(self) -> None:
        """Raise if a row was no distribution."""
        worst = float(self._worst)
        if not worst <= TOLERANCE:
            raise rule(
                "a stepper returns probabilities",
                expected="numbers from 0 to 1 that sum to 1",
                got="a row with NaN"
                if worst != worst
                else f"a row that misses this by {worst:.3g}",
            )
