"""Attention of blocks of queries: one product of queries and keys, and a few values per query.

The scores of TILE_ROWS keys and PANEL queries at a time are compared with a bound per query and are
never seen again; those above it are listed (`candidates`). A panel whose lists are too short for its
supports is computed densely (`dense`).
"""

from __future__ import annotations

import math

from numba import int64

from fenchel.kernels.cpu.attention.bounds import raise_bounds, store_maxima
from fenchel.kernels.cpu.attention.candidates import FAILED, SHORTEST, refresh
from fenchel.kernels.cpu.attention.dense import attend_densely, panel_range
from fenchel.kernels.cpu.attention.heap import allocate, at_address
from fenchel.kernels.cpu.attention.problem import (
    BLOCK,
    BLOCKS,
    CAPACITY,
    DEPTH,
    K_HEADS,
    K_ROW,
    KEYS,
    LARGEST_SHARE,
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
    adjust,
    alpha_at,
    head_rows,
    hide,
    hides_all,
    is_masked,
    mask_tile,
    pack,
    scale_of,
    seen_keys,
)
from fenchel.kernels.cpu.attention.products import (
    TILE_ROWS,
    bits_above_each,
    bits_above_one,
    count_bits,
    dot,
    lowest_bit,
    multiply_tile,
    weigh_rows,
)
from fenchel.kernels.cpu.attention.supports import find_supports
from fenchel.kernels.cpu.attention.workspace import FIRST_KEYS, lists_of, matrices_of
from fenchel.kernels.cpu.launch.compilation import Kernel, inlined, outlined
from fenchel.kernels.cpu.launch.memory import (
    ROWS_CLAIMED,
    advance,
    as_floats,
    as_indices,
    claim,
    indices_at,
    integer_at,
    integers_at,
    load,
    real,
    rows_at,
    store,
)
from fenchel.kernels.cpu.launch.threads import work_of
from fenchel.kernels.cpu.shared.batch import BATCH
from fenchel.kernels.cpu.shared.columns import copy, fill

ALL_SCORES = 128  # up to so many keys the first bound comes from all scores, else from maxima
FEW = 4  # queries whose scores are computed one by one
DENSE = -1  # instead of the size of a support: the panel of the query was computed densely
COUNTED = 4  # of the first keys, one in this number is counted

OUT, COUNTS, LISTS, NUMBER_BYTES = range(OPERANDS_END, OPERANDS_END + 4)


@inlined
def block_of(arguments, unit):
    """(head, first query, queries) of a block; the longest ones of a head come first."""
    blocks, size = integer_at(arguments, BLOCKS), integer_at(arguments, BLOCK)
    head = unit // blocks
    first = (blocks - 1 - unit % blocks) * size
    return head, first, min(size, integer_at(arguments, QUERIES) - first)


@inlined
def _fails(counts, panel):
    return load(counts, panel) == FAILED


@inlined
def _fail(counts, limits, bounds, panel):
    """Give up the lists of a panel."""
    for i in range(panel, panel + PANEL):
        store(counts, i, FAILED)
        store(bounds, i, math.inf)


@inlined
def _append(arguments, lists, alpha, query, score, key, keys):
    """List a candidate; false where the panel has to be computed densely."""
    _, _, bounds, counts, limits, _, scores, places = lists
    capacity = integer_at(arguments, CAPACITY)
    count = int64(load(counts, query))
    scores, places = advance(scores, query * capacity), advance(places, query * capacity)
    store(scores, count, score)
    store(places, count, key)
    count += 1
    store(counts, query, count)
    if count < load(limits, query):
        return True
    bound, count = refresh(scores, places, count, alpha, load(bounds, query))
    store(bounds, query, bound)
    store(counts, query, count)
    limit = max(SHORTEST, 2 * count)
    store(limits, query, min(limit, capacity) if keys > capacity else limit)
    return count != FAILED and (keys <= capacity or 4 * count <= 3 * capacity)


@inlined
def _list_columns(arguments, lists, head, first_query, panel, queries, tile, key, keys):
    """List the candidates of a tile: some keys from `key` on and a panel of queries."""
    _, _, bounds, counts, limits, _, _, _ = lists
    for j in range(keys):
        row = advance(tile, j * PANEL)
        bits = bits_above_each(row, advance(bounds, panel))
        while bits != 0:
            i = lowest_bit(bits)
            bits &= bits - 1
            if i < queries:
                query = panel + i
                alpha = alpha_at(arguments, head, first_query + query)
                seen = integer_at(arguments, KEYS)
                if not _append(arguments, lists, alpha, query, load(row, i), key + j, seen):
                    _fail(counts, limits, bounds, panel)
                    return


@outlined
def _score_tile(arguments, packed, tile, head, first_query, queries, key, keys, k, factor):
    """The scores of up to TILE_ROWS keys and a panel of queries, -inf where these may not see those."""
    depth, k_row = integer_at(arguments, DEPTH), integer_at(arguments, K_ROW)
    if hides_all(arguments, head, key, keys):
        fill(tile, TILE_ROWS * PANEL, -math.inf)
        return
    rows = advance(k, key * k_row)
    multiply_tile(rows, keys, k_row, 1, packed, PANEL, depth, factor, tile, PANEL, False)
    if is_masked(arguments):
        mask_tile(arguments, head, first_query, queries, key, keys, tile)
    first, _ = seen_keys(arguments, head, first_query + queries - 1)
    _, end = seen_keys(arguments, head, first_query)
    if key < first or key + keys > end:
        for i in range(queries):
            hide(arguments, head, first_query + i, key, keys, advance(tile, i), PANEL)
    for j in range(keys, TILE_ROWS):
        fill(advance(tile, j * PANEL), PANEL, -math.inf)


@inlined
def _visible_keys(arguments, head, first_query, queries, start, stop):
    """The part of the keys between `start` and `stop` that a panel may see, in whole tiles of these."""
    first, end = panel_range(arguments, head, first_query, queries)
    first = start + max(first - start, 0) // TILE_ROWS * TILE_ROWS
    return first, min(stop, end)


@inlined
def _is_dense(arguments, scores, keys, bounds):
    """Whether lists would cost more than all weights: too many of the first scores are candidates."""
    above, counted = 0, 0
    for j in range(0, keys, COUNTED):
        above += count_bits(bits_above_each(advance(scores, j * PANEL), bounds))
        counted += PANEL
    return 100 * above > integer_at(arguments, LARGEST_SHARE) * counted


@outlined
def _visit_first_keys(arguments, lists, head, first_query, panel, queries, start, stop, k):
    """Keep the scores of some keys, find a bound for them, and then list those above it."""
    packed, tile, bounds, counts, limits, _, _, _ = lists
    factor = real(packed, scale_of(arguments))
    scores = advance(tile, TILE_ROWS * PANEL)
    maxima = advance(scores, FIRST_KEYS * PANEL)
    packed = advance(packed, panel * integer_at(arguments, DEPTH))
    query = first_query + panel
    start, stop = _visible_keys(arguments, head, query, queries, start, stop)
    rows = 0
    for key in range(start, stop, TILE_ROWS):
        place = advance(scores, rows * PANEL)
        keys = min(TILE_ROWS, stop - key)
        _score_tile(arguments, packed, place, head, query, queries, key, keys, k, factor)
        store_maxima(place, advance(maxima, rows // TILE_ROWS * PANEL))
        rows += TILE_ROWS
    if rows == 0:
        return
    mine = advance(bounds, panel)
    spare = advance(maxima, FIRST_KEYS // TILE_ROWS * PANEL)
    if rows <= ALL_SCORES:
        raise_bounds(arguments, head, query, queries, scores, rows, mine, spare)
    else:
        rows //= TILE_ROWS
        raise_bounds(arguments, head, query, queries, maxima, rows, mine, spare)
    if _is_dense(arguments, scores, stop - start, mine):
        _fail(counts, limits, bounds, panel)
        return
    _list_columns(arguments, lists, head, first_query, panel, queries, scores, start, stop - start)


@outlined
def _visit_keys(arguments, lists, head, first_query, queries):
    """List the candidates of a block of queries, a few keys after the other."""
    packed, tile, _, counts, _, _, _, _ = lists
    depth, q_row = integer_at(arguments, DEPTH), integer_at(arguments, Q_ROW)
    q, k = head_rows(arguments, Q, Q_HEADS, head), head_rows(arguments, K, K_HEADS, head)
    factor = real(packed, scale_of(arguments))
    start, stop = panel_range(arguments, head, first_query, queries)
    later = min(start + FIRST_KEYS, stop)
    for panel in range(0, queries, PANEL):
        rows, count = advance(q, (first_query + panel) * q_row), min(PANEL, queries - panel)
        if not _fails(counts, panel):
            pack(rows, count, q_row, depth, advance(packed, panel * depth), tile)
            _visit_first_keys(arguments, lists, head, first_query, panel, count, start, later, k)
    for key in range(later, stop, TILE_ROWS):
        keys = min(TILE_ROWS, stop - key)
        for panel in range(0, queries, PANEL):
            query, count = first_query + panel, min(PANEL, queries - panel)
            first, end = _visible_keys(arguments, head, query, count, key, key + keys)
            if first < end and not _fails(counts, panel):
                mine = advance(packed, panel * depth)
                _score_tile(arguments, mine, tile, head, query, count, key, keys, k, factor)
                _list_columns(arguments, lists, head, first_query, panel, count, tile, key, keys)


@inlined
def _list_row(arguments, lists, head, first_query, query, scores, key):
    """List the candidates of one query among PANEL keys; false where it has to be computed densely."""
    _, _, bounds, counts, limits, _, _, _ = lists
    bits = bits_above_one(scores, advance(bounds, query))
    alpha = alpha_at(arguments, head, first_query + query)
    keys = integer_at(arguments, KEYS)
    while bits != 0:
        j = lowest_bit(bits)
        bits &= bits - 1
        score = load(scores, j)
        is_above = score > load(bounds, query) or math.isnan(score)
        if is_above and not _append(arguments, lists, alpha, query, score, key + j, keys):
            _fail(counts, limits, bounds, 0)
            return


@outlined
def _visit_keys_of_few(arguments, lists, head, first_query, queries):
    """As `_visit_keys`, for so few queries that packing them side by side would not pay."""
    _, tile, _, counts, _, _, _, _ = lists
    depth, k_row, q_row = (
        integer_at(arguments, DEPTH),
        integer_at(arguments, K_ROW),
        integer_at(arguments, Q_ROW),
    )
    q, k = head_rows(arguments, Q, Q_HEADS, head), head_rows(arguments, K, K_HEADS, head)
    q = advance(q, first_query * q_row)
    factor = real(tile, scale_of(arguments))
    start, stop = panel_range(arguments, head, first_query, queries)
    for key in range(start, stop, PANEL):
        keys = min(PANEL, stop - key)
        for i in range(queries):
            scores = advance(tile, i * PANEL)
            for j in range(keys):
                row = advance(k, (key + j) * k_row)
                store(scores, j, factor * dot(advance(q, i * q_row), row, depth))
            adjust(arguments, head, first_query + i, key, PANEL, scores, 1)
            _list_row(arguments, lists, head, first_query, i, scores, key)
        if _fails(counts, 0):
            return


@outlined
def _begin(arguments, lists, head, first_query, queries):
    """Empty the lists. For alpha ≤ 1 every key is in the support: such panels fail at once."""
    _, _, bounds, counts, limits, _, _, _ = lists
    for panel in range(0, queries, PANEL):
        is_sparse = True
        for i in range(panel, panel + PANEL):
            store(bounds, i, -math.inf if i < queries else math.inf)
            store(counts, i, 0)
            store(limits, i, PANEL)
            if i < queries:
                is_sparse = is_sparse and alpha_at(arguments, head, first_query + i) > 1.0
        if not is_sparse:
            _fail(counts, limits, bounds, panel)


@outlined
def _finish_panel(arguments, lists, head, first_query, panel, queries, workspace):
    """Find the supports and write the outputs; returns the sum of their sizes."""
    _, _, bounds, counts, limits, p, scores, places = lists
    _, _, data, _, solver = matrices_of(arguments, workspace)
    capacity, size = integer_at(arguments, CAPACITY), integer_at(arguments, VALUE_DEPTH)
    v, v_row = head_rows(arguments, V, V_HEADS, head), integer_at(arguments, V_ROW)
    out = advance(
        rows_at(arguments, OUT), (head * integer_at(arguments, QUERIES) + first_query) * size
    )
    total = 0
    for start in range(panel, panel + queries, BATCH):
        rows, query = min(BATCH, panel + queries - start), first_query + start
        mine = (
            advance(bounds, start),
            advance(counts, start),
            advance(scores, start * capacity),
            advance(places, start * capacity),
        )
        found = find_supports(arguments, head, query, rows, mine, p, data, as_floats(solver))
        if found == FAILED:
            _fail(counts, limits, bounds, panel)
            return 0
        total += found
    for query in range(panel, panel + queries):
        shares, keys = advance(scores, query * capacity), advance(places, query * capacity)
        count, row = int64(load(counts, query)), advance(out, query * size)
        weigh_rows(shares, keys, count, v, v_row, real(p, 1.0), size, row)
    return total


@inlined
def _keep(arguments, lists, unit, row, queries, total):
    """Copy the supports of a block to memory of its own."""
    _, _, _, counts, _, _, scores, places = lists
    capacity, number = integer_at(arguments, CAPACITY), integer_at(arguments, NUMBER_BYTES)
    address = allocate(total * (number + 4))
    store(integers_at(arguments, LISTS), unit, address)
    p = at_address(scores, address)
    keys = as_indices(advance(p, total))
    filled = 0
    for i in range(queries):
        count = max(load(counts, i), 0)
        copy(advance(scores, i * capacity), advance(p, filled), count)
        copy(advance(places, i * capacity), advance(keys, filled), count)
        filled += count
        store(indices_at(arguments, COUNTS), row + i, load(counts, i))


@inlined
def _attend(arguments, unit, workspace):
    head, first_query, queries = block_of(arguments, unit)
    lists = lists_of(arguments, workspace)
    _, _, _, counts, _, _, _, _ = lists
    _begin(arguments, lists, head, first_query, queries)
    if queries <= FEW:
        if not _fails(counts, 0):
            _visit_keys_of_few(arguments, lists, head, first_query, queries)
    else:
        _visit_keys(arguments, lists, head, first_query, queries)
    total, size = 0, integer_at(arguments, VALUE_DEPTH)
    row = head * integer_at(arguments, QUERIES) + first_query
    for panel in range(0, queries, PANEL):
        count = min(PANEL, queries - panel)
        if not _fails(counts, panel):
            total += _finish_panel(arguments, lists, head, first_query, panel, count, workspace)
        if _fails(counts, panel):
            out = advance(rows_at(arguments, OUT), (row + panel) * size)
            attend_densely(arguments, head, first_query + panel, count, out, workspace)
    if integer_at(arguments, LISTS) != 0:
        _keep(arguments, lists, unit, row, queries, total)


def _forward(arguments):
    units, chunk, _, workspace = work_of(arguments)
    start = claim(arguments, ROWS_CLAIMED, chunk)
    while start < units:
        for unit in range(start, min(start + chunk, units)):
            _attend(arguments, unit, workspace)
        start = claim(arguments, ROWS_CLAIMED, chunk)


forward_kernel = Kernel(_forward)
