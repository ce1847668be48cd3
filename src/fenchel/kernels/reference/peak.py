"""Nodes for integrals over (−1, 1) or the disk whose integrands have one peak.

The integrands are (1 − |u|²)^… exp(−½|Gu − e|²). Along a line, in the coordinate v = artanh u, each of
them is analytic, has one peak and decreases at least exponentially, so the trapezoid rule converges
geometrically once its nodes cover the peak, whatever its width. The nodes are v = v* + 2w sinh τ with
evenly spaced τ, where

* v* is the mode, from a secular equation in one unknown ν = 2 power/(1 − |u|²);
* w is the width there, from the curvature of the logarithm;
* the ends are where the logarithm has decreased by `drop`, from bounds that hold for all such integrands.

The integral does not depend on its nodes, so they are constants for every derivative.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

NEWTON_STEPS = 7
NODE_STRETCH = (
    2.0  # widths over which nodes are about evenly spaced; further out they are wider apart
)
MODE_MARGIN = 1e-12  # least distance of the mode from ±1


class Nodes(NamedTuple):
    """Along a new last dimension: u, √(1 − u²) and the weights of ∫ … dv, du = (1 − u²) dv."""

    u: Tensor
    height: Tensor
    weight: Tensor


@torch.no_grad()
def line_nodes(g: Tensor, e: Tensor, *, power: float, drop: float, count: int) -> Nodes:
    """Nodes for ∫ (1 − u²)^power exp(−½(gu − e)²) dv."""
    g, e = g.detach(), e.detach()
    nothing = torch.zeros_like(g)
    nu = secular_root(g, e.abs(), nothing, nothing, power)
    mode = g * e / (g * g + nu)
    concavity = g * g + 2 * power
    return spread_nodes(
        mode, g * g + nu + nu * nu / power * mode * mode, concavity, power, drop, count
    )


def secular_root(g1: Tensor, e1: Tensor, g2: Tensor, e2: Tensor, power: float) -> Tensor:
    """ν with |u|² + 2 power/ν = 1, u_i = g_i e_i/(g_i² + ν): the mode where G = diag(g), e ≥ 0.

    Newton on 1/√(|u|² + 2 power/ν), from a lower bound of the root; it does not overshoot.
    """
    pull1, pull2, square1, square2 = g1 * e1, g2 * e2, g1 * g1, g2 * g2
    tiny = torch.finfo(g1.dtype).tiny
    place1, place2 = e1 / (g1 + tiny), e2 / (g2 + tiny)
    reach1, reach2 = place1 * place1, place2 * place2
    slope1, slope2 = reach1 / (square1 + tiny), reach2 / (square2 + tiny)
    nu = torch.maximum(
        _lower_bound(reach1 - 1, slope1, power),
        _lower_bound(reach1 + reach2 - 1, slope1 + slope2, power),
    )
    nu = torch.maximum(nu, torch.hypot(pull1, pull2) - square1).clamp(min=2 * power)
    for _ in range(NEWTON_STEPS):
        u1, u2, rest = pull1 / (square1 + nu), pull2 / (square2 + nu), 2 * power / nu
        total = u1 * u1 + u2 * u2 + rest
        fall = 2 * (u1 * u1 / (square1 + nu) + u2 * u2 / (square2 + nu)) + rest / nu
        nu = nu + 2 * total * (total.sqrt() - 1) / fall
    return nu


def _lower_bound(outside: Tensor, slope: Tensor, power: float) -> Tensor:
    """The ν with 2 slope ν − outside = 2 power/ν; zero if that is NaN."""
    root = torch.sqrt(outside * outside + 16 * power * slope)
    inner = 4 * power / (root - outside)
    return torch.nan_to_num(torch.where(outside < 0, inner, (root + outside) / (4 * slope)), 0.0)


def spread_nodes(
    mode: Tensor, curvature: Tensor, concavity: Tensor, power: float, drop: float, count: int
) -> Nodes:
    """Nodes around a mode u, from the curvature of the logarithm there and its least curvature."""
    u = mode.clamp(-1 + MODE_MARGIN, 1 - MODE_MARGIN)
    scale = NODE_STRETCH / (curvature.sqrt() * (1 - u) * (1 + u))
    middle = torch.atanh(u)
    left, right = _ends(u, concavity, power, drop)
    first, last = torch.asinh((left - middle) / scale), torch.asinh((right - middle) / scale)
    step = (last - first).unsqueeze(-1) / (count - 1)
    tau = first.unsqueeze(-1) + step * torch.arange(count, dtype=u.dtype, device=u.device)
    v = middle.unsqueeze(-1) + scale.unsqueeze(-1) * torch.sinh(tau)
    return Nodes(torch.tanh(v), 1 / torch.cosh(v), scale.unsqueeze(-1) * torch.cosh(tau) * step)


def _ends(u: Tensor, concavity: Tensor, power: float, drop: float) -> tuple[Tensor, Tensor]:
    """The points, in v, where the logarithm has decreased by `drop` from the mode u.

    It decreases by at least ½ concavity (x − u)², and, being power · log(1 − x²) plus something concave,
    by power · (D((1−x)/(1−u)) + D((1+x)/(1+u))) with D(r) = r − 1 − log r.
    """
    reach = torch.sqrt(2 * drop / concavity)
    low, high = relative_reach(drop / power)
    above, below = 1 - u, 1 + u
    to_one = torch.maximum(torch.maximum(above - reach, above * low), 2 - high * below)
    to_minus_one = torch.maximum(torch.maximum(below - reach, below * low), 2 - high * above)
    return 0.5 * torch.log(to_minus_one / (2 - to_minus_one)), 0.5 * torch.log(
        (2 - to_one) / to_one
    )


def relative_reach(fall: float) -> tuple[float, float]:
    """The two roots r of r − 1 − log r = fall, by Newton's method on a convex function of log r."""

    def root(x: float) -> float:
        for _ in range(12):
            x -= (math.expm1(x) - x - fall) / math.expm1(x)
        return math.exp(x)

    return root(-1.0 - fall), root(math.log1p(fall) + math.sqrt(2 * fall))
