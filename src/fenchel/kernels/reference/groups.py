"""What fusedmax and oscarmax share: groups of entries that move together.

The map is the projection of z onto the simplex, where z is constant on every group, and the groups do
not change near x. Its (symmetric) Jacobian (N.26), and its derivative in the strength λ of the penalty
R, are

    J g = mean of g over the entry's group − mean of g over the support,    ∂p/∂λ = −J r,  r ∈ ∂R(p).

Both are constant near x: the map is piecewise linear in the scores and λ together.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fenchel.kernels.reference.entmax import mean


def group_means(values: Tensor, inside: Tensor, ids: Tensor, dim: int) -> Tensor:
    """For every entry, the sum of `values` over its group divided by the group's size in `inside`."""
    sums = torch.zeros_like(values).scatter_add(dim, ids, values)
    counts = torch.zeros_like(inside).scatter_add(dim, ids, inside)
    return (sums / counts.clamp(min=1)).gather(dim, ids)


def centre(values: Tensor, p: Tensor, dim: int) -> Tensor:
    """Subtract the mean over the support; zero off it, NaN where p is."""
    inside = (p != 0).to(values.dtype)
    centred = torch.where(p != 0, values - mean(values, inside, dim), 0.0)
    return centred + (p - p)


def grouped_backward(grad: Tensor, p: Tensor, ids: Tensor, dim: int) -> Tensor:
    """J g for groups numbered by `ids` along `dim`; numbers off the support are not used."""
    inside = p != 0
    grad = torch.where(inside, grad, 0.0)
    return centre(group_means(grad, inside.to(grad.dtype), ids, dim), p, dim)


def split_until_stable(
    jumps: Tensor,
    present: Tensor,
    level: Callable[[Tensor, Tensor], Tensor],
    split: Callable[[Tensor, Tensor], Tensor],
) -> tuple[Tensor, Tensor]:
    """Divide rows into groups until no group divides further; returns (level of every entry, jumps).

    A non-zero jump begins a group. `level(jumps, ids)` is the value that each group would have as a
    whole, and `split(jumps, level)` the jumps between entries above and below that value. Present
    entries come first.
    """
    while True:
        ids = torch.where(present, (jumps != 0).cumsum(-1), jumps.shape[-1] - 1)
        value = level(jumps, ids)
        further = torch.where(present & (jumps == 0), split(jumps, value), 0)
        if not bool(further.any()):
            return value, jumps
        jumps = jumps + further
