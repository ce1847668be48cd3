"""Continuous sparsemax of any symmetric, decreasing score: location-scale families."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, final

import torch
from torch import Tensor

from fenchel.continuous.symmetric import Symmetric
from fenchel.errors import FenchelError

NODES = 481  # for moments of the base density; a quarter is enough for smooth g
REACH = 3.6  # where tanh(½π sinh t) is 1 up to rounding
FARTHEST = 1e8
HALVINGS = 60


@final
class LocationScale(Symmetric):
    r"""argmax_p E_p[−g′(|t−μ|/σ)/σ] − ½∫p² for any convex, differentiable g on [0, ∞).

    p(t) = [g′(a) − g′(|t−μ|/σ)]_+/σ, where a solves a g′(a) − g(a) + g(0) = ½: the support is μ ± aσ.
    g(s) = s³/6 gives the truncated parabola (with σ^{3/2} as its scale), g(s) = s²/2 the triangular
    density (with σ² as its scale). The distribution function has a closed form in g; samples invert it
    numerically, and moments use double-exponential quadrature.

    Args:
        loc: μ.
        scale: σ > 0.
        g: a convex, elementwise function of tensors, made of torch operations.
        derivative: g′, by default computed by automatic differentiation of g.

    Reference: Martins et al. (2020), *Sparse and Continuous Attention Mechanisms*, Eq. 13.

    >>> import torch
    >>> density = LocationScale(0.0, 1.0, lambda s: s**2 / 2)
    >>> density.log_prob(torch.tensor([0.0, 0.5, 2.0])).exp()
    tensor([1.0000, 0.5000, 0.0000])
    """

    def __init__(
        self,
        loc: float | Tensor,
        scale: float | Tensor,
        g: Callable[[Tensor], Tensor],
        derivative: Callable[[Tensor], Tensor] | None = None,
        validate_args: bool | None = None,
    ) -> None:
        for name, function in {
            "g": g,
            "derivative": g if derivative is None else derivative,
        }.items():
            if not callable(function):
                raise FenchelError(f"{name} must be a function of tensors, got {function!r}")
        self.g, self.derivative = g, _slope(g) if derivative is None else derivative
        super().__init__(loc, scale, validate_args)

    @cached_property
    def edge(self) -> float:
        """a, by bisection in float64; a g′(a) − g(a) + g(0) grows with a."""

        def excess(a: float) -> float:
            place = torch.tensor([a, 0.0], dtype=torch.float64)
            value = self.g(place)
            return float(a * self.derivative(place)[0] - value[0] + value[1]) - 0.5

        low, high = 0.0, 1.0
        while excess(high) < 0:
            low, high = high, 2 * high
            if high > FARTHEST:
                raise FenchelError(
                    "g must satisfy a g′(a) − g(a) + g(0) = ½ for some a > 0,"
                    f" got {excess(high) + 0.5:.3g} at a = {high:.3g}"
                )
        for _ in range(200):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if excess(middle) > 0 else (middle, high)
        return high

    @property
    def half_width(self) -> Tensor:
        return self.edge * self.scale

    def _base_density(self, u: Tensor) -> Tensor:
        s = self.edge * u.abs()
        fall = self.derivative(torch.full_like(s, self.edge)) - self.derivative(s)
        return self.edge * fall.clamp(min=0)  # rounding may make it negative at the edge

    def _base_log_density(self, u: Tensor) -> Tensor:
        return self._base_density(u).log()

    def _base_cdf(self, u: Tensor) -> Tensor:
        s = self.edge * u.abs()
        at_edge = self.derivative(torch.full_like(s, self.edge))
        half = s * at_edge - self.g(s) + self.g(torch.zeros_like(s))
        return torch.where(u < 0, 0.5 - half, 0.5 + half)

    def _base_icdf(self, q: Tensor) -> Tensor:
        with torch.no_grad():
            low, high = -torch.ones_like(q), torch.ones_like(q)
            for _ in range(HALVINGS):
                middle = 0.5 * (low + high)
                above = self._base_cdf(middle) > q
                low, high = torch.where(above, low, middle), torch.where(above, middle, high)
            u = 0.5 * (low + high)
            density = self._base_density(u).clamp(min=torch.finfo(q.dtype).eps)
        return u + (q - q.detach()) / density  # so that a derivative in q is 1/density

    @cached_property
    def _nodes(self) -> tuple[Tensor, Tensor]:
        """Nodes u on (0, 1), and weights that count both halves.

        u = ½ (1 + tanh(½π sinh t)) at even steps of t: g′ may have infinite slopes at either end.
        """
        t = torch.linspace(-REACH, REACH, NODES, dtype=torch.float64)
        turn = 0.5 * math.pi * torch.sinh(t)
        weights = (2 * REACH / (NODES - 1)) * 0.5 * math.pi * torch.cosh(t) / torch.cosh(turn) ** 2
        return torch.sigmoid(2 * turn), weights

    @cached_property
    def _base_variance(self) -> float:
        u, w = self._nodes
        return float((w * self._base_density(u) * u * u).sum())

    @cached_property
    def _base_entropy(self) -> float:
        u, w = self._nodes
        p = self._base_density(u)
        return -float((w * torch.xlogy(p, p)).sum())

    def _base_log_power_integral(self, exponent: float) -> float:
        u, w = self._nodes
        return math.log(float((w * self._base_density(u) ** exponent).sum()))

    def _share(self, other: Any) -> None:
        other.g, other.derivative = self.g, self.derivative


def _slope(g: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """g′, elementwise."""

    def derivative(s: Tensor) -> Tensor:
        return torch.func.grad(lambda x: g(x).sum())(s)

    return derivative
