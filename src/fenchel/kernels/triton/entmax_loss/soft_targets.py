"""The loss for targets that are not a single class, from the normalizer of a row.

probability_loss_rows  targets that are probabilities
label_smoothing_rows   what label smoothing adds to the loss of class k: s (x_k - mean x) + Omega(q),
                       with q = (1 - s) e_k + s/C
"""

from __future__ import annotations

import triton
import triton.language as tl

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportOperatorIssue=false
from torch import Tensor

from fenchel.kernels.triton.arithmetic.elementary import (
    LN_2,
    expm1_ratio,
    log2,
)
from fenchel.kernels.triton.entmax_loss.class_loss import (
    entry_per_row,
    score_minus_normalizer,
)
from fenchel.kernels.triton.launch.addressing import (
    address,
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    walk_shape,
)
from fenchel.kernels.triton.tiles.layout import (
    load_scores,
    row_epsilon,
    tile_columns,
    tile_rows,
)
from fenchel.kernels.triton.tiles.reductions import (
    row_sum,
)


def smooth_labels(
    scores: Tensor, target: Tensor, alphas: Tensor | None, loss: Tensor, kind: int, eps: float,
    ignore_index: int, smoothing: float,
) -> None:  # fmt: skip
    rows, tensors, steps = address(-1, scores, target.unsqueeze(-1), alphas)
    block, warps = walk_shape(rows.columns)
    label_smoothing_rows[(rows.count,)](
        *tensors, loss, eps, ignore_index, smoothing,
        rows.count, rows.columns, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, KIND=kind, K=block, num_warps=warps,
    )  # fmt: skip


def add_probability_terms(
    scores: Tensor, target: Tensor, alphas: Tensor | None, normalizer: Tensor, loss: Tensor,
    kind: int, eps: float,
) -> None:  # fmt: skip
    rows, tensors, steps = address(-1, scores, target, alphas, normalizer.unsqueeze(-1))
    block, warps = walk_shape(rows.columns)
    probability_loss_rows[(rows.count,)](
        *tensors, loss, eps, rows.count, rows.columns, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, KIND=kind, K=block, num_warps=warps,
    )  # fmt: skip


@triton.jit
def _probability_term(x, q, p, t, a, e):
    """One term of the loss; 0 where q = p = 0."""
    u = score_minus_normalizer(x, a)
    log_q = log2(tl.where(q > 0.0, q, 1.0)) * LN_2
    length = log_q * expm1_ratio(e * log_q)
    inside = (q * (length - u) + t * (p - q)) / (1.0 + e)
    outside = q * ((length + 1.0 / e) / (1.0 + e) - 1.0 / e - u)
    value = tl.where(t > 0.0, inside, outside)
    value = tl.where(q > 0.0, value, t * p / (1.0 + e))
    return tl.where((q > 0.0) & (x == float("-inf")), float("inf"), value)


@kernel
def probability_loss_rows(
    scores, target, alpha, normalizers, loss, eps, count, columns, middle, inner,
    steps, target_steps, alpha_steps, normalizer_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, 1)
    scores += row_offset(row, middle, inner, steps, LEVELS)
    target += row_offset(row, middle, inner, target_steps, LEVELS)
    a = tl.load(normalizers + row_offset(row, middle, inner, normalizer_steps, LEVELS))
    finite = tl.where(a == float("-inf"), 0.0, a)
    total = tl.zeros([1, 1, K], tl.float32)
    for start in range(0, columns, K):
        column = start + tile_columns(1, K)
        wide = column.to(tl.int64)
        inside = column < columns
        x = load_scores(scores, None, wide * steps[3], wide, inside)
        q = tl.load(target + wide * target_steps[3], mask=inside, other=0.0).to(tl.float32)
        p, _, t = entry_per_row(x, finite, e, KIND, 1)
        total += _probability_term(x, q, p, t, finite, e)
    value = row_sum(total)
    value = tl.where(value < 0.0, 0.0, value)  # unlike maximum, this keeps NaN
    tl.store(loss + row, value + (finite - finite).to(tl.float32))


@triton.jit
def _omega(q, e):
    """One term of Omega(q): q l phi1(e l)/alpha, l = log q."""
    length = log2(tl.where(q > 0.0, q, 1.0)) * LN_2
    return q * length * expm1_ratio(e * length) / (1.0 + e)


@kernel
def label_smoothing_rows(
    scores, target, alpha, loss, eps, ignore, smoothing, count, columns, middle, inner,
    steps, target_steps, alpha_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, 1)
    scores += row_offset(row, middle, inner, steps, LEVELS)
    wanted = tl.load(target + row_offset(row, middle, inner, target_steps, LEVELS)).to(tl.int64)
    known = (wanted >= 0) & (wanted < columns)
    own = tl.load(scores + wanted * steps[3], mask=known, other=float("nan")).to(tl.float32)
    uniform = smoothing / columns
    total = tl.zeros([1, 1, K], tl.float32)
    for start in range(0, columns, K):
        column = start + tile_columns(1, K)
        wide = column.to(tl.int64)
        inside = column < columns
        x = load_scores(scores, None, wide * steps[3], wide, inside)
        total += tl.where(inside, (own - x) * uniform, 0.0)  # as a mean, which does not overflow
    value = tl.load(loss + row)
    omega = _omega(1.0 - smoothing + uniform, e) + (columns - 1) * _omega(uniform, e)
    smooth = value + row_sum(total) + omega
    smooth = tl.where(smooth < 0.0, 0.0, smooth)  # unlike maximum, this keeps NaN
    smooth = tl.where(value == float("inf"), value, smooth)
    tl.store(loss + row, tl.where(wanted == ignore, 0.0, smooth))
