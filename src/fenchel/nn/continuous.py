"""Continuous attention as layers: intervals of a sequence, ellipses of an image."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable
from typing import ClassVar, Self, final

from torch import Tensor, nn

from fenchel.checks import check_boolean, check_device, check_number
from fenchel.continuous.basis import GaussianBasis, check_basis
from fenchel.continuous.expectation import check_alpha
from fenchel.continuous.mixture import Mixture
from fenchel.continuous.validation import check_real
from fenchel.continuous.validity import zero_elsewhere
from fenchel.continuous.values import Positions, check_pieces, ridge_values
from fenchel.errors import rule
from fenchel.mechanisms.masks import check_broadcast, check_lengths
from fenchel.nn.density_parameters import MomentParameters, PooledParameters, Seen

PENALTY = 0.1


class _ContinuousAttention(nn.Module, ABC):
    """Values become a function, a query a density; the context is the function's expectation.

    The subclass says in how many dimensions. `parameters_of` is the way from the query to the
    density: `PooledParameters` or `MomentParameters`.
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
            expected, got = f"a basis in {self.dims} dimensions", basis.dims
            raise rule("the basis must be where the attention is", expected=expected, got=got)
        check_alpha(alpha, self.dims)
        check_number(penalty, name="penalty", above=0)
        if not isinstance(parameters_of, PooledParameters | MomentParameters):
            expected, got = "PooledParameters or MomentParameters", type(parameters_of).__name__
            raise rule("a query has parameters of a density", expected=expected, got=got)
        if not isinstance(add_discrete, bool):
            expected, got = "True or False", repr(add_discrete)
            raise rule("add_discrete is a choice", expected=expected, got=got)
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
        """Parameters from the moments of a discrete attention, or one a head; none are new."""
        source = MomentParameters(attention, cls.dims, modes)
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
        """As `moments`, and the context of the discrete attention is added to the continuous one."""
        source = MomentParameters(attention, cls.dims, modes)
        return cls(basis, source, alpha=alpha, penalty=penalty, add_discrete=True)

    def fit(
        self,
        values: Tensor,
        lengths: Tensor | None = None,
        mask: Tensor | None = None,
        positions: Positions = None,
    ) -> Tensor:
        """The coefficients (B, N, E) of the value function; a decoder computes them once."""
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
        """Context and density.

        Args:
            query: (B, query_size), or (B, T, query_size) for T steps: the pooled representation, or
                the query of the discrete attention.
            values: (B, L, E), E a multiple of the number of heads.
            lengths: integers (B,), the number of valid values.
            mask: boolean (B, L), or one that broadcasts to it; True where a value may be attended.
            positions: where the values lie, as for `fenchel.continuous.ridge_values`.
            keys: what the discrete attention compares the query with; the values unless given.
            coefficients: `fit(values, …)`, if it was computed before. With parameters from a pooled
                representation the cost is then independent of L.

        Returns:
            the context (B, E) or (B, T, E), and the density: a `Mixture` of shape (B, heads, modes) or
            (B, T, heads, modes).
        """
        self._check_inputs(query, values, keys)
        mask = None if mask is None else _one_an_item(mask, values)
        if lengths is not None:
            check_lengths(lengths, tuple(values.shape[:1]), values.shape[1], values)
        if coefficients is None:
            coefficients = self.fit(values, lengths, mask, positions)
        else:
            self._check_coefficients(coefficients, values)
            if isinstance(self.parameters_of, MomentParameters):
                check_pieces(values, positions, self.basis, lengths, mask)
        steps = query if query.ndim == 3 else query.unsqueeze(1)
        seen = Seen(values if keys is None else keys, lengths, mask, positions)
        mixture, weights = self.parameters_of(steps, seen)
        expectation = mixture.expectation(self.basis, self.alpha)
        context = self._attend(expectation, coefficients)
        if self.add_discrete and weights is not None:
            context = context + self._attend(
                weights, zero_elsewhere(values, seen.valid, vectors=True)
            )
        if query.ndim == 3:
            return context, mixture
        return context.squeeze(1), Mixture(*(part.squeeze(1) for part in mixture))

    def extra_repr(self) -> str:
        penalty = "" if self.penalty == PENALTY else f", penalty={self.penalty}"
        added = ", add_discrete=True" if self.add_discrete else ""
        return f"alpha={self.alpha}{penalty}{added}"

    @staticmethod
    def _attend(weights: Tensor, rows: Tensor) -> Tensor:
        """(B, T, H, M) weights of the rows (B, M, E), each head its own part of E: (B, T, E)."""
        heads = weights.shape[2]
        parts = rows.unflatten(-1, (heads, -1)).transpose(1, 2)
        mixed = weights.transpose(1, 2).to(parts.dtype) @ parts
        return mixed.transpose(1, 2).flatten(2)

    def _check_inputs(self, query: Tensor, values: Tensor, keys: Tensor | None) -> None:
        named = {"query": query, "values": values, "keys": values if keys is None else keys}
        for name, tensor in named.items():
            check_real(tensor, name)
        for name, tensor in named.items():
            check_device(tensor, values, name, "the values are")
        if query.ndim not in (2, 3):
            expected, got = "shape (B, size) or (B, T, size)", tuple(query.shape)
            raise rule("query holds vectors", expected=expected, got=got)
        if values.ndim != 3 or values.shape[0] != query.shape[0]:
            expected, got = f"shape ({query.shape[0]}, L, E)", tuple(values.shape)
            raise rule("values belong to the query", expected=expected, got=got)
        if keys is not None and (keys.ndim != 3 or keys.shape[:2] != values.shape[:2]):
            expected, got = "shape ({}, {}, …)".format(*values.shape), tuple(keys.shape)
            raise rule("keys belong to the values", expected=expected, got=got)
        if values.shape[-1] % self.parameters_of.heads:
            expected = f"a multiple of {self.parameters_of.heads} heads"
            raise rule("heads share the values", expected=expected, got=values.shape[-1])

    def _check_coefficients(self, coefficients: Tensor, values: Tensor) -> None:
        check_real(coefficients, "coefficients")
        check_device(coefficients, values, "coefficients", "the values are")
        wanted = (values.shape[0], len(self.basis), values.shape[-1])
        if tuple(coefficients.shape) != wanted:
            expected, got = f"shape {wanted}", tuple(coefficients.shape)
            raise rule("coefficients are those of the values", expected=expected, got=got)


def _one_an_item(mask: Tensor, values: Tensor) -> Tensor:
    """The mask (B, L), from one that broadcasts to it."""
    check_boolean(mask, "what is valid")
    check_broadcast(mask, tuple(values.shape[:2]), "mask")
    return mask.expand(values.shape[:2])


@final
class ContinuousAttention1d(_ContinuousAttention):
    r"""Attention to intervals: c = E_p[V(t)], V a ridge regression of the values on a basis.

    The density p on the line is argmax E_p[−(t−μ)²/2σ²] − Ω_α(p), a Gaussian at α = 1 and a truncated
    parabola, zero outside an interval, at α = 2; the sequence is stretched over [0, 1]. With several
    heads each has a density of its own and a part of the values; with several modes each density is
    a mixture. Three ways to make one:

    * `pooled(query_size, basis)`: μ and σ² are computed from the query, here a pooled representation;
    * `moments(attention, basis)`: μ and σ² are those of a discrete attention such as
      `AdditiveAttention`; one mode more than one is fitted by expectation maximisation;
    * `combined(attention, basis)`: the same, and the two contexts are added. No new parameters.

    Nothing is kept between calls but the regressions of a fixed basis, which depend on lengths only.

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
    r"""Attention to ellipses: c = E_p[V(t)] over an image stretched over the unit square.

    As `ContinuousAttention1d`, with μ in the plane and Σ a matrix: a Gaussian at α = 1, at α = 2 a
    truncated paraboloid, zero outside an ellipse. Positions are given with every call: `(14, 14)` for
    a grid of regions counted row by row, or the centers of bounding boxes, (B, L, 2).

    Reference: Martins et al. (2020), *Sparse and Continuous Attention Mechanisms*, §4.

    >>> import torch
    >>> from fenchel.continuous import GaussianBasis
    >>> layer = ContinuousAttention2d.pooled(8, GaussianBasis.grid((10, 10), 0.03), heads=2, modes=3)
    >>> context, density = layer(torch.randn(2, 8), torch.randn(2, 196, 6), positions=(14, 14))
    >>> context.shape, density.loc.shape, density.variance.shape
    (torch.Size([2, 6]), torch.Size([2, 2, 3, 2]), torch.Size([2, 2, 3, 2, 2]))
    """

    dims = 2
