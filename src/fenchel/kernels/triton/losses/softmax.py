"""The loss of softmax, log sum exp x - x_k, for rows of which `softmax_parts` has added up the parts."""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import exp
from fenchel.kernels.triton.launch.addressing import row_offset
from fenchel.kernels.triton.launch.alpha import SOFTMAX
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.losses.class_loss import finish_rows, own_score
from fenchel.kernels.triton.rows.softmax import log_sum, peak_and_sum
from fenchel.kernels.triton.tiles.memory import finite_peak, tile_rows


@kernel
def softmax_loss_rows(
    scores, target, parts, loss, normalizers, ignore, count, columns, pieces, middle, inner,
    steps, target_steps,
    LEVELS: tl.constexpr, CLASSES: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Loss and normaliser for class indices; without CLASSES the normaliser alone."""
    row = tile_rows(tl.program_id(0), 1)
    peak, others = peak_and_sum(parts, row, pieces, WIDTH)
    dead = peak == float("-inf")
    peak = finite_peak(peak)
    if CLASSES:
        scores += row_offset(row, middle, inner, steps, LEVELS)
        wanted = tl.load(target + row_offset(row, middle, inner, target_steps, LEVELS)).to(tl.int64)
        x = own_score(scores, wanted, row < count, columns, steps[3])
        a = log_sum(peak, others, exp(x - peak))
        finish_rows(
            loss, normalizers, row, x, others, peak, dead, a, 0.0, wanted != ignore, row < count,
            SOFTMAX, 1,
        )  # fmt: skip
    else:
        a = log_sum(peak, others, 0.0 * others)
        a = tl.where(dead, float("-inf"), a + (peak - peak).to(tl.float64))
        tl.store(normalizers + row, a)
