"""The operands of one call as a kernel sees them: heads, their memory, and what a query may see.

Batch and heads are one dimension of `heads`. Tables say where the data of a head begin, so operands
that repeat (broadcast dimensions, grouped heads of keys) are never copied.
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.arithmetic.lanes import (
    BATCH,
    load_lanes,
    store_lanes,
    transpose_block,
)
from fenchel.kernels.cpu.attention.products import TILE_COLUMNS
from fenchel.kernels.cpu.launch.compilation import inlined
from fenchel.kernels.cpu.launch.memory import (
    TENSORS,
    advance,
    bytes_at,
    floats_at,
    integer_at,
    integers_at,
    load,
    real,
    rows_at,
    store,
)
from fenchel.kernels.cpu.shared.columns import fill

PANEL = TILE_COLUMNS  # queries whose scores are computed side by side

# The words of the argument block after the first ones
(
    QUERIES,
    KEYS,
    DEPTH,
    VALUE_DEPTH,
    SCALE,
    Q,
    Q_HEADS,
    Q_ROW,
    K,
    K_HEADS,
    K_ROW,
    V,
    V_HEADS,
    V_ROW,
    ALPHA_VALUES,
    ALPHA_HEADS,
    ALPHA_ROW,
    LENGTHS,
    IS_CAUSAL,
    WINDOW,
    MASK,
    MASK_HEADS,
    MASK_ROW,
    MASK_COLUMN,
    BIAS,
    BIAS_HEADS,
    BIAS_ROW,
    BIAS_COLUMN,
    CAPACITY,
    LARGEST_SHARE,
    BLOCKS,
    BLOCK,
    OFFSETS,  # A - largest score of queries that are computed densely, NaN without; or zero
    OPERANDS_END,
) = range(TENSORS, TENSORS + 34)


@inlined
def head_rows(arguments, tensor, heads, head):
    """Where the rows of a head begin; `heads` is the word of the table after that of the tensor."""
    return advance(rows_at(arguments, tensor), load(integers_at(arguments, heads), head))


@inlined
def scale_of(arguments):
    return load(floats_at(arguments, SCALE), 0)


@inlined
def alpha_at(arguments, head, query):
    place = load(integers_at(arguments, ALPHA_HEADS), head)
    place += query * integer_at(arguments, ALPHA_ROW)
    return load(floats_at(arguments, ALPHA_VALUES), place)


@inlined
def seen_keys(arguments, head, query):
    """(first, end) of the keys between which a query may see."""
    keys = integer_at(arguments, KEYS)
    first, end = 0, keys
    if integer_at(arguments, LENGTHS) != 0:
        end = min(end, load(integers_at(arguments, LENGTHS), head))
    if integer_at(arguments, IS_CAUSAL) != 0:
        own = query + keys - integer_at(arguments, QUERIES)
        end = min(end, own + 1)
        window = integer_at(arguments, WINDOW)
        if window >= 0:
            first = max(first, own - window)
    end = max(end, 0)
    return min(first, end), end


@inlined
def is_masked(arguments):
    """Whether every score has to be looked at."""
    return integer_at(arguments, MASK) != 0 or integer_at(arguments, BIAS) != 0


@inlined
def hide(arguments, head, query, first_key, count, scores, stride):
    """Apply the ends of what a query sees."""
    first, end = seen_keys(arguments, head, query)
    for j in range(min(max(first - first_key, 0), count)):
        store(scores, j * stride, -math.inf)
    for j in range(max(min(end - first_key, count), 0), count):
        store(scores, j * stride, -math.inf)


@inlined
def _mask(arguments, head, query, first_key, count, scores, stride):
    count = min(count, integer_at(arguments, KEYS) - first_key)
    if integer_at(arguments, MASK) != 0:
        column = integer_at(arguments, MASK_COLUMN)
        place = load(integers_at(arguments, MASK_HEADS), head)
        place += query * integer_at(arguments, MASK_ROW) + first_key * column
        marks = advance(bytes_at(arguments, MASK), place)
        for j in range(count):
            x = load(scores, j * stride)
            store(scores, j * stride, real(x, -math.inf) if load(marks, j * column) == 0 else x)
    if integer_at(arguments, BIAS) != 0:
        column = integer_at(arguments, BIAS_COLUMN)
        bias = head_rows(arguments, BIAS, BIAS_HEADS, head)
        bias = advance(bias, query * integer_at(arguments, BIAS_ROW) + first_key * column)
        for j in range(count):
            store(scores, j * stride, load(scores, j * stride) + load(bias, j * column))


@inlined
def adjust(arguments, head, query, first_key, count, scores, stride):
    """Add the bias to scores of a query, and set those of keys that it may not see to -inf.

    `scores[j * stride]` is that of key `first_key + j`.
    """
    if is_masked(arguments):
        _mask(arguments, head, query, first_key, count, scores, stride)
    hide(arguments, head, query, first_key, count, scores, stride)


@inlined
def bias_at(arguments, head, query, key):
    """The bias of one score."""
    place = query * integer_at(arguments, BIAS_ROW) + key * integer_at(arguments, BIAS_COLUMN)
    return float64(load(head_rows(arguments, BIAS, BIAS_HEADS, head), place))


@inlined
def hides_all(arguments, head, first_key, keys):
    """Whether a mask of keys alone, such as one for padding, hides all of these."""
    if integer_at(arguments, MASK) == 0 or integer_at(arguments, MASK_ROW) != 0:
        return False
    column = integer_at(arguments, MASK_COLUMN)
    place = load(integers_at(arguments, MASK_HEADS), head) + first_key * column
    marks, seen = advance(bytes_at(arguments, MASK), place), 0
    for j in range(keys):
        seen += load(marks, j * column)
    return seen == 0


@inlined
def mask_tile(arguments, head, first_query, queries, first_key, keys, tile):
    """Mask the scores of some keys and a panel of queries: `tile[j PANEL + i]` for key j, query i."""
    if integer_at(arguments, MASK) != 0:
        row, column = integer_at(arguments, MASK_ROW), integer_at(arguments, MASK_COLUMN)
        place = load(integers_at(arguments, MASK_HEADS), head) + first_query * row
        for j in range(keys):
            marks = advance(bytes_at(arguments, MASK), place + (first_key + j) * column)
            scores = advance(tile, j * PANEL)
            if row == 0:
                if load(marks, 0) == 0:
                    fill(scores, PANEL, -math.inf)
            else:
                for i in range(queries):
                    x = load(scores, i)
                    store(scores, i, real(x, -math.inf) if load(marks, i * row) == 0 else x)
    if integer_at(arguments, BIAS) != 0:
        row, column = integer_at(arguments, BIAS_ROW), integer_at(arguments, BIAS_COLUMN)
        bias = advance(head_rows(arguments, BIAS, BIAS_HEADS, head), first_query * row)
        for j in range(keys):
            biases, scores = advance(bias, (first_key + j) * column), advance(tile, j * PANEL)
            for i in range(queries):
                store(scores, i, load(scores, i) + load(biases, i * row))


@inlined
def pack(rows, count, row_stride, depth, packed, block):
    """Transpose up to PANEL rows: packed[e PANEL + r] = rows[r row_stride + e]; the last one repeats.

    `block` is memory for BATCH x BATCH numbers.
    """
    whole = depth // BATCH * BATCH if count == PANEL else 0
    for r in range(0, PANEL, BATCH):
        for e in range(0, whole, BATCH):
            transpose_block(advance(rows, r * row_stride + e), row_stride, block)
            for i in range(BATCH):
                line = load_lanes(block, i * BATCH)
                store_lanes(packed, (e + i) * PANEL + r, line)
    for r in range(PANEL):
        row = advance(rows, min(r, count - 1) * row_stride)
        for e in range(whole, depth):
            store(packed, e * PANEL + r, load(row, e))
