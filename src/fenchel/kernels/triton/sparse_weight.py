"""Sum over rows of g h^T for gradients g with few entries that are not zero: kernels.

A matrix product would read and write the whole sum once for every chunk of rows. Instead

list_rows      writes the entries of every row of a chunk;
place_rows     gives each row a place in a pool of entries, or names it as too full;
move_rows      copies the lists to the pool;
add_full_rows  multiplies the rows that are too full, if there are any, and adds that to the sum;
sum_classes    adds what the pool, sorted by class, holds of every class, each sum rounded once.

How many entries there are is known to the device alone, and nothing waits for it.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton
import triton.language as tl

USED: tl.constexpr = tl.constexpr(0)  # of the state: entries in the pool,
FULL: tl.constexpr = tl.constexpr(1)  # rows of this chunk that are too full,
BEFORE: tl.constexpr = tl.constexpr(2)  # and of those before it


@triton.jit
def list_rows(
    slopes, listed, target, classes, values, counts, columns, groups, stride,
    LONGEST: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The entries of a row are those of the groups of columns that are listed, and the target's."""
    row = tl.program_id(0).to(tl.int64)
    slopes += row * stride
    listed += row * (groups + 1)
    found = tl.load(listed + groups)
    wanted = tl.load(target + row).to(tl.int64)
    known = (wanted >= 0) & (wanted < columns)
    own = tl.load(slopes + wanted, mask=known, other=0.0).to(tl.float32)
    count = found * 0 + (LONGEST + 1)
    if (found <= LONGEST) & (own == own):  # NaN is everywhere in its row
        count = found * 0
        met = found * 0
        for start in range(0, found, BLOCK):
            place = start + tl.arange(0, BLOCK)
            group = tl.load(listed + place, mask=place < found, other=0)
            column = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
            inside = (place < found)[:, None] & (column < columns)
            slope = tl.load(slopes + column, mask=inside, other=0.0).to(tl.float32)
            column = tl.reshape(column, [BLOCK * GROUP])
            slope = tl.reshape(slope, [BLOCK * GROUP])
            lives = (slope != 0.0).to(tl.int32)
            entry = count + tl.cumsum(lives, 0) - lives
            here = (lives != 0) & (entry < LONGEST)
            tl.store(classes + row * LONGEST + entry, column, mask=here)
            tl.store(values + row * LONGEST + entry, slope, mask=here)
            count += tl.sum(lives, axis=0)
            met += tl.sum(((lives != 0) & (column == wanted)).to(tl.int32), axis=0)
        if (own != 0.0) & (met == 0):
            if count < LONGEST:
                tl.store(classes + row * LONGEST + count, wanted.to(tl.int32))
                tl.store(values + row * LONGEST + count, own)
            count += 1
    tl.store(counts + row, count)


@triton.jit
def place_rows(counts, places, full, state, rows, size, LONGEST: tl.constexpr, WIDTH: tl.constexpr):
    """One program: the place in the pool of every row, or -1, and the numbers of the rows too full."""
    row = tl.arange(0, WIDTH)
    inside = row < rows
    count = tl.load(counts + row, mask=inside, other=0)
    used = tl.load(state + USED)
    before = tl.load(state + BEFORE) + tl.load(state + FULL)
    short = tl.where(count <= LONGEST, count, 0)
    place = used + tl.cumsum(short, 0) - short
    fits = (count <= LONGEST) & (place + count <= size)
    tl.store(places + row, tl.where(fits, place, -1), mask=inside)
    taken = tl.max(tl.where(fits, place + count, used), axis=0)
    left = (inside & (fits == 0)).to(tl.int32)
    order = tl.cumsum(left, 0) - left
    tl.store(full + order, row, mask=left != 0)
    tl.debug_barrier()
    tl.store(state + USED, taken)
    tl.store(state + FULL, tl.sum(left, axis=0))
    tl.store(state + BEFORE, before)


@triton.jit
def move_rows(
    classes, values, counts, places, pool_classes, pool_rows, pool_values, first,
    LONGEST: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    place = tl.load(places + row)
    if place >= 0:
        count = tl.load(counts + row)
        entry = tl.arange(0, LONGEST)
        inside = entry < count
        source = row * LONGEST + entry
        tl.store(pool_classes + place + entry, tl.load(classes + source, mask=inside), mask=inside)
        tl.store(pool_values + place + entry, tl.load(values + source, mask=inside), mask=inside)
        number = (first + row).to(tl.int32) + entry * 0
        tl.store(pool_rows + place + entry, number, mask=inside)


@triton.jit
def _add_all(
    total, slopes, hidden, v, d, count, classes, width, stride, hidden_stride, K: tl.constexpr
):
    """total + a tile of g^T h over the first `count` rows."""
    number = tl.arange(0, K)
    g_places = slopes + number.to(tl.int64)[:, None] * stride + v[None, :]
    h_places = hidden + number.to(tl.int64)[:, None] * hidden_stride + d[None, :]
    for start in range(0, count, K):
        here = (number < count - start)[:, None]
        g = tl.load(g_places, mask=here & (v < classes)[None, :], other=0.0)
        h = tl.load(h_places, mask=here & (d < width)[None, :], other=0.0)
        total = tl.dot(tl.trans(g), h, total, input_precision="ieee")
        g_places += K * stride
        h_places += K * hidden_stride
    return total


@triton.jit
def _add_some(
    total, slopes, hidden, full, v, d, count, classes, width, stride, hidden_stride,
    K: tl.constexpr,
):  # fmt: skip
    """total + a tile of g^T h over the `count` rows whose numbers are given."""
    number = tl.arange(0, K)
    for start in range(0, count, K):
        here = (start + number < count)[:, None]
        row = tl.load(full + start + number[:, None], mask=here, other=0).to(tl.int64)
        g_places = slopes + row * stride + v[None, :]
        h_places = hidden + row * hidden_stride + d[None, :]
        g = tl.load(g_places, mask=here & (v < classes)[None, :], other=0.0)
        h = tl.load(h_places, mask=here & (d < width)[None, :], other=0.0)
        total = tl.dot(tl.trans(g), h, total, input_precision="ieee")
    return total


@triton.jit
def add_full_rows(
    slopes, hidden, full, state, out, rows, classes, width, stride, hidden_stride,
    V: tl.constexpr, D: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """out += g^T h over the rows of this chunk that are too full; the first of them find no `out`."""
    count = tl.load(state + FULL)
    if count > 0:
        across = tl.cdiv(width, D)
        for tile in range(tl.program_id(0), tl.cdiv(classes, V) * across, tl.num_programs(0)):
            v = (tile // across) * V + tl.arange(0, V)
            d = (tile % across) * D + tl.arange(0, D)
            places = v.to(tl.int64)[:, None] * width + d[None, :]
            inside = (v < classes)[:, None] & (d < width)[None, :]
            total = tl.zeros([V, D], tl.float32)
            if tl.load(state + BEFORE) > 0:
                total = tl.load(out + places, mask=inside, other=0.0).to(tl.float32)
            if count == rows:
                total = _add_all(total, slopes, hidden, v, d, count, classes, width,
                                 stride, hidden_stride, K)  # fmt: skip
            else:
                total = _add_some(total, slopes, hidden, full, v, d, count, classes, width,
                                  stride, hidden_stride, K)  # fmt: skip
            tl.store(out + places, total, mask=inside)


@triton.jit
def sum_classes(
    starts, rows, values, hidden, state, out, width, hidden_stride, D: tl.constexpr
):  # fmt: skip
    """out[c] (+)= sum of value * hidden[row] over the entries of class c."""
    c = tl.program_id(0)
    d = tl.program_id(1) * D + tl.arange(0, D)
    inside = d < width
    begin = tl.load(starts + c)
    end = tl.load(starts + c + 1)
    total = tl.zeros([D], tl.float32)
    for k in range(begin, end):
        row = tl.load(rows + k).to(tl.int64)
        h = tl.load(hidden + row * hidden_stride + d, mask=inside, other=0.0)
        total += tl.load(values + k) * h.to(tl.float32)
    places = c.to(tl.int64) * width + d
    if tl.load(state + FULL) + tl.load(state + BEFORE) > 0:
        total += tl.load(out + places, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + places, total, mask=inside)
