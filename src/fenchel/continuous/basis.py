"""Gaussian radial basis functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, final

import torch
from torch import Tensor, nn

from fenchel.checks import check_count, check_device, check_number
from fenchel.continuous.triangles import cholesky, log_diagonal, solve
from fenchel.continuous.validation import check_definite, check_finite, check_positive, check_real
from fenchel.errors import FenchelError


@final
class GaussianBasis(nn.Module):
    """N Gaussian basis functions ψ_j(t) = N(t; center_j, covariance_j).

    Calling the module evaluates all functions. Its tensors are buffers, or parameters if they are given
    as `nn.Parameter`.

    Args:
        centers: (N,) for functions on the line, (N, D) for D dimensions.
        scales: Standard deviations (N,) on the line; covariance matrices (N, D, D) otherwise.

    >>> import torch
    >>> basis = GaussianBasis(torch.tensor([0.0, 0.5, 1.0]), torch.tensor([0.1, 0.1, 0.2]))
    >>> basis(torch.tensor([0.0, 0.5]))
    tensor([[3.9894e+00, 1.4867e-05, 7.4336e-06],
            [1.4867e-05, 3.9894e+00, 8.7641e-02]])
    """

    centers: Tensor
    scales: Tensor

    def __init__(self, centers: Tensor, scales: Tensor) -> None:
        super().__init__()
        _check(centers, scales)
        for name, value in (("centers", centers), ("scales", scales)):
            if isinstance(value, nn.Parameter):
                self.register_parameter(name, value)
            else:
                self.register_buffer(name, value)

    @classmethod
    def grid(
        cls,
        count: int | tuple[int, ...],
        scales: float | Sequence[float],
        *,
        low: float = 0.0,
        high: float = 1.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> GaussianBasis:
        """Evenly spaced centers from `low` to `high`, for each of the standard deviations `scales`.

        `count` is the number of centers on the line, or one number per dimension: `(10, 10)` gives the
        100 centers of a square.

        >>> len(GaussianBasis.grid(16, (0.1, 0.5))), len(GaussianBasis.grid((10, 10), 0.03))
        (32, 100)
        """
        counts = tuple(count) if isinstance(count, Sequence) else (count,)
        widths = _listed(scales)
        if not counts or not widths:
            raise FenchelError(
                f"a basis must have at least one center and one scale, got {count} and {scales}"
            )
        counts = [int(check_count(n, "count")) for n in counts]
        widths = [_number(width, "scale", above=0) for width in widths]
        low, high = (
            _number(end, name, above=-math.inf) for name, end in (("low", low), ("high", high))
        )
        axes = [torch.linspace(low, high, n, device=device, dtype=dtype) for n in counts]
        if len(counts) == 1:
            centers = axes[0].repeat(len(widths))
            widths = torch.tensor(widths, device=device, dtype=dtype)
            return cls(centers, widths.repeat_interleave(counts[0]))
        places = torch.stack(torch.meshgrid(*axes, indexing="xy"), -1).reshape(-1, len(counts))
        eye = torch.eye(len(counts), device=device, dtype=dtype)
        covariances = torch.cat([(w * w * eye).expand(len(places), -1, -1) for w in widths])
        return cls(places.repeat(len(widths), 1), covariances)

    @property
    def dims(self) -> int:
        """The number of dimensions D."""
        return 1 if self.centers.ndim == 1 else self.centers.shape[-1]

    def __len__(self) -> int:
        return self.centers.shape[0]

    def forward(self, points: Tensor) -> Tensor:
        """The functions at `points` (…) on the line or (…, D), as (…, N)."""
        check_real(points, "points")
        if self.centers.ndim == 2 and points.shape[-1:] != self.centers.shape[-1:]:
            raise FenchelError(
                f"points must have shape (…, {self.dims}), got {tuple(points.shape)}"
            )
        check_device(points, self.centers, "points", "the basis")
        return self.at(points, self.centers, self.scales)

    @staticmethod
    def at(points: Tensor, centers: Tensor, scales: Tensor) -> Tensor:
        """The functions with these centers and scales at `points`."""
        if centers.ndim == 1:
            z = (points.unsqueeze(-1) - centers) / scales
            return torch.exp(-0.5 * z * z) / (math.sqrt(2 * math.pi) * scales)
        tril = cholesky(scales)
        z = solve(tril, points.unsqueeze(-2) - centers)
        size = log_diagonal(tril) + 0.5 * centers.shape[-1] * math.log(2 * math.pi)
        return torch.exp(-0.5 * z.square().sum(-1) - size)

    def extra_repr(self) -> str:
        return f"functions={len(self)}, dims={self.dims}"


def _listed(scales: Any) -> list[Any]:
    alone = not isinstance(scales, Iterable) or getattr(scales, "ndim", 1) == 0
    return [scales] if alone else list(scales)


def _number(value: Any, name: str, *, above: float) -> float:
    """A number, or a tensor with one."""
    if isinstance(value, Tensor) and value.numel() == 1 and not value.is_meta:
        value = value.item()
    return check_number(value, name=name, above=above)  # pyright: ignore[reportArgumentType]


def check_basis(basis: GaussianBasis) -> None:
    if not isinstance(basis, GaussianBasis):
        raise FenchelError(
            f"basis must be a fenchel.continuous.GaussianBasis, got {type(basis).__name__}"
        )


def _check(centers: Tensor, scales: Tensor) -> None:
    check_real(centers, "centers")
    check_real(scales, "scales")
    if centers.ndim not in (1, 2) or centers.numel() == 0:
        raise FenchelError(
            f"centers must have shape (N,) or (N, D), N ≥ 1, got {tuple(centers.shape)}"
        )
    wanted = (*centers.shape, *centers.shape[1:])
    if tuple(scales.shape) != wanted:
        kind = "standard deviations" if centers.ndim == 1 else "covariance matrices"
        raise FenchelError(
            f"scales must be {kind} of shape {wanted}, got shape {tuple(scales.shape)}"
        )
    check_device(scales, centers, "scales", "the centers")
    check_finite(centers, "centers")
    if centers.ndim == 1:
        check_positive(scales, "scales")
    else:
        check_definite(scales, "scales")
