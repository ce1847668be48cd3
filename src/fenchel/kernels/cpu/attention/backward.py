"""The gradients of attention, from the supports that the forward pass has found.

Two visits to the supports: block by block for what belongs to a query, then head by head for what belongs
to a key. In the second one a thread owns a range of keys of a head and adds in the order of the queries,
so sums do not depend on the number of threads. Panels without lists are computed anew (`dense`).
"""

from __future__ import annotations

from fenchel.kernels.cpu.attention.dense import (
    multiply,
    panel_probabilities,
    panel_range,
    row_products,
)
from fenchel.kernels.cpu.attention.forward import DENSE, block_of
from fenchel.kernels.cpu.attention.heap import at_address, release
from fenchel.kernels.cpu.attention.problem import (
    BIAS_COLUMN,
    BIAS_HEADS,
    BIAS_ROW,
    DEPTH,
    K_HEADS,
    K_ROW,
    KEYS,
    OPERANDS_END,
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
    alpha_at,
    head_rows,
    scale_of,
)
from fenchel.kernels.cpu.attention.products import add_scaled, dot, weigh_rows
from fenchel.kernels.cpu.attention.slopes import alpha_slope, pull_back
from fenchel.kernels.cpu.attention.workspace import matrices_of
from fenchel.kernels.cpu.launch.compilation import Kernel, inlined, outlined
from fenchel.kernels.cpu.launch.memory import (
    ROWS_CLAIMED,
    advance,
    as_indices,
    claim,
    floats_at,
    indices_at,
    integer_at,
    integers_at,
    load,
    real,
    rows_at,
    store,
)
from fenchel.kernels.cpu.launch.threads import work_of
from fenchel.kernels.cpu.shared.columns import copy

(
    COUNTS,
    STARTS,
    PLACES,
    P,
    LISTS,
    GRAD,
    IN_SCORES,
    IN_Q,
    IN_K,
    IN_V,
    IN_ALPHA,
    IN_BIAS,
    SHARED,
    UNIT_HEADS,
    SLICES,
) = range(OPERANDS_END, OPERANDS_END + 15)


@inlined
def _for_each_unit(arguments, do_unit):
    units, chunk, _, workspace = work_of(arguments)
    start = claim(arguments, ROWS_CLAIMED, chunk)
    while start < units:
        for unit in range(start, min(start + chunk, units)):
            do_unit(arguments, unit, workspace)
        start = claim(arguments, ROWS_CLAIMED, chunk)


@inlined
def _collect_block(arguments, unit, workspace):
    head, first_query, queries = block_of(arguments, unit)
    row = head * integer_at(arguments, QUERIES) + first_query
    start = load(integers_at(arguments, STARTS), row)
    total = load(integers_at(arguments, STARTS), row + queries) - start
    address = load(integers_at(arguments, LISTS), unit)
    p = at_address(rows_at(arguments, P), address)
    copy(p, advance(rows_at(arguments, P), start), total)
    copy(as_indices(advance(p, total)), advance(indices_at(arguments, PLACES), start), total)
    release(address)


def _collect(arguments):
    """Bring the supports of the blocks together."""
    _for_each_unit(arguments, _collect_block)


@inlined
def _support_of(arguments, row):
    """(size, where it starts) of the support of a row."""
    return load(indices_at(arguments, COUNTS), row), load(integers_at(arguments, STARTS), row)


@outlined
def _row_gradients(arguments, head, query, workspace):
    """The gradients in the scores of a query, in the query and in its alpha."""
    row = head * integer_at(arguments, QUERIES) + query
    count, start = _support_of(arguments, row)
    if count == DENSE:
        return
    size, depth = integer_at(arguments, VALUE_DEPTH), integer_at(arguments, DEPTH)
    grad = advance(rows_at(arguments, GRAD), row * size)
    p, places = advance(rows_at(arguments, P), start), advance(indices_at(arguments, PLACES), start)
    in_scores = advance(rows_at(arguments, IN_SCORES), start)
    v, v_row = head_rows(arguments, V, V_HEADS, head), integer_at(arguments, V_ROW)
    k, k_row = head_rows(arguments, K, K_HEADS, head), integer_at(arguments, K_ROW)
    for a in range(count):
        store(workspace, a, dot(grad, advance(v, load(places, a) * v_row), size))
    alpha = alpha_at(arguments, head, query)
    mean = pull_back(workspace, p, in_scores, count, alpha)
    if integer_at(arguments, IN_ALPHA) != 0:
        slope = alpha_slope(workspace, p, count, alpha, mean)
        store(floats_at(arguments, IN_ALPHA), row, slope)
    factor = real(p, scale_of(arguments))
    in_q = advance(rows_at(arguments, IN_Q), row * depth)
    weigh_rows(in_scores, places, count, k, k_row, factor, depth, in_q)


@inlined
def _block_gradients(arguments, unit, workspace):
    head, first_query, queries = block_of(arguments, unit)
    for query in range(first_query, first_query + queries):
        _row_gradients(arguments, head, query, workspace)


def _query_gradients(arguments):
    """Of the queries with lists: the gradients in their scores, in themselves and in alpha."""
    _for_each_unit(arguments, _block_gradients)


@inlined
def _in_keys(arguments, head):
    """The gradients in the keys and in the values of a head."""
    shared = head // integer_at(arguments, SHARED) * integer_at(arguments, KEYS)
    in_k = advance(rows_at(arguments, IN_K), shared * integer_at(arguments, DEPTH))
    return in_k, advance(rows_at(arguments, IN_V), shared * integer_at(arguments, VALUE_DEPTH))


@inlined
def _bias_row(arguments, head, query):
    """The gradient in the bias of a query."""
    rows = head_rows(arguments, IN_BIAS, BIAS_HEADS, head)
    return advance(rows, query * integer_at(arguments, BIAS_ROW))


@outlined
def _add_row(arguments, head, query, first_key, end_key):
    """Add what a query contributes to the gradients of some keys."""
    row = head * integer_at(arguments, QUERIES) + query
    count, start = _support_of(arguments, row)
    size, depth = integer_at(arguments, VALUE_DEPTH), integer_at(arguments, DEPTH)
    in_k, in_v = _in_keys(arguments, head)
    q = advance(head_rows(arguments, Q, Q_HEADS, head), query * integer_at(arguments, Q_ROW))
    grad = advance(rows_at(arguments, GRAD), row * size)
    p, places = advance(rows_at(arguments, P), start), advance(indices_at(arguments, PLACES), start)
    in_scores = advance(rows_at(arguments, IN_SCORES), start)
    factor = real(p, scale_of(arguments))
    for a in range(count):
        key = load(places, a)
        if first_key <= key < end_key:
            add_scaled(advance(in_v, key * size), grad, load(p, a), size)
            add_scaled(advance(in_k, key * depth), q, factor * load(in_scores, a), depth)
            if integer_at(arguments, IN_BIAS) != 0:
                bias = _bias_row(arguments, head, query)
                place = key * integer_at(arguments, BIAS_COLUMN)
                store(bias, place, load(bias, place) + load(in_scores, a))


@inlined
def _add_bias(arguments, head, first_query, queries, first, end, in_scores, width):
    column = integer_at(arguments, BIAS_COLUMN)
    for i in range(queries):
        bias = _bias_row(arguments, head, first_query + i)
        for j in range(end - first):
            place = (first + j) * column
            store(bias, place, load(bias, place) + load(in_scores, i * width + j))


@outlined
def _add_panel(arguments, head, first_query, queries, workspace):
    """All gradients of a panel of queries without lists."""
    size, depth = integer_at(arguments, VALUE_DEPTH), integer_at(arguments, DEPTH)
    first, end = panel_range(arguments, head, first_query, queries)
    row = head * integer_at(arguments, QUERIES) + first_query
    if end <= first:
        return
    width = panel_probabilities(arguments, head, first_query, queries, first, end, workspace, True)
    in_scores, p, in_p, packed, spare = matrices_of(arguments, workspace)
    v_row, k_row, q_row = (
        integer_at(arguments, V_ROW),
        integer_at(arguments, K_ROW),
        integer_at(arguments, Q_ROW),
    )
    grad = advance(rows_at(arguments, GRAD), row * size)
    v = advance(head_rows(arguments, V, V_HEADS, head), first * v_row)
    k = advance(head_rows(arguments, K, K_HEADS, head), first * k_row)
    q = advance(head_rows(arguments, Q, Q_HEADS, head), first_query * q_row)
    one, factor, keys = real(p, 1.0), real(p, scale_of(arguments)), end - first
    row_products(grad, queries, size, v, keys, v_row, size, one, packed, spare, in_p, width)
    for i in range(queries):
        g, share = advance(in_p, i * width), advance(p, i * width)
        alpha = alpha_at(arguments, head, first_query + i)
        mean = pull_back(g, share, advance(in_scores, i * width), width, alpha)
        if integer_at(arguments, IN_ALPHA) != 0:
            slope = alpha_slope(g, share, width, alpha, mean)
            store(floats_at(arguments, IN_ALPHA), row + i, slope)
    in_k, in_v = _in_keys(arguments, head)
    in_k, in_v = advance(in_k, first * depth), advance(in_v, first * size)
    in_q = advance(rows_at(arguments, IN_Q), row * depth)
    multiply(in_scores, queries, width, 1, k, k_row, keys, factor, in_q, depth, False, depth)
    multiply(p, keys, 1, width, grad, size, queries, one, in_v, size, True, size)
    multiply(in_scores, keys, 1, width, q, q_row, queries, factor, in_k, depth, True, depth)
    if integer_at(arguments, IN_BIAS) != 0:
        _add_bias(arguments, head, first_query, queries, first, end, in_scores, width)


@inlined
def _add_heads(arguments, unit, workspace):
    """Add up the gradients of some heads for a slice of the keys."""
    slices, keys = integer_at(arguments, SLICES), integer_at(arguments, KEYS)
    together, queries = integer_at(arguments, UNIT_HEADS), integer_at(arguments, QUERIES)
    first_key = unit % slices * keys // slices
    end_key = (unit % slices + 1) * keys // slices
    first_head = unit // slices * together
    for head in range(first_head, first_head + together):
        for first_query in range(0, queries, PANEL):
            count = min(PANEL, queries - first_query)
            size, _ = _support_of(arguments, head * queries + first_query)
            if size == DENSE:
                _add_panel(arguments, head, first_query, count, workspace)
            else:
                for query in range(first_query, first_query + count):
                    _add_row(arguments, head, query, first_key, end_key)


def _key_gradients(arguments):
    """The gradients in keys, values and bias, and all those of queries without lists."""
    _for_each_unit(arguments, _add_heads)


collect_kernel = Kernel(_collect)
query_kernel, key_kernel = Kernel(_query_gradients), Kernel(_key_gradients)
