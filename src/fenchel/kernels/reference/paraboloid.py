"""Expectations of Gaussians under a truncated paraboloid: one integral over the chords of a disk.

With u distributed as (2/π)(1 − |u|²) on the unit disk,

    I(G, e) = E[N(Gu; e, 1)],   N(x; e, 1) = exp(−½|x − e|²)/(2π).

Along a chord the integrand is a Gaussian through a parabolic window, which has a closed form. What
remains is one integral over the position u₁ = −cos(angle) of the chord, at nodes that follow the
integrand. Derivatives are integrals of the same kind, ∂I/∂e = ∫ (Gu − e) …, ∂I/∂G = −∫ (Gu − e) uᵀ …

The frame of the disk is free. Chords run along the direction in which the Gaussian is longest, which
smooths the integrand at their ends, where the density has its edge. Where the edge is straight on the
scale of the Gaussian, they run along the normal of the edge in the metric of the Gaussian.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from fenchel.kernels.reference.paraboloid_window import is_narrow, window
from fenchel.kernels.reference.peak import Nodes, secular_root, spread_nodes

POWER = 2.5  # of 1 − u²: the window has the cube of the chord's length (1 − u²)^½, and dv one more factor
DROP = (
    21.0  # decrease of the log integrand at the last node; the rest is below 1e-9 of the integral
)
# The edge of the disk counts as straight from this radius of curvature on, in standard deviations.
STRAIGHT_EDGE = 3.0
CHUNK_NODES = 2**20  # nodes that are in memory together
CONSTANT = (2 / math.pi) / math.sqrt(2 * math.pi)


def paraboloid(linear: Tensor, offset: Tensor, angles: int) -> tuple[Tensor, Tensor]:
    """I (…) and its derivatives (…, 6) in G = `linear` (…, 2, 2), by rows, and e = `offset` (…, 2)."""
    shape = offset.shape[:-1]
    size = max(CHUNK_NODES // angles, 1)
    rows = zip(linear.reshape(-1, 2, 2).split(size), offset.reshape(-1, 2).split(size), strict=True)
    values, slopes = zip(*(paraboloid_moments(*part, angles) for part in rows), strict=True)
    return torch.cat(values).view(shape), torch.cat(slopes).view(*shape, 6)


def paraboloid_moments(linear: Tensor, offset: Tensor, angles: int) -> tuple[Tensor, Tensor]:
    """`paraboloid` in one piece, differentiable any number of times."""
    turn1, turn2, nodes = _chord_frame(linear, offset, angles)
    column1, column2 = (linear @ turn1).squeeze(-1), (linear @ turn2).squeeze(-1)
    length = torch.linalg.vector_norm(column2, dim=-1)
    axis2 = column2 / length.unsqueeze(-1)
    axis1 = torch.stack((axis2[..., 1], -axis2[..., 0]), -1)
    across = Ray((axis1 * offset).sum(-1), (axis1 * column1).sum(-1))
    along = Ray((axis2 * offset).sum(-1), (axis2 * column1).sum(-1))
    value, by_frame = _chords(nodes, across, along, length)
    axes = torch.stack((axis1, axis2), -1)
    by_linear = axes @ by_frame[..., :2] @ torch.cat((turn1, turn2), -1).mT
    by_offset = (axes @ by_frame[..., 2:]).squeeze(-1)
    return value, torch.cat((by_linear.flatten(-2), by_offset), -1)


class Ray(NamedTuple):
    """offset − slope u₁: one coordinate of e − Gu on the chord at u₁, where u₂ = 0."""

    offset: Tensor
    slope: Tensor

    def at(self, u: Tensor) -> Tensor:
        return self.offset.unsqueeze(-1) - self.slope.unsqueeze(-1) * u


def _chords(nodes: Nodes, across: Ray, along: Ray, length: Tensor) -> tuple[Tensor, Tensor]:
    """Sums over the nodes: the integral, and its derivatives in the frame (…, 2, 3), G then e."""
    u, height, weight = nodes
    x, y = across.at(u), along.at(u)
    length = length.unsqueeze(-1)
    # One form for all chords of a pair: those that matter are about as long as the longest.
    expanded = is_narrow(length.detach(), y.detach().abs().amax(-1, keepdim=True)).expand_as(y)
    mass, lever, moment, twist = window(height * length, y, expanded)
    gauss = CONSTANT * weight * height * height * torch.exp(-0.5 * x * x) / length**3
    rows = (
        (x * u * mass, x * moment / length, -x * mass),
        (-u * lever, -twist / length, lever),
    )
    slopes = [torch.stack([(gauss * entry).sum(-1) for entry in row], -1) for row in rows]
    return (gauss * mass).sum(-1), torch.stack(slopes, -2)


@torch.no_grad()
def _chord_frame(linear: Tensor, offset: Tensor, angles: int) -> tuple[Tensor, Tensor, Nodes]:
    """Unit vectors (…, 2, 1) across and along the chords, and the positions of the chords."""
    linear, offset = linear.detach(), offset.detach()
    first, second = linear.unbind(-1)
    overlap = (first * second).sum(-1)
    difference = (first * first).sum(-1) - (second * second).sum(-1)
    angle = 0.5 * torch.atan2(2 * overlap, difference)
    cos, sin = torch.cos(angle), torch.sin(angle)
    long = cos.unsqueeze(-1) * first + sin.unsqueeze(-1) * second
    short = cos.unsqueeze(-1) * second - sin.unsqueeze(-1) * first
    g1, g2 = (torch.linalg.vector_norm(column, dim=-1) for column in (long, short))
    e1, e2 = (long * offset).sum(-1) / g1, (short * offset).sum(-1) / g2
    nu = secular_root(g1, e1.abs(), g2, e2.abs(), POWER)
    square1, square2 = g1 * g1, g2 * g2
    u1, u2 = g1 * e1 / (square1 + nu), g2 * e2 / (square2 + nu)
    c, s = _rotation_to_chords(
        square1, square2, u1, u2
    )  # chords along (−s, c) in the frame of `long`, `short`
    bend = nu * nu / POWER
    h11, h22 = square1 + nu + bend * u1 * u1, square2 + nu + bend * u2 * u2
    h12 = bend * u1 * u2
    curvature = (h11 * h22 - h12 * h12) / (s * s * h11 - 2 * s * c * h12 + c * c * h22)
    gaussian = square1 * square2 / (s * s * square1 + c * c * square2)
    edge = torch.where(s == 0, g2 * (e2.abs() - g2).clamp(min=0), 0.7 * curvature - gaussian)
    concavity = torch.maximum(gaussian + 2 * POWER + edge, gaussian)
    nodes = spread_nodes(c * u1 + s * u2, curvature, concavity, POWER, DROP, angles)
    cos, sin = cos * c - sin * s, sin * c + cos * s
    return torch.stack((cos, sin), -1)[..., None], torch.stack((-sin, cos), -1)[..., None], nodes


def _rotation_to_chords(
    square1: Tensor, square2: Tensor, u1: Tensor, u2: Tensor
) -> tuple[Tensor, Tensor]:
    """Cosine and sine of the angle from the axes of the Gaussian to the frame of the chords."""
    along1, along2 = u1 / square1, u2 / square2
    size = torch.hypot(along1, along2)
    straight = (square2 >= STRAIGHT_EDGE * square1.sqrt()) & (size > 0)
    c = torch.where(straight, along2 / size, 1.0)
    s = torch.where(straight, -along1 / size, 0.0)
    return c, s
