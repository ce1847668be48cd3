"""Attention of a panel of queries with many keys in their supports: all scores, block by block.

The scores and probabilities of PANEL queries are held at once, never those of all queries.
"""

from __future__ import annotations

import math

from fenchel.kernels.cpu.attention.problem import (
    DEPTH,
    K_HEADS,
    K_ROW,
    PANEL,
    Q_HEADS,
    Q_ROW,
    V_HEADS,
    V_ROW,
    VALUE_DEPTH,
    K,
    Q,
    V,
    adjust,
    alpha_at,
    head_rows,
    pack,
    scale_of,
    seen_keys,
)
from fenchel.kernels.cpu.attention.products import TILE_COLUMNS, TILE_ROWS, multiply_tile
from fenchel.kernels.cpu.attention.thresholds import probabilities
from fenchel.kernels.cpu.attention.workspace import matrices_of
from fenchel.kernels.cpu.launch.compilation import inlined, outlined, reducing
from fenchel.kernels.cpu.launch.memory import advance, integer_at, load, real, store
from fenchel.kernels.cpu.shared.columns import VECTOR, fill
from fenchel.kernels.cpu.shared.softmax import softmax_row


@inlined
def panel_range(arguments, head, first_query, queries):
    """(first, end) of the keys that any of some queries may see: both grow with the query."""
    first, _ = seen_keys(arguments, head, first_query)
    _, end = seen_keys(arguments, head, first_query + queries - 1)
    return first, max(first, end)


@reducing
def _multiply_rest(
    a, rows, row_stride, step, b, b_step, depth, factor, out, out_stride, adds, width
):
    """`multiply` of the columns that are not a multiple of TILE_COLUMNS."""
    for c in range(width // TILE_COLUMNS * TILE_COLUMNS, width):
        for r in range(rows):
            total = real(factor, 0.0)
            for k in range(depth):
                total += load(a, r * row_stride + k * step) * load(b, k * b_step + c)
            place = r * out_stride + c
            store(out, place, factor * total + (load(out, place) if adds else real(factor, 0.0)))


@outlined
def multiply(a, rows, row_stride, step, b, b_step, depth, factor, out, out_stride, adds, width):
    """out[r, c] = factor · Σ_k a[r, k] b[k, c], as in `multiply_tile`, for any rows and any width."""
    for r in range(0, rows, TILE_ROWS):
        part, count = advance(a, r * row_stride), min(TILE_ROWS, rows - r)
        target = advance(out, r * out_stride)
        for c in range(0, width // TILE_COLUMNS * TILE_COLUMNS, TILE_COLUMNS):
            columns, place = advance(b, c), advance(target, c)
            multiply_tile(
                part,
                count,
                row_stride,
                step,
                columns,
                b_step,
                depth,
                factor,
                place,
                out_stride,
                adds,
            )
        _multiply_rest(
            part, count, row_stride, step, b, b_step, depth, factor, target, out_stride, adds, width
        )


@inlined
def row_products(
    left, queries, left_stride, right, count, right_stride, depth, factor, packed, out, width
):
    """out[i, j] = factor ⟨left_i, right_j⟩ for a panel of queries and `count` rows on the right."""
    for start in range(0, count, PANEL):
        pack(
            advance(right, start * right_stride),
            min(PANEL, count - start),
            right_stride,
            depth,
            packed,
        )
        multiply(
            left, queries, left_stride, 1, packed, PANEL, depth, factor,
            advance(out, start), width, False, PANEL,
        )  # fmt: skip


@inlined
def _solve_row(scores, p, width, alpha, solver):
    if alpha == 1.0:
        softmax_row(scores, p, width, solver)
        return
    largest = probabilities(scores, width // VECTOR, width, alpha, real(scores, -math.inf), p)
    if not math.isfinite(largest):
        fill(p, width, 0.0 if largest < 0.0 else math.nan)


@outlined
def panel_probabilities(arguments, head, first_query, queries, first, end, workspace):
    """Write p of a panel, for the keys from `first` to `end`; returns the length of its rows."""
    scores, p, _, packed, solver = matrices_of(arguments, workspace)
    q_row, k_row = integer_at(arguments, Q_ROW), integer_at(arguments, K_ROW)
    q = advance(head_rows(arguments, Q, Q_HEADS, head), first_query * q_row)
    k = advance(head_rows(arguments, K, K_HEADS, head), first * k_row)
    width = (end - first + PANEL - 1) // PANEL * PANEL
    factor = real(scores, scale_of(arguments))
    depth = integer_at(arguments, DEPTH)
    row_products(q, queries, q_row, k, end - first, k_row, depth, factor, packed, scores, width)
    for i in range(queries):
        row = advance(scores, i * width)
        adjust(arguments, head, first_query + i, first, width, row, 1)
        alpha = alpha_at(arguments, head, first_query + i)
        _solve_row(row, advance(p, i * width), width, alpha, solver)
    return width


@outlined
def attend_densely(arguments, head, first_query, queries, out, workspace):
    """Write the output of a panel of queries; `out` is that of the first."""
    size = integer_at(arguments, VALUE_DEPTH)
    first, end = panel_range(arguments, head, first_query, queries)
    if end <= first:
        fill(out, queries * size, 0.0)
        return
    width = panel_probabilities(arguments, head, first_query, queries, first, end, workspace)
    _, p, _, _, _ = matrices_of(arguments, workspace)
    v_row = integer_at(arguments, V_ROW)
    v = advance(head_rows(arguments, V, V_HEADS, head), first * v_row)
    multiply(p, queries, width, 1, v, v_row, end - first, real(p, 1.0), out, size, False, size)
