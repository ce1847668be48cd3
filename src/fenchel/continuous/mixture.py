"""Mixtures of K densities: what a layer of continuous attention looks at."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor
from torch.distributions import (
    Categorical,
    Distribution,
    MixtureSameFamily,
    MultivariateNormal,
    Normal,
)

from fenchel.continuous.basis import GaussianBasis
from fenchel.continuous.beta_gaussian import BetaGaussian
from fenchel.continuous.expectation import entmax
from fenchel.continuous.truncated_parabola import TruncatedParabola


class Mixture(NamedTuple):
    """Parameters of Σ_k π_k p_k, on the line or in D dimensions.

    `mixing` π (…, K); `loc` μ (…, K) or (…, K, D); `variance` σ² (…, K) or Σ (…, K, D, D).

    >>> import torch
    >>> mixture = Mixture(torch.tensor([0.5, 0.5]), torch.tensor([0.2, 0.8]), torch.full((2,), 0.01))
    >>> mixture.distribution(alpha=2.0).log_prob(torch.tensor([0.2, 0.5])).exp()
    tensor([1.5206, 0.0000])
    """

    mixing: Tensor
    loc: Tensor
    variance: Tensor

    def at(self, *index: int) -> Mixture:
        """The mixture of one batch item (and head): `mixture.at(0, 1)`."""
        return Mixture(*(part[index] for part in self))

    def expectation(self, basis: GaussianBasis, alpha: float = 2.0, **options: int) -> Tensor:
        """E[ψ_j], (…, N): the expectations of the modes (`entmax`), weighted."""
        each = entmax(self.loc, self.variance, basis, alpha, **options)
        return (self.mixing.unsqueeze(-1).to(each.dtype) * each).sum(-2)

    def distribution(self, alpha: float = 2.0) -> MixtureSameFamily:
        """The density, one a batch item, as torch.distributions has it."""
        return MixtureSameFamily(Categorical(self.mixing), self.modes(alpha), validate_args=False)

    def modes(self, alpha: float = 2.0) -> Distribution:
        """The K densities apart."""
        if self.loc.ndim == self.mixing.ndim:
            if alpha == 1:
                return Normal(self.loc, self.variance.sqrt())
            if alpha == 2:
                return TruncatedParabola(self.loc, self.variance.sqrt())
            return BetaGaussian(self.loc.unsqueeze(-1), self.variance[..., None, None], alpha)
        if alpha == 1:
            return MultivariateNormal(self.loc, self.variance)
        return BetaGaussian(self.loc, self.variance, alpha)
