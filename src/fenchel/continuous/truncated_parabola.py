"""The truncated parabola, the counterpart of the Gaussian on the line under continuous sparsemax."""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor

from fenchel.continuous.symmetric import Symmetric


@final
class TruncatedParabola(Symmetric):
    r"""argmax_p E_p[−(t−μ)²/2σ²] − ½∫p²: p(t) = [−λ − (t−μ)²/2σ²]_+.

    With λ = −½(3/2σ)^{2/3} it integrates to one; the support is μ ± (3σ²/2)^{1/3}. With σ² = 2/3 this is
    the Epanechnikov kernel. `scale` is σ, the scale of the Gaussian with the same score; the standard
    deviation is `stddev`. Sampling inverts the distribution function in closed form.

    Reference: Martins et al. (2020), *Sparse and Continuous Attention Mechanisms*, Eq. 10.

    >>> import torch
    >>> density = TruncatedParabola(torch.tensor(0.0), torch.tensor(1.0))
    >>> density.log_prob(torch.tensor([0.0, 1.0, 1.2])).exp()
    tensor([0.6552, 0.1552, 0.0000])
    >>> density.support.upper_bound, density.cdf(torch.tensor(1.0))
    (tensor(1.1447), tensor(0.9885))
    """

    @property
    def half_width(self) -> Tensor:
        return 1.5 ** (1 / 3) * self.scale ** (2 / 3)  # σ² could overflow or underflow

    def _base_log_density(self, u: Tensor) -> Tensor:
        return math.log(0.75) + torch.log1p(-u * u)

    def _base_cdf(self, u: Tensor) -> Tensor:
        return 0.25 * (1 + u) ** 2 * (2 - u)

    def _base_icdf(self, q: Tensor) -> Tensor:
        return 2 * torch.sin(torch.asin(2 * q - 1) / 3)

    @property
    def _base_variance(self) -> float:
        return 1 / 5

    @property
    def _base_entropy(self) -> float:
        return 5 / 3 - math.log(3)

    def _base_log_power_integral(self, exponent: float) -> float:
        gammas = math.lgamma(exponent + 1) - math.lgamma(exponent + 1.5)
        return exponent * math.log(0.75) + 0.5 * math.log(math.pi) + gammas
