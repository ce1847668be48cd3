"""The parameters of a density: computed from a query, or the moments of a discrete attention."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, final

import torch
from torch import Tensor, nn

from fenchel.autocast import without_autocast
from fenchel.checks import check_count
from fenchel.continuous.family import matching_scale
from fenchel.continuous.mixture import Mixture
from fenchel.continuous.moments import fit_mixture
from fenchel.continuous.positions import positions_within, regular_positions
from fenchel.continuous.triangles import cholesky, log_diagonal
from fenchel.continuous.validation import check_nonempty
from fenchel.continuous.validity import valid_pieces, zero_elsewhere
from fenchel.continuous.values import Positions
from fenchel.errors import FenchelError
from fenchel.operators.layout import at_least_float32

NARROWEST = 1e-6  # added to the variances of pooled parameters


class Seen(NamedTuple):
    """The keys (B, L, E), which of them are valid, and their positions.

    Keys that are not valid are zero if a discrete attention reads them.
    """

    keys: Tensor
    lengths: Tensor | None
    mask: Tensor | None
    positions: Positions

    @property
    def valid(self) -> Tensor | None:
        return valid_pieces(self.keys.shape[-2], self.lengths, self.mask)


@final
class PooledParameters(nn.Module):
    """μ = sigmoid(Wv + b) and σ² = softplus(W′v + b′) of a query v; in the plane Σ = LLᵀ.

    The diagonal of L is softplus of an affine function, so Σ is positive definite. The mixture weights
    of several modes are the softmax of another affine function.
    """

    def __init__(self, query_size: int, dims: int, heads: int = 1, modes: int = 1) -> None:
        super().__init__()
        check_count(query_size, "query_size")
        _check_counts(heads, modes)
        self.dims, self.heads, self.modes = dims, heads, modes
        self.location = nn.Linear(query_size, heads * modes * dims)
        self.spread = nn.Linear(query_size, heads * modes * dims * (dims + 1) // 2)
        self.mixing = nn.Linear(query_size, heads * modes) if modes > 1 else None

    def forward(self, query: Tensor, seen: Seen) -> tuple[Mixture, None]:
        if query.shape[-1] != self.location.in_features:
            size = self.location.in_features
            raise FenchelError(f"query must have size {size}, got {query.shape[-1]}")
        each = (self.heads, self.modes)
        loc = torch.sigmoid(at_least_float32(self.location(query))).unflatten(-1, (*each, -1))
        spread = at_least_float32(self.spread(query)).unflatten(-1, (*each, -1))
        if self.mixing is None:
            mixing = torch.ones_like(loc[..., 0])
        else:
            mixing = torch.softmax(at_least_float32(self.mixing(query)).unflatten(-1, each), -1)
        if self.dims == 1:
            variance = nn.functional.softplus(spread.squeeze(-1)) + NARROWEST
            return Mixture(mixing, loc.squeeze(-1), variance), None
        return Mixture(mixing, loc, self._covariance(spread)), None

    @staticmethod
    def _covariance(spread: Tensor) -> Tensor:
        first, second, cross = spread.unbind(-1)
        first, second = nn.functional.softplus(first), nn.functional.softplus(second)
        corner = first * cross
        rows = ((first * first + NARROWEST, corner), (corner, cross**2 + second**2 + NARROWEST))
        return torch.stack([torch.stack(row, -1) for row in rows], -2)

    def extra_repr(self) -> str:
        return f"heads={self.heads}, modes={self.modes}"


@final
class MomentParameters(nn.Module):
    """The mean and variance of discrete attention, one attention per head, without own parameters.

    An attention is a module called as `(query, keys, lengths=…, mask=…)` that returns a context and
    weights (B, T, L), such as `AdditiveAttention`. The variance of a single piece, 1/(12 L²) on the line
    and 1/(12 L) in the plane, is added to the moments, so attention to one piece has a positive width.

    The variances are scaled such that the density of the family with this `alpha` has the moments;
    at α = 1 no scaling is needed.
    """

    def __init__(
        self,
        attention: nn.Module | Iterable[nn.Module],
        dims: int,
        modes: int = 1,
        alpha: float = 1.0,
    ) -> None:
        super().__init__()
        self.attentions = nn.ModuleList(_modules(attention))
        self.dims, self.heads, self.modes = dims, len(self.attentions), modes
        self.alpha = alpha
        _check_counts(self.heads, modes)

    def forward(self, query: Tensor, seen: Seen) -> tuple[Mixture, Tensor]:
        """The density, and the weights (B, T, H, L) of the discrete attention."""
        each = [
            attend(query, seen.keys, lengths=seen.lengths, mask=_over_steps(seen.mask))[1]
            for attend in self.attentions
        ]
        weights = at_least_float32(torch.stack(each, 2))
        places = self._places(seen, weights)
        count = _count(seen, weights)
        check_nonempty((count > 0).flatten(1).all(-1))
        floor = count.clamp(min=1) ** (-2 / self.dims) / 12
        with without_autocast(weights.device):
            mixture = fit_mixture(weights, places, self.modes, floor, dims=self.dims)
            return self._matched(mixture), weights

    def _matched(self, mixture: Mixture) -> Mixture:
        """The parameters of densities that have the moments of these Gaussians."""
        if self.alpha == 1:
            return mixture
        line = self.dims == 1
        tril = cholesky(mixture.variance[..., None, None] if line else mixture.variance)
        scale = matching_scale(self.alpha, log_diagonal(tril), self.dims)
        scale = scale if line else scale[..., None, None]
        return mixture._replace(variance=scale * mixture.variance)

    def _places(self, seen: Seen, weights: Tensor) -> Tensor:
        """Positions that broadcast against weights (B, T, H, L)."""
        length, kind = weights.shape[-1], {"dtype": weights.dtype, "device": weights.device}
        if isinstance(seen.positions, Tensor):
            plane = self.dims > 1
            places = seen.positions.to(weights.dtype)
            places = zero_elsewhere(places, seen.valid, vectors=plane)
            return places[:, None, None] if places.ndim > 1 + plane else places
        if seen.lengths is not None and self.dims == 1:
            return positions_within(seen.lengths, length, weights.dtype)[:, None, None]
        sizes = (length,) if seen.positions is None else seen.positions
        return regular_positions(*sizes, **kind)


def _modules(attention: Any) -> list[nn.Module]:
    """The attentions as a list, one per head."""
    several = isinstance(attention, Iterable) and not isinstance(attention, Tensor)
    each: list[Any] = list(attention) if several else [attention]
    for one in each:
        if not isinstance(one, nn.Module):
            raise FenchelError(
                "attention must be a module called as attention(query, keys, lengths=…, mask=…),"
                f" got {type(one).__name__}"
            )
    return each


def _over_steps(mask: Tensor | None) -> Tensor | None:
    """(B, L) as a mask of weights (B, T, L)."""
    return None if mask is None else mask.unsqueeze(1)


def _count(seen: Seen, weights: Tensor) -> Tensor:
    """The number of valid pieces, broadcastable to (B, T, H)."""
    total = torch.full((1, 1, 1), weights.shape[-1], dtype=weights.dtype, device=weights.device)
    if seen.lengths is not None:
        total = seen.lengths[:, None, None].to(weights.dtype)
    if seen.mask is not None:
        total = torch.minimum(total, seen.mask.sum(-1)[..., None, None].to(weights.dtype))
    return total


def _check_counts(heads: int, modes: int) -> None:
    for name, count in (("heads", heads), ("modes", modes)):
        check_count(count, name)
