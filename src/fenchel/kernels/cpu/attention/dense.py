"""Attention of a panel of queries with many keys in their supports: all scores, block by block.

The scores and probabilities of PANEL queries are held at once, never those of all queries.
"""

from __future__ import annotations

import math

from fenchel.kernels.cpu.attention.batches import (
    add_row,
    begin_batch,
    is_solved,
    offset_of,
    solve_batch,
    write_solved_row,
)
from fenchel.kernels.cpu.attention.problem import (
    DEPTH,
    K_HEADS,
    K_ROW,
    OFFSETS,
    PANEL,
    Q_HEADS,
    Q_ROW,
    QUERIES,
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
from fenchel.kernels.cpu.attention.workspace import STATE_NUMBERS, matrices_of
from fenchel.kernels.cpu.launch.compilation import inlined, outlined, reducing
from fenchel.kernels.cpu.launch.memory import (
    advance,
    as_floats,
    floats_at,
    integer_at,
    load,
    real,
    store,
)
from fenchel.kernels.cpu.shared.batch import BATCH
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
    left, queries, left_stride, right, count, right_stride, depth, factor, packed, spare, out, width
):
    """out[i, j] = factor ⟨left_i, right_j⟩ for a panel of queries and `count` rows on the right.

    `packed` and `spare` are memory for PANEL rows, and for BATCH × BATCH numbers.
    """
    for start in range(0, count, PANEL):
        pack(
            advance(right, start * right_stride),
            min(PANEL, count - start),
            right_stride,
            depth,
            packed,
            spare,
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
def _solve_rows(arguments, head, first_query, queries, scores, p, width, data, solver, is_known):
    """Write p of up to BATCH rows of scores, with the offsets that the forward pass has kept if known."""
    state, spare = as_floats(solver), advance(solver, STATE_NUMBERS)
    keeps, first = integer_at(arguments, OFFSETS) != 0, head * integer_at(arguments, QUERIES)
    offsets = advance(floats_at(arguments, OFFSETS), first + first_query)
    begin_batch(state)
    for i in range(queries):
        alpha = alpha_at(arguments, head, first_query + i)
        offset = load(offsets, i) if is_known else 0.0
        if not math.isnan(offset):
            add_row(advance(scores, i * width), width, alpha, offset, data, width, i, state)
    if not is_known:
        solve_batch(data, width, queries, state, True)
    for i in range(queries):
        row, target, offset = advance(scores, i * width), advance(p, i * width), math.nan
        if is_solved(state, i):
            write_solved_row(data, target, width, i, state)
            offset = offset_of(state, i)
        else:
            alpha = alpha_at(arguments, head, first_query + i)
            _solve_row(row, target, width, alpha, spare)
        if keeps and not is_known:
            store(offsets, i, offset)


@outlined
def panel_probabilities(arguments, head, first_query, queries, first, end, workspace, is_known):
    """Write p of a panel, for the keys from `first` to `end`; returns the length of its rows."""
    scores, p, data, packed, solver = matrices_of(arguments, workspace)
    q_row, k_row = integer_at(arguments, Q_ROW), integer_at(arguments, K_ROW)
    q = advance(head_rows(arguments, Q, Q_HEADS, head), first_query * q_row)
    k = advance(head_rows(arguments, K, K_HEADS, head), first * k_row)
    width = (end - first + PANEL - 1) // PANEL * PANEL
    factor = real(scores, scale_of(arguments))
    depth = integer_at(arguments, DEPTH)
    row_products(
        q, queries, q_row, k, end - first, k_row, depth, factor, packed, solver, scores, width
    )
    for i in range(queries):
        adjust(arguments, head, first_query + i, first, width, advance(scores, i * width), 1)
    for i in range(0, queries, BATCH):
        rows, place = min(BATCH, queries - i), i * width
        here, target = advance(scores, place), advance(p, place)
        _solve_rows(
            arguments, head, first_query + i, rows, here, target, width, data, solver, is_known
        )
    return width


@outlined
def attend_densely(arguments, head, first_query, queries, out, workspace):
    """Write the output of a panel of queries; `out` is that of the first."""
    size = integer_at(arguments, VALUE_DEPTH)
    first, end = panel_range(arguments, head, first_query, queries)
    if end <= first:
        fill(out, queries * size, 0.0)
        return
    width = panel_probabilities(arguments, head, first_query, queries, first, end, workspace, False)
    _, p, _, _, _ = matrices_of(arguments, workspace)
    v_row = integer_at(arguments, V_ROW)
    v = advance(head_rows(arguments, V, V_HEADS, head), first * v_row)
    multiply(p, queries, width, 1, v, v_row, end - first, real(p, 1.0), out, size, False, size)
