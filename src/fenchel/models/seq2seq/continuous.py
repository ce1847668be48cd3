"""The continuous part of "combined" attention: a density over the source, and a value function."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from fenchel.autocast import without_autocast
from fenchel.continuous.basis import GaussianBasis
from fenchel.continuous.expectation import entmax
from fenchel.continuous.positions import positions_within
from fenchel.continuous.precision import wide, wide_dtype
from fenchel.mechanisms.masks import within
from fenchel.models.seq2seq.config import BASIS_WIDTHS
from fenchel.models.seq2seq.interval import (
    CLOSED,
    Expectation,
    Gaussians,
    Positions,
    mean_and_variance,
    moments,
)
from fenchel.nn.continuous import PENALTY

LENGTHS_AT_ONCE = 32  # lengths whose factors are computed in one batch


@final
class Continuous(nn.Module):
    """The context c = E_p[V(t)] = rᵀB with r = E_p[ψ(t)] (`forward`) and V(t) = Bᵀψ(t) (`fit`).

    V is the ridge regression of the values on N Gaussians ψ, as in `fenchel.continuous.ridge_values`; p
    is the density of the α-family that has the mean and the variance of the attention weights, as in
    `fenchel.nn.ContinuousAttention1d.moments`. There are no learned parameters. The discrete context is
    linear in the values, and c in the coefficients B, so that one matrix product computes their sum.

    Reference: Martins et al. (2020), *Sparse and Continuous Attention Mechanisms*, §3 and §4.

    Args:
        count: Number of basis functions, N.
        alpha: α of the density, from 1 to 2.

    >>> import torch
    >>> layer, mask = Continuous(count=6, alpha=2.0), torch.ones(1, 4, dtype=torch.bool)
    >>> layer(torch.tensor([[[0.0, 0.5, 0.5, 0.0]]]), layer.positions(mask)).round(decimals=3)
    tensor([[[0.0000, 0.0000, 0.0170, 0.0170, 0.3880, 0.3880]]])
    """

    def __init__(self, count: int, alpha: float) -> None:
        super().__init__()
        self.basis, self.alpha = _basis(count), alpha
        self._kept: dict[tuple[int, torch.device], Tensor] = {}

    def positions(self, mask: Tensor) -> Positions:
        """The positions of the symbols of a mask (B, S) on [0, 1], the same for all steps."""
        kind = wide_dtype(mask.device)
        lengths = _lengths(mask)
        t = positions_within(lengths, mask.shape[1], kind)
        floor = torch.zeros(len(mask), 1, 3, dtype=kind, device=mask.device)
        floor[:, 0, 2] = lengths.to(kind) ** -2 / 12
        functions = Gaussians.of(self.basis.centers, self.basis.scales)
        powers = torch.stack([torch.ones_like(t), t, t * t], -1)
        return Positions(powers, floor, functions, self.alpha)

    def fit(self, values: Tensor, mask: Tensor, positions: Positions) -> Tensor:
        """B = (FᵀF + λ1)⁻¹ Fᵀ H, (B, N, H), for the values H and the functions F at the positions."""
        with without_autocast(values.device):
            functions = positions.functions
            design = self.basis.at(positions.powers[..., 1], functions.centers, functions.scales)
            design = design * mask.unsqueeze(-1)
            factor = self._factors(mask)[_lengths(mask) - 1]
            regressor = factor.mT @ (factor @ design.mT)
        return regressor.to(values.dtype) @ values

    def has_closed_form(self, device: torch.device) -> bool:
        """Whether `interval.expectation` computes r, which needs float64."""
        return self.alpha in CLOSED and wide_dtype(device) == torch.float64

    def forward(self, weights: Tensor, positions: Positions) -> Tensor:
        """r, (B, T, N), from attention weights (B, T, S)."""
        with without_autocast(weights.device):
            if self.has_closed_form(weights.device):
                return Expectation.apply(weights, positions)  # type: ignore[return-value]
            mean, variance = mean_and_variance(moments(weights, positions))
            found = entmax(mean.squeeze(-1), variance.squeeze(-1), self.basis, self.alpha)
            return found.to(weights.dtype)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}"

    def _factors(self, mask: Tensor) -> Tensor:
        """W (L, N, N) with (FᵀF + λ1)⁻¹ = WᵀW for ℓ positions at index ℓ − 1.

        They depend on ℓ only. They are computed once, on the CPU, for all ℓ up to a power of two, and
        are indexed on the device by lengths that the host does not know. They are never freed, since a
        recorded training step reads them again.
        """
        longest = 1 << (mask.shape[1] - 1).bit_length()
        key = longest, mask.device
        if key not in self._kept:
            self._kept[key] = _factors_of(len(self.basis), longest).to(mask.device)
        return self._kept[key]


def _lengths(mask: Tensor) -> Tensor:
    return mask.sum(1).clamp(min=1)  # 1 for a row of padding only


def _basis(count: int) -> GaussianBasis:
    """The Gaussians of "combined" attention."""
    return GaussianBasis.grid(count // len(BASIS_WIDTHS), BASIS_WIDTHS, device="cpu")


def _factors_of(count: int, longest: int) -> Tensor:
    """L⁻¹ with LLᵀ = FᵀF + λ1, for 1, …, `longest` regular positions."""
    basis = _basis(count)
    centers, scales = wide(basis.centers), wide(basis.scales)
    eye = torch.eye(count, dtype=centers.dtype, device="cpu")
    parts = []
    for lengths in torch.arange(1, longest + 1, device="cpu").split(LENGTHS_AT_ONCE):
        most = int(lengths[-1])
        design = basis.at(positions_within(lengths, most, centers.dtype), centers, scales)
        design = design * within(lengths, most).unsqueeze(-1)
        factor = torch.linalg.cholesky(design.mT @ design + PENALTY * eye)
        parts.append(torch.linalg.solve_triangular(factor, eye.expand_as(factor), upper=False))
    return torch.cat(parts)
