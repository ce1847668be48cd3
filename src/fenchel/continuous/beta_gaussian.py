"""β-Gaussian densities, from the Gaussian to the truncated paraboloid, in any dimension."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Size, Tensor
from torch.distributions import Distribution, constraints, transform_to

from fenchel.checks import check_dense, check_device, check_number
from fenchel.continuous.family import digamma_gap, gamma_gap, log_peak, log_power
from fenchel.continuous.triangles import cholesky, is_definite, log_diagonal, solve
from fenchel.continuous.validation import (
    check_definite,
    check_density_parameter,
    check_finite,
    check_items,
    check_matrices,
    check_points,
    check_real,
    check_together,
    validates,
)
from fenchel.errors import FenchelError

GAUSSIAN = 1e-20  # replaces α − 1 = 0 in denominators


class Ellipsoid(constraints.Constraint):
    """|L⁻¹(t − loc)| ≤ radius, the support of a truncated density."""

    event_dim = 1

    def __init__(self, loc: Tensor, scale_tril: Tensor, radius: Tensor) -> None:
        self.loc, self.scale_tril, self.radius = loc, scale_tril, radius

    def check(self, value: Tensor) -> Tensor:
        return _mahalanobis(value - self.loc, self.scale_tril) <= self.radius**2


class _PositiveDefinite(type(constraints.positive_definite)):
    """torch's constraint, checked by a Cholesky factorization for variances of any size."""

    def check(self, value: Tensor) -> Tensor:
        return constraints.symmetric.check(value) & is_definite(value)


transform_to.register(_PositiveDefinite, lambda _: transform_to(constraints.positive_definite))


class BetaGaussian(Distribution):
    r"""β-Gaussian density: a Gaussian at α = 1, a truncated paraboloid at α = 2.

    The density solves

        argmax_p E_p[−½ (t−μ)ᵀ Σ⁻¹ (t−μ)] − Ω_α(p)  =  h (1 − q(t)/ρ²)_+^{1/(α−1)},

    with q(t) = (t−μ)ᵀ Σ⁻¹ (t−μ). For α > 1 the support is an ellipsoid, and log_prob is −inf outside of
    it. All quantities are smooth in α ≥ 1, including α = 1, and differentiable in μ, Σ and α.

    `covariance_matrix` is the Σ of the score, as in the paper. The covariance of the density is the
    property `covariance`; the two are equal only at α = 1.

    Args:
        loc: The mean μ, (…, D).
        covariance_matrix: Σ, (…, D, D), positive definite.
        alpha: α ≥ 1, a number or a tensor that broadcasts to the batch.

    Reference: Martins et al. (2020), *Sparse and Continuous Attention Mechanisms*, §2.4.

    >>> import torch
    >>> density = BetaGaussian(torch.zeros(2), torch.eye(2), alpha=2.0)
    >>> density.log_prob(torch.tensor([[0.0, 0.0], [0.5, 0.0], [2.0, 0.0]])).exp()
    tensor([0.5642, 0.4392, 0.0000])
    >>> density.variance, density.radius
    (tensor([0.1881, 0.1881]), tensor(1.0623))
    """

    # torch declares a property and reads a class attribute.
    arg_constraints = {  # noqa: RUF012  # pyright: ignore[reportAssignmentType]
        "loc": constraints.real_vector,
        "covariance_matrix": _PositiveDefinite(),
        "alpha": constraints.greater_than_eq(1.0),
    }
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor,
        alpha: float | Tensor = 2.0,
        validate_args: bool | None = None,
    ) -> None:
        check_real(loc, "loc")
        check_real(covariance_matrix, "covariance_matrix")
        loc, covariance_matrix = _broadcast(loc, covariance_matrix)
        if validates(validate_args):
            check_finite(loc, "loc")
            check_definite(covariance_matrix, "covariance_matrix")
        self.alpha = _exponent(alpha, loc)
        if validates(validate_args):
            check_finite(self.alpha, "alpha")
            check_items(self.alpha >= 1, "alpha must be at least 1, got a smaller value")
        batch = torch.broadcast_shapes(loc.shape[:-1], self.alpha.shape)
        self.alpha = self.alpha.expand(batch)
        self.loc = loc.expand(*batch, *loc.shape[-1:])
        self.covariance_matrix = covariance_matrix.expand(*batch, *covariance_matrix.shape[-2:])
        self.scale_tril = cholesky(self.covariance_matrix)
        super().__init__(Size(batch), loc.shape[-1:], validate_args=validate_args)

    @property
    def dims(self) -> int:
        return self.loc.shape[-1]

    @property
    def half_log_det(self) -> Tensor:
        return log_diagonal(self.scale_tril)

    @property
    def log_peak(self) -> Tensor:
        """log p(μ)."""
        return log_peak(self.alpha - 1, self.half_log_det, self.dims)

    @property
    def radius(self) -> Tensor:
        """ρ, the extent of the support in units of Σ^½; infinite at α = 1."""
        eps = self.alpha - 1
        return torch.sqrt(2 / eps) * torch.exp(0.5 * eps * self.log_peak)

    @constraints.dependent_property(is_discrete=False, event_dim=1)
    def support(self) -> constraints.Constraint:
        return Ellipsoid(self.loc, self.scale_tril, self.radius)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def covariance(self) -> Tensor:
        """The covariance matrix of the density; Σ times a number that is 1 at α = 1."""
        eps = self.alpha - 1
        shrink = torch.exp(eps * self.log_peak) / (1 + 0.5 * eps * (self.dims + 2))
        return shrink[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        return self.covariance.diagonal(dim1=-2, dim2=-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """log p, −inf off the support."""
        value = check_points(value, "value", self.loc)
        if value.shape[-1:] != self.event_shape:
            raise FenchelError(f"value must have shape (…, {self.dims}), got {tuple(value.shape)}")
        check_together(value, self.loc, "value and the density")
        eps, peak = self.alpha - 1, self.log_peak
        q = _mahalanobis(value - self.loc, self.scale_tril)
        return peak + log_power(-0.5 * q * torch.exp(-eps * peak), eps)

    def entropy(self) -> Tensor:
        """Shannon's differential entropy −E[log p]."""
        return digamma_gap(self.alpha - 1, self.dims) - self.log_peak

    def log_power_integral(self, exponent: float) -> Tensor:
        """log ∫ p^exponent, for `tsallis_negentropy`."""
        eps = self.alpha - 1
        gap = gamma_gap(eps / exponent, self.dims) - gamma_gap(eps, self.dims)
        return (exponent - 1) * self.log_peak + gap - 0.5 * self.dims * math.log(exponent)

    def escort(self, beta: float) -> BetaGaussian:
        """The β-escort distribution p^β/∫p^β, β > 0, of the same family and with the same support.

        Its α is 1 + (α − 1)/β, and its Σ is this one's times exp((α−1)/β · log ∫p^β)/β.

        >>> import torch
        >>> density = BetaGaussian(torch.zeros(2), torch.eye(2), alpha=2.0).escort(0.5)
        >>> density.alpha, density.radius * density.covariance_matrix[0, 0].sqrt()
        (tensor(3.), tensor(1.0623))
        """
        check_number(beta, name="beta", above=0)
        eps = (self.alpha - 1) / beta
        factor = torch.exp(eps * self.log_power_integral(beta)) / beta
        covariance_matrix = factor[..., None, None] * self.covariance_matrix
        return BetaGaussian(self.loc, covariance_matrix, 1 + eps, self._validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """μ + √c L z/√(ε(½|z|² + g)), z normal, g ~ Gamma(1 + 1/ε): Gaussian as ε → 0."""
        shape = self._extended_shape(Size(sample_shape))
        eps = (self.alpha - 1).clamp(min=GAUSSIAN)
        z = torch.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        gamma = torch._standard_gamma((1 + 1 / eps).expand(shape[:-1]))
        spread = torch.sqrt(eps * (0.5 * z.square().sum(-1) + gamma))
        factor = torch.exp(0.5 * eps * self.log_peak) / spread
        return self.loc + factor.unsqueeze(-1) * (self.scale_tril @ z.unsqueeze(-1)).squeeze(-1)

    def expand(self, batch_shape: Any, _instance: Any = None) -> BetaGaussian:
        new: Any = self._get_checked_instance(BetaGaussian, _instance)
        batch = Size(batch_shape)
        new.alpha = self.alpha.expand(batch)
        new.loc = self.loc.expand(*batch, self.dims)
        for name in ("covariance_matrix", "scale_tril"):
            setattr(new, name, getattr(self, name).expand(*batch, self.dims, self.dims))
        Distribution.__init__(new, batch, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new


class TruncatedParaboloid(BetaGaussian):
    r"""argmax_p E_p[−½ (t−μ)ᵀ Σ⁻¹ (t−μ)] − ½∫p²: p(t) = [−λ − ½ (t−μ)ᵀ Σ⁻¹ (t−μ)]_+.

    The counterpart of the Gaussian under continuous sparsemax, with
    λ = −(Γ(D/2 + 2)/√det(2πΣ))^{2/(2+D)}. See `BetaGaussian`, of which it is the case α = 2.

    Reference: Martins et al. (2020), *Sparse and Continuous Attention Mechanisms*, Eq. 11.

    >>> import torch
    >>> density = TruncatedParaboloid(torch.zeros(2), torch.eye(2))
    >>> density.log_prob(torch.tensor([0.5, 0.0])).exp()  # 1/√π − ½ · 0.5²
    tensor(0.4392)
    """

    def __init__(
        self, loc: Tensor, covariance_matrix: Tensor, validate_args: bool | None = None
    ) -> None:
        super().__init__(loc, covariance_matrix, 2.0, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> BetaGaussian:
        return super().expand(
            batch_shape, self._get_checked_instance(TruncatedParaboloid, _instance)
        )


def _exponent(alpha: float | Tensor, loc: Tensor) -> Tensor:
    """α as a tensor on the device of the density: one for all, or one per batch item."""
    if not isinstance(alpha, Tensor) or alpha.dtype.is_floating_point:
        alpha = check_density_parameter(alpha, "alpha")
    elif alpha.dtype == torch.bool or alpha.dtype.is_complex:
        raise FenchelError(f"alpha must be real, got {alpha.dtype}")
    if isinstance(alpha, Tensor):
        check_dense(alpha, "alpha")
        if alpha.ndim:
            check_device(alpha, loc, "alpha", "loc")
        check_together(alpha, loc[..., 0], "alpha and the batch")
    return torch.as_tensor(alpha, dtype=loc.dtype, device=loc.device)


def _broadcast(loc: Tensor, matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Locations and matrices with the same batch shape and dtype."""
    check_device(matrix, loc, "covariance_matrix", "loc")
    dtype = torch.promote_types(loc.dtype, matrix.dtype)
    if dtype not in (torch.float32, torch.float64):
        raise FenchelError(
            f"loc and covariance_matrix must be torch.float32 or torch.float64, got {dtype}"
        )
    loc, matrix = loc.to(dtype), matrix.to(dtype)
    if loc.ndim == 0 or matrix.ndim < 2 or matrix.shape[-2:] != loc.shape[-1:] * 2:
        check_matrices(loc, matrix, "covariance_matrix")
    try:
        batch = torch.broadcast_shapes(loc.shape[:-1], matrix.shape[:-2])
    except RuntimeError as error:
        got = f"{tuple(loc.shape)} and {tuple(matrix.shape)}"
        raise FenchelError(
            f"loc and covariance_matrix must have batch shapes that broadcast, got {got}"
        ) from error
    return loc.expand(*batch, loc.shape[-1]), matrix.expand(*batch, *matrix.shape[-2:])


def _mahalanobis(difference: Tensor, scale_tril: Tensor) -> Tensor:
    """|L⁻¹ d|²"""
    return solve(scale_tril, difference).square().sum(-1)
