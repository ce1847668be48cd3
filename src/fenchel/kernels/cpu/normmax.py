"""normmax, row by row, on the CPU: argmax_p <p, x> - ||p||_alpha over the simplex, in float64 inside.

With c = 1/(alpha - 1) and u = (x - tau)_+ the map is u^c/sum u^c, where tau makes the (c+1)-norm of u
one. That norm is convex and falls with tau, so Newton's method from the left never overshoots, and is
done with ties in one step. Only entries less than 1 below the largest can have u > 0: they are kept.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fenchel.kernels.cpu.arithmetic.elementary64 import power64
from fenchel.kernels.cpu.batches.batch import BATCH, batch_workspace
from fenchel.kernels.cpu.batches.normmax import is_batched, solve_normmax_batches
from fenchel.kernels.cpu.launch.compilation import Kernel, reducing, sequential
from fenchel.kernels.cpu.launch.memory import load, store
from fenchel.kernels.cpu.launch.sharing import for_each_row, matrix_row
from fenchel.kernels.cpu.launch.threads import launch
from fenchel.kernels.cpu.thresholds.near_peak import list_near_peak, near_peak_workspace
from fenchel.kernels.cpu.thresholds.normmax_backward import normmax_backward, normmax_backward_alpha

__all__ = ["normmax", "normmax_backward", "normmax_backward_alpha"]


@reducing
def _sums(x, count, tau, c):
    """The sums of u^c and of u^(c+1)."""
    total, powers = 0.0, 0.0
    for i in range(count):
        u = load(x, i) - tau
        weight = power64(u, c) if u > 0.0 else 0.0
        total += weight
        powers += weight * u
    return total, powers


@sequential
def _solve(x, count, c):
    """tau, from -1 on to the right as long as rounding allows."""
    tau = -1.0
    while True:
        total, powers = _sums(x, count, tau, c)
        following = tau - powers * math.expm1(-math.log(powers) / (c + 1.0)) / total
        if not following > tau:
            return tau
        tau = following


@sequential
def _forward_row(arguments, row, alpha, columns, workspace):
    scores, out = matrix_row(arguments, 0, row, columns), matrix_row(arguments, 1, row, columns)
    places, x, count = list_near_peak(scores, out, columns, workspace)
    if count == 0:
        return
    c = 1.0 / (alpha - 1.0)
    tau = _solve(x, count, c)
    total, _ = _sums(x, count, tau, c)
    for i in range(count):
        u = load(x, i) - tau
        store(out, load(places, i), power64(u, c) / total if u > 0.0 else 0.0)


def _forward(arguments):
    for_each_row(arguments, _forward_row)


_kernel, _batch_kernel = Kernel(_forward), Kernel(solve_normmax_batches)


def normmax(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Probabilities of every row; a tensor `alpha` holds one float64 a row."""
    out, columns, itemsize = torch.empty_like(scores), scores.shape[1], scores.element_size()
    if not isinstance(alpha, Tensor) and is_batched(columns, alpha):
        workspace = batch_workspace(columns, itemsize, 8)
        launch(_batch_kernel, scores, alpha, workspace, scores, out, 0, together=BATCH)
    else:
        workspace = near_peak_workspace(columns, itemsize)
        launch(_kernel, scores, alpha, workspace, scores, out)
    return out
