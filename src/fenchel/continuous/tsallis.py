"""Tsallis negentropies of densities, the regularizers of continuous attention."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.distributions import Distribution, Laplace, MultivariateNormal, Normal

from fenchel.checks import check_number
from fenchel.continuous.beta_gaussian import BetaGaussian
from fenchel.continuous.symmetric import Symmetric
from fenchel.errors import FenchelError


def tsallis_negentropy(density: Distribution, alpha: float = 2.0) -> Tensor:
    """The Tsallis negentropy Ω_α(p) = (∫ p^α − 1)/(α(α−1)) of a density; ∫ p log p at α = 1.

    It is computed in closed form for the densities of this package and for `Normal`,
    `MultivariateNormal` and `Laplace` of torch, and by quadrature for `LocationScale`.

    Reference: Martins et al. (2020), *Sparse and Continuous Attention Mechanisms*, Eq. 6.

    >>> import torch
    >>> from fenchel.continuous import TruncatedParabola
    >>> tsallis_negentropy(TruncatedParabola(torch.tensor(0.0), torch.tensor(1.0)), alpha=2.0)
    tensor(-0.2379)
    """
    alpha = check_number(alpha, name="alpha", above=0)
    if alpha == 1 and isinstance(density, Distribution):
        try:
            return -density.entropy()
        except NotImplementedError:
            raise _unknown(density) from None
    return torch.expm1(_log_power_integral(density, alpha)) / (alpha * (alpha - 1))


def _log_power_integral(density: Distribution, exponent: float) -> Tensor:
    if isinstance(density, BetaGaussian | Symmetric):
        return density.log_power_integral(exponent)
    if isinstance(density, Laplace):
        return (1 - exponent) * (2 * density.scale).log() - math.log(exponent)
    if isinstance(density, Normal):
        width = density.scale.log() + 0.5 * math.log(2 * math.pi)
        return (1 - exponent) * width - 0.5 * math.log(exponent)
    if isinstance(density, MultivariateNormal):
        dims = density.loc.shape[-1]
        width = density.entropy() - 0.5 * dims
        return (1 - exponent) * width - 0.5 * dims * math.log(exponent)
    raise _unknown(density)


def _unknown(density: object) -> FenchelError:
    return FenchelError(
        "density must be one of fenchel.continuous, or a Normal, MultivariateNormal or Laplace,"
        f" got {type(density).__name__}"
    )
