"""Cholesky factors of small matrices, elementwise for two dimensions, where batches are large."""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.continuous.precision import wide


def cholesky(matrix: Tensor) -> Tensor:
    """The lower factor of the symmetric part of (…, D, D); NaN where there is none.

    It is computed in float64 and for any variances that the dtype of the matrix can hold.
    """
    return _factor(wide(matrix)).to(matrix.dtype)


def _factor(matrix: Tensor) -> Tensor:
    if matrix.shape[-1] == 1:
        return matrix.sqrt()
    symmetric = matrix + 0.5 * (matrix.mT - matrix)  # the sum of both could overflow
    if matrix.shape[-1] != 2:
        return _scaled_factor(symmetric)
    first = symmetric[..., 0, 0].sqrt()
    cross = symmetric[..., 0, 1] / first
    second = torch.sqrt(symmetric[..., 1, 1] - cross * cross)
    upper = torch.stack((first, torch.zeros_like(first)), -1)
    return torch.stack((upper, torch.stack((cross, second), -1)), -2)


def _scaled_factor(matrix: Tensor) -> Tensor:
    """S chol(S⁻¹ΣS⁻¹), S² ≈ diag Σ: nothing overflows, not even in the derivative."""
    scale = power_of_two(matrix.diagonal(dim1=-2, dim2=-1).sqrt())  # L does not depend on S
    unit = matrix / scale.unsqueeze(-1) / scale.unsqueeze(-2)
    tril, failed = torch.linalg.cholesky_ex(unit)
    tril = torch.where((failed == 0)[..., None, None], tril, torch.nan)
    return scale.unsqueeze(-1) * tril


def power_of_two(numbers: Tensor) -> Tensor:
    """The largest power of two up to each number, a constant: scaling by it is exact."""
    return torch.exp2(torch.log2(numbers.detach()).floor())


def is_definite(matrix: Tensor) -> Tensor:
    """Whether the symmetric part has a factor, (…)."""
    return (cholesky(matrix).diagonal(dim1=-2, dim2=-1) > 0).all(-1)


def solve(tril: Tensor, vector: Tensor) -> Tensor:
    """L⁻¹ v for L (…, D, D) and v (…, D), broadcast."""
    if tril.shape[-1] == 1:
        return vector / tril.squeeze(-1)
    if tril.shape[-1] == 2:
        first = vector[..., 0] / tril[..., 0, 0]
        second = (vector[..., 1] - tril[..., 1, 0] * first) / tril[..., 1, 1]
        return torch.stack((first, second), -1)
    batch = torch.broadcast_shapes(tril.shape[:-2], vector.shape[:-1])
    tril = tril.expand(*batch, *tril.shape[-2:])
    column = vector.expand(*batch, vector.shape[-1]).unsqueeze(-1)
    return torch.linalg.solve_triangular(tril, column, upper=False).squeeze(-1)


def log_diagonal(tril: Tensor) -> Tensor:
    """½ log det of the matrix that L is a factor of."""
    return sum((tril[..., i, i].log() for i in range(1, tril.shape[-1])), tril[..., 0, 0].log())
