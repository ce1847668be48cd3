"""Continuous attention as a map: from the parameters of a density to expectations of a basis."""

from __future__ import annotations

import math
from numbers import Real

import torch
from torch import Tensor

from fenchel.autocast import autocast_dtype, without_autocast
from fenchel.checks import check_count, check_device
from fenchel.continuous.basis import GaussianBasis, check_basis
from fenchel.continuous.disk import disk_expectation
from fenchel.continuous.family import gamma_gap, radius
from fenchel.continuous.precision import wide
from fenchel.continuous.triangles import cholesky, log_diagonal, solve
from fenchel.continuous.validation import (
    check_definite,
    check_finite,
    check_matrices,
    check_positive,
    check_real,
    check_same_shape,
)
from fenchel.errors import FenchelError
from fenchel.kernels.reference.paraboloid_window import window_mass
from fenchel.kernels.reference.peak import line_nodes

ANGLES = 40
LINE_NODES = 48
# The part beyond the nodes is below 1e-14 of the integral. An integer, because torch.compile may treat
# a float as dynamic and guard on the result of its own, differently rounded arithmetic.
LINE_DROP = 34


def entmax(
    loc: Tensor,
    variance: Tensor,
    basis: GaussianBasis,
    alpha: float = 2.0,
    *,
    angles: int = ANGLES,
) -> Tensor:
    r"""r_j = E_p[ψ_j(t)] with p = argmax_p E_p[f] − Ω_α(p) and f(t) = −½ (t−μ)ᵀ Σ⁻¹ (t−μ).

    The density p is Gaussian at α = 1, a truncated parabola or paraboloid at α = 2 (`BetaGaussian`).
    With values V(t) = Bᵀψ(t) (`ridge_values`), the attended value is rᵀB.

    Closed form for α = 1, N(μ; μ_j, Σ + Σ_j), in any dimension, and for α = 2 on the line, with erf.
    For α = 2 in two dimensions, one integral over the chords of the support remains, with `angles` nodes
    chosen for every pair of density and basis function; for 1 < α < 2 on the line, one integral over the
    support. The Jacobian in the canonical parameters is cov_{p,2−α}(φ, ψ), φ(t) = [t, ttᵀ] (Prop. 3);
    all derivatives, also in the basis and of higher order, are exact.

    All arithmetic is in float64 (float32 on devices without float64), and the result is rounded
    once to the dtype of `loc`; half precision under autocast gives float32. Values are accurate
    relative to their own size, for densities and basis functions of any widths at any distance.

    Args:
        loc: μ, any shape on the line, (…, D) in D dimensions.
        variance: σ², of the shape of `loc`; Σ, (…, D, D), in D dimensions.
        basis: N Gaussians in the same number of dimensions.
        alpha: from 1 to 2 on the line, 1 or 2 in two dimensions, 1 in more.
        angles: nodes of the integral for α = 2 in two dimensions; 40 give a relative error of 2e-10,
            2e-8 where the value is below 1e-12.

    Returns:
        (…, N).

    Cost: O(N) per density, O(angles · N) in two dimensions.

    Reference: Martins et al. (2020), *Sparse and Continuous Attention Mechanisms*, §3 and App. G.

    >>> import torch
    >>> basis = GaussianBasis.grid(3, 0.2)
    >>> entmax(torch.tensor(0.5), torch.tensor(0.01), basis, alpha=1.0)
    tensor([0.1464, 1.7841, 0.1464])
    >>> entmax(torch.tensor(0.5), torch.tensor(0.01), basis, alpha=2.0)
    tensor([0.1595, 1.7346, 0.1595])
    """
    alpha = _check(loc, variance, basis, alpha, angles)
    result = _result_dtype(loc)
    with without_autocast(loc.device):
        loc, variance, centers, scales = map(wide, (loc, variance, basis.centers, basis.scales))
        if basis.dims == 1:
            if centers.ndim == 2:  # one dimension, written as matrices
                loc, variance = loc.squeeze(-1), variance.squeeze((-2, -1))
                centers, scales = centers.squeeze(-1), scales.squeeze((-2, -1)).sqrt()
            return _on_the_line(loc, variance, centers, scales, alpha).to(result)
        if alpha == 1:
            return _gaussian(loc, variance, centers, scales).to(result)
        return _paraboloid(loc, variance, centers, scales, angles).to(result)


def _on_the_line(
    loc: Tensor, variance: Tensor, centers: Tensor, scales: Tensor, alpha: float
) -> Tensor:
    distance = centers - loc.unsqueeze(-1)
    if alpha == 1:
        total = variance.unsqueeze(-1) + scales * scales
        return torch.exp(-0.5 * distance * distance / total) / torch.sqrt(2 * math.pi * total)
    half_log = 0.5 * variance.log()
    reach = (radius(alpha, half_log, 1) * half_log.exp()).unsqueeze(-1)
    width, offset = reach / scales, distance / scales
    if alpha == 2:
        return 0.75 * window_mass(width, offset) / (width * width * reach)
    return _quadrature(width, offset, alpha) / (math.sqrt(2 * math.pi) * scales)


def _quadrature(width: Tensor, offset: Tensor, alpha: float) -> Tensor:
    """E[exp(−½(gu − e)²)] for u ~ (1 − u²)^k, k = 1/(α − 1), by quadrature that follows the peak."""
    k = 1 / (alpha - 1)
    u, height, weight = line_nodes(width, offset, power=k + 1, drop=LINE_DROP, count=LINE_NODES)
    # log of the weights times (1 − u²)^{k+1}, over its integral √π Γ(k+1)/Γ(k+3/2)
    eps = torch.full((), alpha - 1, dtype=u.dtype, device=u.device)
    log_total = 0.5 * math.log(math.pi / k) + gamma_gap(eps, 1)
    log_weight = weight.log() - (k + 1) * torch.log1p((u / height) ** 2) - log_total
    z = width.unsqueeze(-1) * u - offset.unsqueeze(-1)
    return torch.exp(log_weight - 0.5 * z * z).sum(-1)


def _gaussian(loc: Tensor, variance: Tensor, centers: Tensor, scales: Tensor) -> Tensor:
    """N(μ; μ_j, Σ + Σ_j) in any dimension."""
    tril = cholesky(variance.unsqueeze(-3) + scales)
    z = solve(tril, centers - loc.unsqueeze(-2))
    size = log_diagonal(tril) + 0.5 * loc.shape[-1] * math.log(2 * math.pi)
    return torch.exp(-0.5 * z.square().sum(-1) - size)


def _paraboloid(
    loc: Tensor, variance: Tensor, centers: Tensor, scales: Tensor, angles: int
) -> Tensor:
    """α = 2 in two dimensions, in the metric of the basis functions: t = μ + S u, S = ρ L.

    Their factors M and S are lower triangular, and so is G = M⁻¹ S; e = M⁻¹ (μ_j − μ).
    """
    tril, metric = cholesky(variance), cholesky(scales)
    stretch = radius(2.0, log_diagonal(tril), 2)[..., None, None] * tril
    s11, s21, s22 = (entry.unsqueeze(-1) for entry in _entries(stretch))
    m11, m21, m22 = _entries(metric)
    i11, i22 = 1 / m11, 1 / m22
    i21 = -m21 * i11 * i22
    dx, dy = (centers[:, i] - loc[..., i : i + 1] for i in range(2))
    first = i11 * s11
    upper = torch.stack((first, torch.zeros_like(first)), -1)
    lower = torch.stack((i21 * s11 + i22 * s21, i22 * s22), -1)
    offset = torch.stack((i11 * dx, i21 * dx + i22 * dy), -1)
    return disk_expectation(torch.stack((upper, lower), -2), offset, angles) * (i11 * i22)


def _entries(tril: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return tril[..., 0, 0], tril[..., 1, 0], tril[..., 1, 1]


def _result_dtype(loc: Tensor) -> torch.dtype:
    half = loc.dtype in (torch.float16, torch.bfloat16)
    return torch.float32 if half and autocast_dtype(loc.device) is not None else loc.dtype


def _check(loc: Tensor, variance: Tensor, basis: GaussianBasis, alpha: float, angles: int) -> float:
    check_real(loc, "loc")
    check_real(variance, "variance")
    check_basis(basis)
    alpha = check_alpha(alpha, basis.dims)
    check_device(variance, loc, "variance", "loc")
    check_device(basis.centers, loc, "basis", "loc")
    check_count(angles, "angles", least=2)
    check_finite(loc, "loc")
    if basis.centers.ndim == 1:
        check_same_shape(loc, variance, "variance")
        check_positive(variance, "variance")
        return alpha
    if loc.shape[-1:] != basis.centers.shape[-1:]:
        raise FenchelError(
            f"loc must have shape (…, {basis.dims}) as the basis, got {tuple(loc.shape)}"
        )
    check_matrices(loc, variance, "variance")
    check_definite(variance, "variance")
    return alpha


def check_alpha(alpha: float, dims: int) -> float:
    """`alpha` must have a closed-form or one-dimensional expectation in `dims` dimensions."""
    if isinstance(alpha, bool) or not isinstance(alpha, Real):
        raise FenchelError(f"alpha must be a number, got {alpha!r}")
    alpha = math.ldexp(alpha, 0)  # as float(alpha), which torch.compile might keep as a symbol
    if alpha == 1 or (alpha == 2 and dims == 2) or (1 <= alpha <= 2 and dims == 1):
        return alpha
    known = {1: "in [1, 2] on the line", 2: "1 or 2 in the plane"}.get(
        dims, f"1 in {dims} dimensions"
    )
    raise FenchelError(f"alpha must be {known}, got {alpha}")
