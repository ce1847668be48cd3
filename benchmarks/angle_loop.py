"""2-D continuous sparsemax as the paper writes it down: a Python loop over the angles.

E_p[ψ_j] in polar coordinates around the density's center: along each direction a, ψ_j is a Gaussian
in the radius, whose integral against the paraboloid is closed (App. G, Eqs. 53 to 60). `AngleLoop` has
the paper's own backward pass, a second loop (Eqs. 61 to 81). The angles are evenly spaced, without the
end point that the authors' code counts twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Polar(NamedTuple):
    """Basis functions (B, N) in the coordinates in which the support of a density is the unit disk."""

    peak: Tensor  # of the density, (B,)
    stretch: Tensor  # from the disk to the support, (B, 2, 2)
    mean: Tensor  # (B, N, 2, 1)
    precision: Tensor  # (B, N, 2, 2)
    determinant: Tensor  # of the covariance, (B, N)


class Ray(NamedTuple):
    """A basis function along one direction: `size` N(r; center, scale²), and its ends at 0 and 1.

    `near` and `far` are normal densities at the ends, `between` twice the probability between them.
    """

    size: Tensor
    center: Tensor
    scale: Tensor
    near: Tensor
    far: Tensor
    between: Tensor


def loop_over_angles(
    loc: Tensor, covariance: Tensor, centers: Tensor, scales: Tensor, angles: int
) -> Tensor:
    """E_p[ψ_j], (B, N); autograd can differentiate it."""
    polar = _polar(loc, covariance, centers, scales)
    total = torch.zeros_like(polar.determinant)
    for direction in _directions(angles, loc):
        size, r, s, near, far, between = _ray(direction, polar)
        along = (
            (2 * s**3 + r**2 * s + r * s) * far
            - (2 * s**3 + r**2 * s - s) * near
            - 0.5 * (r**3 + (3 * s**2 - 1) * r) * between
        )
        total = total + size * along
    return polar.peak.unsqueeze(-1) * total * (2 * math.pi / angles)


class AngleLoop(torch.autograd.Function):
    """`loop_over_angles` with the backward pass of the paper."""

    @staticmethod
    def forward(
        ctx: Any, loc: Tensor, covariance: Tensor, centers: Tensor, scales: Tensor, angles: int
    ) -> Tensor:
        ctx.save_for_backward(loc, covariance, centers, scales)
        ctx.angles = angles
        return loop_over_angles(loc, covariance, centers, scales, angles)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        loc, covariance, centers, scales = ctx.saved_tensors
        (grad,) = grads
        polar = _polar(loc, covariance, centers, scales)
        mass, first, second = _uniform_integrals(loc, polar, ctx.angles)
        mu = loc.unsqueeze(1)
        # Under the uniform density on the support: mean μ, covariance a quarter of the stretch.
        square = _outer(mu, mu) + (polar.stretch @ polar.stretch.mT / 4).unsqueeze(1)
        by_first = (grad.unsqueeze(-1) * (first - mu * mass.unsqueeze(-1))).sum(1)
        by_second = (grad[..., None, None] * (second - square * mass[..., None, None])).sum(1)
        # The parameters are Σ⁻¹μ and −½Σ⁻¹.
        precision = torch.linalg.inv(covariance)
        by_loc = (precision @ by_first.unsqueeze(-1)).squeeze(-1)
        by_covariance = -precision @ (_outer(by_first, loc) - 0.5 * by_second) @ precision
        return by_loc, 0.5 * (by_covariance + by_covariance.mT), None, None, None


def _uniform_integrals(loc: Tensor, polar: Polar, angles: int) -> tuple[Tensor, Tensor, Tensor]:
    """∫ψ, ∫tψ and ∫ttᵀψ over the support of the density."""
    mu = loc.unsqueeze(1)
    mass = torch.zeros_like(polar.determinant)
    first = mass.new_zeros(*mass.shape, 2)
    second = mass.new_zeros(*mass.shape, 2, 2)
    for direction in _directions(angles, loc):
        size, r, s, near, far, between = ray = _ray(direction, polar)
        step = (polar.stretch @ direction).squeeze(-1).unsqueeze(1)
        flat = size * (s * (near - far) + 0.5 * r * between)
        linear = size * (s * r * near - s * (1 + r) * far + 0.5 * (s**2 + r**2) * between)
        mass += flat
        first += linear.unsqueeze(-1) * step + flat.unsqueeze(-1) * mu
        second += size[..., None, None] * _square(ray, step, mu)
    weight = 2 * math.pi / angles
    return weight * mass, weight * first, weight * second


def _square(ray: Ray, step: Tensor, mu: Tensor) -> Tensor:
    """∫ (μ + r d)(μ + r d)ᵀ N(r; center, scale²) r dr along a ray with step d."""
    r, s, near, far, between = (part[..., None, None] for part in ray[1:])
    steps, mixed, places = _outer(step, step), _outer(step, mu) + _outer(mu, step), _outer(mu, mu)
    cubic = s**3 * steps
    quadratic = s**2 * (3 * r * steps + mixed)
    linear = s * (3 * r * r * steps + 2 * r * mixed + places)
    constant = r**3 * steps + r * r * mixed + r * places
    low, high = -r / s, (1 - r) / s
    return (
        ((2 + low**2) * cubic + low * quadratic + linear) * near
        - ((2 + high**2) * cubic + high * quadratic + linear) * far
        + 0.5 * (quadratic + constant) * between
    )


def _polar(loc: Tensor, covariance: Tensor, centers: Tensor, scales: Tensor) -> Polar:
    peak = (1 / (math.pi * torch.linalg.det(covariance).sqrt())).sqrt()
    values, vectors = torch.linalg.eigh(covariance)
    root = vectors @ torch.diag_embed(values.sqrt()) @ vectors.mT
    stretch = (2 * peak).sqrt()[..., None, None] * root
    inverse = torch.linalg.inv(stretch).unsqueeze(1)
    mean = inverse @ (centers - loc.unsqueeze(1)).unsqueeze(-1)
    inner = inverse @ scales @ inverse.mT
    return Polar(peak, stretch, mean, torch.linalg.inv(inner), torch.linalg.det(inner))


def _ray(direction: Tensor, polar: Polar) -> Ray:
    mean, precision = polar.mean, polar.precision
    variance = 1 / (direction.mT @ precision @ direction)
    center = variance * (direction.mT @ precision @ mean)
    across = precision - variance * (precision @ direction @ direction.mT @ precision)
    width = polar.determinant.sqrt()[..., None, None] * math.sqrt(2 * math.pi)
    size = variance.sqrt() / width * torch.exp(-0.5 * mean.mT @ across @ mean)
    size, r, s = (part.squeeze((-2, -1)) for part in (size, center, variance.sqrt()))
    low, high = -r / s, (1 - r) / s
    between = torch.erf(high / math.sqrt(2)) - torch.erf(low / math.sqrt(2))
    return Ray(size, r, s, _normal(low), _normal(high), between)


def _directions(angles: int, like: Tensor) -> Iterator[Tensor]:
    for k in range(angles):
        turn = 2 * math.pi * k / angles
        yield like.new_tensor([[math.cos(turn)], [math.sin(turn)]])


def _normal(z: Tensor) -> Tensor:
    return torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)


def _outer(a: Tensor, b: Tensor) -> Tensor:
    return a.unsqueeze(-1) * b.unsqueeze(-2)
