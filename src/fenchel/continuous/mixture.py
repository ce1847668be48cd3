"""Mixtures of K densities, as layers of continuous attention return them."""

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

from fenchel.checks import check_device, check_number
from fenchel.continuous.basis import GaussianBasis
from fenchel.continuous.beta_gaussian import BetaGaussian
from fenchel.continuous.expectation import entmax
from fenchel.continuous.triangles import cholesky
from fenchel.continuous.truncated_parabola import TruncatedParabola
from fenchel.continuous.validation import (
    check_definite,
    check_finite,
    check_items,
    check_matrices,
    check_positive,
    check_real,
    check_same_shape,
)
from fenchel.errors import FenchelError


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
        self._check()
        each = entmax(self.loc, self.variance, basis, alpha, **options)
        return (self.mixing.unsqueeze(-1).to(each.dtype) * each).sum(-2)

    def distribution(self, alpha: float = 2.0) -> MixtureSameFamily:
        """The densities, one per batch item, as a distribution of `torch.distributions`."""
        modes = self.modes(alpha)
        return MixtureSameFamily(Categorical(self.mixing), modes, validate_args=False)

    def modes(self, alpha: float = 2.0) -> Distribution:
        """The K densities as one distribution with batch shape (…, K)."""
        self._check()
        alpha = check_number(alpha, name="alpha", above=0)
        check_finite(self.loc, "loc")
        if self.loc.ndim == self.mixing.ndim:
            check_same_shape(self.loc, self.variance, "variance")
            check_positive(self.variance, "variance")
            if alpha == 1:
                return Normal(self.loc, self.variance.sqrt())
            if alpha == 2:
                return TruncatedParabola(self.loc, self.variance.sqrt())
            return BetaGaussian(self.loc.unsqueeze(-1), self.variance[..., None, None], alpha)
        check_matrices(self.loc, self.variance, "variance")
        if alpha == 1:
            check_definite(self.variance, "variance")
            return MultivariateNormal(self.loc, scale_tril=cholesky(self.variance))
        return BetaGaussian(self.loc, self.variance, alpha)

    def _check(self) -> None:
        """Check that every mode has a weight and a location, on the same device."""
        for name, part in self._asdict().items():
            check_real(part, name)
            check_device(part, self.mixing, name, "mixing")
        if self.mixing.shape not in (self.loc.shape, self.loc.shape[:-1]):
            shape = tuple(self.mixing.shape)
            raise FenchelError(
                f"loc must have shape {shape}, or ({', '.join(map(str, shape))}, D) in D dimensions,"
                f" got {tuple(self.loc.shape)}"
            )
        fine = ((self.mixing >= 0) & self.mixing.isfinite()).all(-1)
        check_items(fine, "mixing must be at least 0 and finite, got other weights")
