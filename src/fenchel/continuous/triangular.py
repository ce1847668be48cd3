"""The triangular density, the counterpart of Laplace's under continuous sparsemax."""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor

from fenchel.continuous.symmetric import Symmetric


@final
class Triangular(Symmetric):
    r"""argmax_p E_p[−|t−μ|/b] − ½∫p²: p(t) = [−λ − |t−μ|/b]_+, λ = −1/√b.

    The support is μ ± √b. `scale` is b, the scale of the Laplace density with the same score.

    Reference: Martins et al. (2020), *Sparse and Continuous Attention Mechanisms*, Eq. 12.

    >>> import torch
    >>> density = Triangular(torch.tensor(0.0), torch.tensor(4.0))
    >>> density.log_prob(torch.tensor([0.0, 1.0, 3.0])).exp()
    tensor([0.5000, 0.2500, 0.0000])
    """

    @property
    def half_width(self) -> Tensor:
        return self.scale.sqrt()

    def _base_log_density(self, u: Tensor) -> Tensor:
        return torch.log1p(-u.abs())

    def _base_cdf(self, u: Tensor) -> Tensor:
        tail = 0.5 * (1 - u.abs()) ** 2
        return torch.where(u < 0, tail, 1 - tail)

    def _base_icdf(self, q: Tensor) -> Tensor:
        lower = q < 0.5
        tail = torch.where(lower, q, 1 - q)
        reach = 1 - torch.sqrt(2 * tail)
        return torch.where(lower, -reach, reach)

    @property
    def _base_variance(self) -> float:
        return 1 / 6

    @property
    def _base_entropy(self) -> float:
        return 0.5

    def _base_log_power_integral(self, exponent: float) -> float:
        return math.log(2 / (exponent + 1))
