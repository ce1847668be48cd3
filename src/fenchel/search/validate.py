"""Validation of a search's arguments and of the probabilities that a model returns.

The bound of a search holds because no sequence is more probable than its prefixes, which is true
if no probability exceeds 1, whatever the rows sum to. `clamp_probabilities` guarantees this for
every row. `ProbabilityCheck` raises an error for the rows that a search reads if they are further
from a distribution than rounding explains.
"""

from __future__ import annotations

from numbers import Integral

import torch
from torch import Tensor

from fenchel.errors import FenchelError

SUM_TOLERANCE = 0.02  # the sum of a row in half precision may exceed 1 by this much
ENTRY_TOLERANCE = 1e-4  # an entry computed in float32 may lie this far outside [0, 1]


def check_positive(**sizes: int) -> None:
    """Raise if an argument is not a positive integer.

    >>> check_positive(width=5, max_length=0)
    Traceback (most recent call last):
        ...
    fenchel.errors.FenchelError: max_length must be a positive integer, got 0
    """
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise FenchelError(f"{name} must be a positive integer, got {value!r}")


def check_token_ids(**tokens: int) -> None:
    """Raise if an argument cannot be a token id.

    >>> check_token_ids(bos=1, eos=-2)
    Traceback (most recent call last):
        ...
    fenchel.errors.FenchelError: eos must be a non-negative integer, got -2
    """
    for name, value in tokens.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
            raise FenchelError(f"{name} must be a non-negative integer, got {value!r}")


class ProbabilityCheck:
    """Collects statistics of the rows of probabilities that a search reads.

    Entries must lie in [0, 1] and a row must sum to at most 1, both up to rounding. The sum may be
    below 1 if a model forbids some tokens. The statistics stay on the device; only
    `raise_if_invalid` synchronizes with it.

    >>> check = ProbabilityCheck(torch.device("cpu"))
    >>> rows = torch.tensor([[0.5, 0.5, 0.0], [2.0, -1.0, 0.0]])
    >>> check.add(row_statistics(rows), unused=torch.tensor([False, True]))
    >>> check.raise_if_invalid()
    """

    def __init__(self, device: torch.device) -> None:
        self._valid = torch.tensor([[1.0, 0.0, 1.0]], device=device)
        self._statistics = [self._valid]

    def add(self, statistics: Tensor, unused: Tensor) -> None:
        """Add the `row_statistics` of some rows, except for those marked as `unused`."""
        used = torch.where(unused.unsqueeze(-1), self._valid, statistics)
        self._statistics.append(used.reshape(-1, 3))

    def raise_if_invalid(self) -> None:
        """Raise if one of the rows added so far is not a distribution."""
        sums, minima, maxima = torch.cat(self._statistics).unbind(-1)
        total, low, high = torch.stack((sums.amax(), minima.amin(), maxima.amax())).tolist()
        del self._statistics[1:]
        entries_valid = low >= -ENTRY_TOLERANCE and high <= 1 + ENTRY_TOLERANCE
        if entries_valid and total <= 1 + SUM_TOLERANCE:
            return
        if total != total:
            got = "a row with NaN"
        elif entries_valid:
            got = f"a row that sums to {total:.6g}"
        else:
            got = f"the entry {low if low < -ENTRY_TOLERANCE else high:.6g}"
        raise FenchelError(
            "a stepper must return probabilities: entries in [0, 1] and rows that sum to at most 1, "
            f"got {got}"
        )


def row_statistics(probabilities: Tensor, maximum: Tensor | None = None) -> Tensor:
    """Return the sum, the minimum and the maximum of each row (…, V), as (…, 3).

    `maximum` is the maximum of each row, if it is known already.

    >>> row_statistics(torch.tensor([[0.5, 0.5, 0.0], [0.25, 0.5, 0.0]]))
    tensor([[1.0000, 0.0000, 0.5000],
            [0.7500, 0.0000, 0.5000]])
    """
    maximum = probabilities.amax(-1) if maximum is None else maximum
    # A sum rounded to bfloat16 is off by up to 0.004 and would refuse rows that are allowed.
    wide = torch.promote_types(probabilities.dtype, torch.float32)
    parts = (probabilities.sum(-1, dtype=wide), probabilities.amin(-1).to(wide), maximum.to(wide))
    return torch.stack(parts, -1)


def clamp_probabilities(probabilities: Tensor) -> Tensor:
    """Return the probabilities in float64, clamped to [0, 1], with NaN replaced by 0.

    Rows that are not in use may contain NaN; in all others `ProbabilityCheck` finds it.

    >>> clamp_probabilities(torch.tensor([1.00001, -0.00001, float("nan")])).tolist()
    [1.0, 0.0, 0.0]
    """
    return probabilities.double().nan_to_num().clamp(0, 1)
