"""Layers of continuous attention, over sequences and images."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable
from typing import ClassVar, Self, final

from torch import Tensor, nn

from fenchel.checks import NotScriptable, check_boolean, check_device, check_number
from fenchel.continuous.basis import GaussianBasis, check_basis
from fenchel.continuous.expectation import check_alpha
from fenchel.continuous.mixture import Mixture
from fenchel.continuous.validation import check_real
from fenchel.continuous.validity import valid_pieces, zero_elsewhere
from fenchel.continuous.values import (
    Positions,
    check_pieces,
    ridge_values,
    value_regressor,
)
from fenchel.errors import FenchelError
from fenchel.mechanisms.masks import check_broadcast, check_lengths
from fenchel.nn.density_parameters import MomentParameters, PooledParameters, Seen

PENALTY = 0.1  # see docs/continuous.md, "Value functions"


class _ContinuousAttention(NotScriptable, nn.Module, ABC):
    """The expectation of a value function under a density that depends on the query.

    Subclasses set the number of dimensions. `parameters_of` computes the parameters of the density:
    `PooledParameters` or `MomentParameters`.
    """

    dims: ClassVar[int]

    def __init__(
        self,
        basis: GaussianBasis,
        parameters_of: PooledParameters | MomentParameters,
        *,
        alpha: float = 2.0,
        penalty: float = PENALTY,
        add_discrete: bool = False,
    ) -> None:
        super().__init__()
        check_basis(basis)
        if basis.dims != self.dims:
            raise FenchelError(f"basis must have {self.dims} dimensions, got {basis.dims}")
        check_alpha(alpha, self.dims)
        check_number(penalty, name="penalty", above=0)
        if not isinstance(parameters_of, PooledParameters | MomentParameters):
            raise FenchelError(
                "parameters_of must be PooledParameters or MomentParameters,"
                f" got {type(parameters_of).__name__}"
            )
        if not isinstance(add_discrete, bool):
            raise FenchelError(f"add_discrete must be True or False, got {add_discrete!r}")
        self.basis, self.parameters_of = basis, parameters_of
        self.alpha, self.penalty, self.add_discrete = alpha, penalty, add_discrete

    @classmethod
    def pooled(
        cls,
        query_size: int,
        basis: GaussianBasis,
        *,
        heads: int = 1,
        modes: int = 1,
        alpha: float = 2.0,
        penalty: float = PENALTY,
    ) -> Self:
        """Parameters from a pooled representation v: μ = sigmoid(Wv + b), σ² = softplus(W′v + b′)."""
        source = PooledParameters(query_size, cls.dims, heads, modes)
        return cls(basis, source, alpha=alpha, penalty=penalty)

    @classmethod
    def moments(
        cls,
        attention: nn.Module | Iterable[nn.Module],
        basis: GaussianBasis,
        *,
        modes: int = 1,
        alpha: float = 2.0,
        penalty: float = PENALTY,
    ) -> Self:
        """Parameters from the moments of a discrete attention, or a list with one per head.

        The layer has no parameters of its own.
        """
        source = MomentParameters(attention, cls.dims, modes, cls._matched_alpha(alpha))
        return cls(basis, source, alpha=alpha, penalty=penalty)

    @classmethod
    def combined(
        cls,
        attention: nn.Module | Iterable[nn.Module],
        basis: GaussianBasis,
        *,
        modes: int = 1,
        alpha: float = 2.0,
        penalty: float = PENALTY,
    ) -> Self:
        """As `moments`, and adds the context of the discrete attention to the continuous one."""
        source = MomentParameters(attention, cls.dims, modes, cls._matched_alpha(alpha))
        return cls(basis, source, alpha=alpha, penalty=penalty, add_discrete=True)

    @classmethod
    def _matched_alpha(cls, alpha: float) -> float:
        """The α at which the density has the moments of the discrete attention.

        As in the paper: in the plane the density has these moments for every α. On the line, σ² is the
        variance of the attention, which is the variance of the density only at α = 1.
        """
        return alpha if cls.dims == 2 else 1.0

    def fit(
        self,
        values: Tensor,
        lengths: Tensor | None = None,
        mask: Tensor | None = None,
        positions: Positions = None,
    ) -> Tensor:
        """The coefficients (B, N, E) of the value function; a decoder computes them once per sequence."""
        return ridge_values(values, positions, self.basis, self.penalty, lengths=lengths, mask=mask)

    def forward(
        self,
        query: Tensor,
        values: Tensor,
        lengths: Tensor | None = None,
        mask: Tensor | None = None,
        positions: Positions = None,
        *,
        keys: Tensor | None = None,
        coefficients: Tensor | None = None,
    ) -> tuple[Tensor, Mixture]:
        """Compute the context and the density.

        Args:
            query: (B, query_size), or (B, T, query_size) for T steps: the pooled representation, or
                the query of the discrete attention.
            values: (B, L, E), with E divisible by the number of heads.
            lengths: The number of valid values per sequence, integers (B,).
            mask: Boolean, broadcastable to (B, L); True marks valid values.
            positions: The positions of the values, as for `fenchel.continuous.ridge_values`.
            keys: The keys of the discrete attention, the values by default.
            coefficients: `fit(values, …)`, if already computed. For `pooled` layers the cost is then
                independent of L.

        Returns:
            The context (B, E) or (B, T, E), and the density: a `Mixture` of shape (B, heads, modes) or
            (B, T, heads, modes).
        """
        self._check_inputs(query, values, keys)
        mask = None if mask is None else _expanded_mask(mask, values)
        if lengths is not None:
            check_lengths(lengths, tuple(values.shape[:1]), values.shape[1], values)
        steps = query if query.ndim == 3 else query.unsqueeze(1)
        if coefficients is None and steps.shape[1] * self.parameters_of.heads > values.shape[-1]:
            coefficients = self.fit(values, lengths, mask, positions)
        elif coefficients is not None:
            self._check_coefficients(coefficients, values)
        if isinstance(self.parameters_of, MomentParameters):
            check_pieces(values, positions, self.basis, lengths, mask)
        valid = valid_pieces(values.shape[1], lengths, mask)
        if coefficients is None or isinstance(self.parameters_of, MomentParameters):
            values = zero_elsewhere(values, valid, vectors=True)
            keys = zero_elsewhere(keys, valid, vectors=True) if keys is not None else values
        seen = Seen(values if keys is None else keys, lengths, mask, positions)
        mixture, weights = self.parameters_of(steps, seen)
        expectation = mixture.expectation(self.basis, self.alpha)
        if coefficients is None:
            context = self._attend_values(expectation, weights, values, seen)
        else:
            context = self._attend(expectation, coefficients)
            if self.add_discrete and weights is not None:
                context = context + self._attend(weights, values)
        if query.ndim == 3:
            return context, mixture
        return context.squeeze(1), Mixture(*(part.squeeze(1) for part in mixture))

    def extra_repr(self) -> str:
        penalty = "" if self.penalty == PENALTY else f", penalty={self.penalty}"
        added = ", add_discrete=True" if self.add_discrete else ""
        return f"alpha={self.alpha}{penalty}{added}"

    def _attend_values(
        self, expectation: Tensor, weights: Tensor | None, values: Tensor, seen: Seen
    ) -> Tensor:
        """The context without coefficients: the values weighted by r(FᵀF + λ1)⁻¹Fᵀ."""
        regressor = value_regressor(
            values, seen.positions, self.basis, self.penalty, lengths=seen.lengths, mask=seen.mask
        )
        of_values = expectation.to(regressor.dtype) @ regressor.unsqueeze(-3)
        if self.add_discrete and weights is not None:
            of_values = of_values + weights.to(of_values.dtype)
        return self._attend(of_values, values)

    @staticmethod
    def _attend(weights: Tensor, rows: Tensor) -> Tensor:
        """Mix rows (B, M, E) with weights (B, T, H, M), one part of E per head: (B, T, E)."""
        heads = weights.shape[2]
        parts = rows.unflatten(-1, (heads, -1)).transpose(1, 2)
        mixed = weights.transpose(1, 2).to(parts.dtype) @ parts
        return mixed.transpose(1, 2).flatten(2)

    def _check_inputs(self, query: Tensor, values: Tensor, keys: Tensor | None) -> None:
        named = {"query": query, "values": values, "keys": values if keys is None else keys}
        for name, tensor in named.items():
            check_real(tensor, name)
        for name, tensor in named.items():
            check_device(tensor, values, name, "the values")
        if query.ndim not in (2, 3):
            got = tuple(query.shape)
            raise FenchelError(f"query must have shape (B, size) or (B, T, size), got {got}")
        if values.ndim != 3 or values.shape[0] != query.shape[0]:
            wanted, got = f"({query.shape[0]}, L, E)", tuple(values.shape)
            raise FenchelError(f"values must have shape {wanted}, got {got}")
        if keys is not None and (keys.ndim != 3 or keys.shape[:2] != values.shape[:2]):
            wanted, got = "({}, {}, …)".format(*values.shape), tuple(keys.shape)
            raise FenchelError(f"keys must have shape {wanted}, got {got}")
        if values.shape[-1] % self.parameters_of.heads:
            heads, got = self.parameters_of.heads, values.shape[-1]
            raise FenchelError(
                f"the size of the values must be divisible by {heads} heads, got {got}"
            )

    def _check_coefficients(self, coefficients: Tensor, values: Tensor) -> None:
        check_real(coefficients, "coefficients")
        check_device(coefficients, values, "coefficients", "the values")
        wanted = (values.shape[0], len(self.basis), values.shape[-1])
        if tuple(coefficients.shape) != wanted:
            raise FenchelError(
                f"coefficients must have shape {wanted}, got {tuple(coefficients.shape)}"
            )


def _expanded_mask(mask: Tensor, values: Tensor) -> Tensor:
    """The mask, expanded to (B, L)."""
    check_boolean(mask)
    check_broadcast(mask, tuple(values.shape[:2]), "mask")
    return mask.expand(values.shape[:2])


@final
class ContinuousAttention1d(_ContinuousAttention):
    r"""Continuous attention over a sequence: c = E_p[V(t)] for a density p on the line.

    The value function V is the ridge regression of the values on a basis, with the sequence stretched
    over [0, 1]. The density solves

        argmax_p E_p[−(t−μ)²/2σ²] − Ω_α(p),

    a Gaussian at α = 1, and at α = 2 a truncated parabola, which is zero outside an interval. Each head
    has its own density and its own part of the values. With several modes, a density is a mixture.
    There are three constructors:

    * `pooled(query_size, basis)` computes μ and σ² from the query, a pooled representation;
    * `moments(attention, basis)` uses the mean and variance of a discrete attention such as
      `AdditiveAttention`; several modes are fitted by expectation maximisation;
    * `combined(attention, basis)` also adds the context of the discrete attention.

    The regression matrices of a fixed basis, which depend only on lengths, are cached between calls.
    Cost: O(N L + L E) per query for N basis functions, or O(N E) with precomputed coefficients.

    Reference: Martins et al. (2020), *Sparse and Continuous Attention Mechanisms*, §3 and §4.

    >>> import torch
    >>> from fenchel.continuous import GaussianBasis
    >>> from fenchel.nn import AdditiveAttention
    >>> basis = GaussianBasis.grid(16, (0.1, 0.5))
    >>> layer = ContinuousAttention1d.combined(AdditiveAttention(8, 6, 10), basis)
    >>> context, density = layer(torch.randn(2, 8), torch.randn(2, 50, 6), torch.tensor([50, 31]))
    >>> context.shape, density.loc.shape
    (torch.Size([2, 6]), torch.Size([2, 1, 1]))
    """

    dims = 1


@final
class ContinuousAttention2d(_ContinuousAttention):
    r"""Continuous attention over an image: c = E_p[V(t)] for a density p in the plane.

    As `ContinuousAttention1d`, with the image stretched over the unit square: a Gaussian at α = 1, and
    at α = 2 a truncated paraboloid, which is zero outside an ellipse. The density of `moments` and
    `combined` has the mean and covariance of the discrete attention; at α = 2, Σ is 9π √det(C) C for a
    covariance C. Every call needs `positions`: `(14, 14)` for a grid of regions in row-major order, or
    the centers of bounding boxes, (B, L, 2).

    Reference: Martins et al. (2020), *Sparse and Continuous Attention Mechanisms*, §4.

    >>> import torch
    >>> from fenchel.continuous import GaussianBasis
    >>> layer = ContinuousAttention2d.pooled(8, GaussianBasis.grid((10, 10), 0.03), heads=2, modes=3)
    >>> context, density = layer(torch.randn(2, 8), torch.randn(2, 196, 6), positions=(14, 14))
    >>> context.shape, density.loc.shape, density.variance.shape
    (torch.Size([2, 6]), torch.Size([2, 2, 3, 2]), torch.Size([2, 2, 3, 2, 2]))
    """

    dims = 2
