"""normmax and its derivatives on the CPU, in float64.

    normmax                  argmax_p <p, x> - ||p||_alpha over the simplex
    normmax_backward         its Jacobian times a vector, from p alone
    normmax_backward_alpha   the same, and the gradient in alpha

`alpha` is a number, or a tensor with one float64 per row. With c = 1/(alpha - 1) and u = (x - tau)_+
the map is u^c/sum u^c, where tau makes the (c+1)-norm of u one: see (N.34). That norm is convex and
decreases with tau, so Newton's method from the left never overshoots. For alpha = 2, short rows are
solved in batches (see `shared/batch`). The derivatives are (N.22) and (N.23).
"""

from __future__ import annotations

import math

import torch
from numba import float64
from torch import Tensor

from fenchel.kernels.cpu.arithmetic.float64 import power64
from fenchel.kernels.cpu.launch.compilation import Kernel, inlined, outlined, reducing
from fenchel.kernels.cpu.launch.memory import (
    TENSORS,
    as_indices,
    floats_at,
    integer_at,
    load,
    store,
)
from fenchel.kernels.cpu.launch.threads import for_each_row, gradient_rows, launch, matrix_row
from fenchel.kernels.cpu.shared.batch import (
    ACTIVE,
    BATCH,
    MASS,
    OFFSET,
    PREVIOUS,
    SLOPE,
    batch_workspace,
    iterate,
    scores_as_float64,
    solve_batches,
)
from fenchel.kernels.cpu.shared.columns import fill, list_nonzero
from fenchel.kernels.cpu.shared.norm_maps import (
    list_near_largest,
    near_largest_workspace,
    norm_derivative_of,
    norm_of,
)

BATCHED_COLUMNS = 256  # longest rows that are solved in batches; above, single rows are faster
TOLERANCE = 1e-15


@reducing
def _sum_powers(x, count, tau, c):
    """The sums of u^c and of u^(c+1)."""
    total, powers = 0.0, 0.0
    for i in range(count):
        u = load(x, i) - tau
        weight = power64(u, c) if u > 0.0 else 0.0
        total += weight
        powers += weight * u
    return total, powers


@inlined
def _solve(x, count, c):
    """tau, increasing from -1 as long as rounding allows."""
    tau = -1.0
    while True:
        total, powers = _sum_powers(x, count, tau, c)
        following = tau - powers * math.expm1(-math.log(powers) / (c + 1.0)) / total
        if not following > tau:
            return tau
        tau = following


@inlined
def _forward_row(arguments, row, alpha, columns, workspace):
    scores, out = matrix_row(arguments, 0, row, columns), matrix_row(arguments, 1, row, columns)
    places, x, count = list_near_largest(scores, out, columns, workspace)
    if count == 0:
        return
    c = 1.0 / (alpha - 1.0)
    tau = _solve(x, count, c)
    total, _ = _sum_powers(x, count, tau, c)
    for i in range(count):
        u = load(x, i) - tau
        store(out, load(places, i), power64(u, c) / total if u > 0.0 else 0.0)


def _forward_rows(arguments):
    """p of every row."""
    for_each_row(arguments, _forward_row)


def _is_batched(columns: int, alpha: float) -> bool:
    """Whether a row of this length is solved in a batch."""
    return alpha == 2.0 and columns <= BATCHED_COLUMNS


_is_batched_compiled = inlined(_is_batched)


@outlined
def _visit_short(data, size, place, state):
    """The sums of u^2 and of u."""
    tau, squares, total = load(state, OFFSET + place), 0.0, 0.0
    for i in range(size):
        u = load(data, i) - tau
        u = u if u > 0.0 else 0.0
        squares += u * u
        total += u
    store(state, MASS + place, squares)
    store(state, SLOPE + place, total)


@outlined
def _take_steps(state):
    """Newton's step for every active row; returns the number of rows still active."""
    active = 0.0
    for i in range(BATCH):
        tau, previous = load(state, OFFSET + i), load(state, PREVIOUS + i)
        squares, total = load(state, MASS + i), load(state, SLOPE + i)
        excess = abs(squares - 1.0)
        here = load(state, ACTIVE + i) > 0.0
        moves = here and excess > TOLERANCE and excess < previous
        step = (squares - math.sqrt(squares)) / total
        store(state, OFFSET + i, tau + step if moves else tau)
        store(state, PREVIOUS + i, excess)
        store(state, ACTIVE + i, 1.0 if moves else 0.0)
        active += 1.0 if moves else 0.0
    return active


@outlined
def _begin_batch(data, size, rows, state):
    for i in range(BATCH):
        store(state, OFFSET + i, -1.0)


@outlined
def _search_batch(data, size, columns, rows, state):
    iterate(_visit_short, _take_steps, data, size, rows, state)


@outlined
def _write_short(data, out, columns, size, spare, place, state):
    tau, share = load(state, OFFSET + place), 1.0 / load(state, SLOPE + place)
    for i in range(columns):
        u = load(data, i) - tau
        store(out, i, u * share if u > 0.0 else 0.0)


def _short_rows(arguments):
    """Kernel of the batches."""
    solve_batches(
        arguments,
        scores_as_float64,
        True,
        _is_batched_compiled,
        _begin_batch,
        _search_batch,
        _write_short,
    )


@inlined
def _gradient(grad, p, out, places, count, alpha):
    """Write J g on the support; returns N, <p, g> and N^(alpha-1) <s, h>."""
    along, weighted = 0.0, 0.0
    for i in range(count):
        q, g = float64(load(p, load(places, i))), float64(load(grad, load(places, i)))
        along += q * g
    for i in range(count):
        q, g = float64(load(p, load(places, i))), float64(load(grad, load(places, i)))
        weighted += power64(q, 2.0 - alpha) * (g - along)
    size = norm_of(p, places, count, alpha)
    factor = power64(size, alpha - 1.0)
    for i in range(count):
        place = load(places, i)
        q = float64(load(p, place))
        moved = power64(q, 2.0 - alpha) * (load(grad, place) - along) - q * weighted
        store(out, place, factor * moved / (alpha - 1.0))
    return size, along, factor * weighted


@inlined
def _alpha_derivative(grad, p, places, count, alpha, known):
    """<g, dp/dalpha>; `known` is what `_gradient` returns."""
    size, along, shift = known
    logs = 0.0
    for i in range(count):
        q, g = float64(load(p, load(places, i))), float64(load(grad, load(places, i)))
        logs += q * math.log(q) * (g - along)
    return (norm_derivative_of(p, places, count, alpha, size) * shift - logs) / (alpha - 1.0)


@inlined
def _backward_row(arguments, row, alpha, columns, workspace):
    grad, p, out = gradient_rows(arguments, row, columns)
    places = as_indices(workspace)
    fill(out, columns, 0.0)
    count = list_nonzero(p, columns, places)
    if count == 0:
        return
    known = _gradient(grad, p, out, places, count, alpha)
    if integer_at(arguments, TENSORS + 4) == 1:
        by_alpha = floats_at(arguments, TENSORS + 3)
        store(by_alpha, row, _alpha_derivative(grad, p, places, count, alpha, known))


def _backward_rows(arguments):
    """The gradients in the scores and, if argument 4 is 1, in alpha of every row."""
    for_each_row(arguments, _backward_row)


_short_kernel, _forward_kernel = Kernel(_short_rows), Kernel(_forward_rows)
_backward_kernel = Kernel(_backward_rows)


def normmax(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Probabilities of every row."""
    out, columns, itemsize = torch.empty_like(scores), scores.shape[1], scores.element_size()
    if not isinstance(alpha, Tensor) and _is_batched(columns, alpha):
        workspace = batch_workspace(columns, itemsize, 8)
        launch(_short_kernel, scores, alpha, workspace, scores, out, 0, together=BATCH)
    else:
        workspace = near_largest_workspace(columns, itemsize)
        launch(_forward_kernel, scores, alpha, workspace, scores, out)
    return out


def normmax_backward(grad: Tensor, p: Tensor, alpha: float | Tensor) -> Tensor:
    """The gradient in the scores, given that in the probabilities p. Zero off the support."""
    out = torch.empty_like(p)
    launch(_backward_kernel, p, alpha, p.shape[1], grad, p, out, 0, 0)
    return out


def normmax_backward_alpha(grad: Tensor, p: Tensor, alpha: float | Tensor) -> tuple[Tensor, Tensor]:
    """The gradients in the scores, and in alpha of every row (float64)."""
    out, by_alpha = torch.empty_like(p), torch.zeros(p.shape[0], dtype=torch.float64)
    launch(_backward_kernel, p, alpha, p.shape[1], grad, p, out, by_alpha, 1)
    return out, by_alpha
