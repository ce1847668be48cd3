"""Closed forms of the expectations of Gaussians under a density, and of their derivatives.

The density has the mean μ and the variance v of attention weights. In float64 narrow densities need no
series expansion: for the narrowest that weights on 4096 symbols can have, values are correct to nine
digits and derivatives to five.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from fenchel.continuous.precision import wide

CLOSED = (1.0, 2.0)  # α of the densities with a closed form


class Gaussians(NamedTuple):
    """N Gaussians in float64, and the affine map from a parabola to its standardised ends."""

    centers: Tensor  # (N,)
    scales: Tensor  # (N,), standard deviations
    matrix: Tensor  # (2N, 2)
    shift: Tensor  # (2N,)

    @classmethod
    def of(cls, centers: Tensor, scales: Tensor) -> Gaussians:
        centers, scales = wide(centers), wide(scales)
        unit = math.sqrt(0.5) / scales
        reach, mean = torch.cat([unit, unit]), torch.cat([unit, -unit])
        shift = torch.cat([-unit * centers, unit * centers])
        return cls(centers, scales, torch.stack([reach, mean], -1), shift)


class Positions(NamedTuple):
    """The positions t of the symbols of B sources, in float64, the basis functions and the density."""

    powers: Tensor  # (B, S, 3): 1, t and t² of each symbol
    floor: Tensor  # (B, 1, 3): 0, 0 and the variance of a single symbol
    functions: Gaussians
    alpha: float  # α of the density

    def select(self, rows: Tensor) -> Positions:
        """The positions of the sources `rows`."""
        return self._replace(powers=self.powers[rows], floor=self.floor[rows])


def moments(weights: Tensor, positions: Positions) -> Tensor:
    """Σp, Σpt and Σpt² of weights (B, T, S), plus the floor: (B, T, 3)."""
    return torch.baddbmm(positions.floor, wide(weights), positions.powers)


def mean_and_variance(moments: Tensor) -> tuple[Tensor, Tensor]:
    """μ = Σpt and v = Σp(t−μ)², both (…, 1)."""
    total, mean, square = moments.split(1, -1)
    return mean, square - mean * mean * (2 - total)


def expectation(moments: Tensor, positions: Positions) -> Tensor:
    """E[ψ_j], (…, N), under a Gaussian (α = 1) or a truncated parabola (α = 2).

    The parabola has the support μ ± (3v/2)^{1/3}. With a and b the distances of its ends from the center
    of ψ_j, over the scale s of ψ_j,

        E[ψ_j] = s²/2v ((ab − 1) (Φ(a) + Φ(b) − 1) + bφ(a) + aφ(b)).
    """
    mean, variance = mean_and_variance(moments)
    functions = positions.functions
    if positions.alpha == 1:
        return _gaussian(mean, variance, functions)[0]
    return _parabola(_ends(mean, variance, functions), variance, functions)


def slopes(moments: Tensor, positions: Positions) -> Tensor:
    """The derivatives of the expectations in the three moments, (…, N, 3)."""
    mean, variance = mean_and_variance(moments)
    functions = positions.functions
    if positions.alpha == 1:
        value, off, width = _gaussian(mean, variance, functions)
        by_mean = value * off / width
        by_variance = 0.5 * value * (off * off / width - 1) / width
    else:
        ends = _ends(mean, variance, functions)
        inside, tails = 0.5 * torch.erf(ends).sum(-2), torch.exp(-ends * ends) / math.sqrt(math.pi)
        upper, lower = ends.unbind(-2)
        turn = (lower - upper) * inside + tails[..., 1, :] - tails[..., 0, :]
        by_mean = math.sqrt(0.5) * functions.scales * turn / variance
        value = _parabola(ends, variance, functions)
        by_variance = (0.5 * inside / _reach(variance) - value) / variance
    by_first = by_mean + by_variance * (2 * mean * (moments[..., :1] - 2))
    return torch.stack([by_variance * (mean * mean), by_first, by_variance], -1)


def pull_back(by_expectation: Tensor, slopes: Tensor, positions: Positions) -> Tensor:
    """The gradient in the weights (B, T, S), from that in the expectations (B, T, N)."""
    by_moments = (wide(by_expectation).unsqueeze(-2) @ slopes).squeeze(-2)
    return (by_moments @ positions.powers.mT).to(by_expectation.dtype)


class Expectation(torch.autograd.Function):
    """`expectation` of weights (B, T, S), in their dtype."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, positions: Positions) -> Tensor:
        ctx.moments, ctx.positions = moments(weights, positions), positions
        return expectation(ctx.moments, positions).to(weights.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_expectation: Tensor) -> tuple[Tensor, None]:
        found = slopes(ctx.moments, ctx.positions)
        return pull_back(by_expectation, found, ctx.positions), None


def _gaussian(
    mean: Tensor, variance: Tensor, functions: Gaussians
) -> tuple[Tensor, Tensor, Tensor]:
    """N(μ; c_j, v + s_j²), the distances c_j − μ, and the variances v + s_j²."""
    off, width = functions.centers - mean, variance + functions.scales * functions.scales
    value = torch.exp(-0.5 * off * off / width) / torch.sqrt(2 * math.pi * width)
    return value, off, width


def _ends(mean: Tensor, variance: Tensor, functions: Gaussians) -> Tensor:
    """a/√2 and b/√2, (…, 2, N), for the upper and the lower end of the parabola."""
    given = torch.cat([_reach(variance), mean], -1)
    return F.linear(given, functions.matrix, functions.shift).unflatten(-1, (2, -1))


def _reach(variance: Tensor) -> Tensor:
    return (1.5 * variance) ** (1 / 3)


def _parabola(ends: Tensor, variance: Tensor, functions: Gaussians) -> Tensor:
    tails = (torch.exp(-ends * ends) * ends.flip(-2)).sum(-2)
    inside = (ends.prod(-2) - 0.5) * torch.erf(ends).sum(-2)
    mass = torch.add(inside, tails, alpha=1 / math.sqrt(math.pi))
    return 0.5 * functions.scales * functions.scales * mass / variance
