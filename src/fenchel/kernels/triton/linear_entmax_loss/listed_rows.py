"""Products with gradients g of which most rows have few non-zero entries.

The sum over rows of g h^T (a matrix product would read and write the whole sum for every chunk):

list_entries        writes the entries of every row of a chunk
number_full_rows    writes the numbers of the rows that have too many for a list
add_full_rows       (in `full_rows`) multiplies these rows, if any, and adds the result to the sum
sum_listed_weights  adds the lists of some chunks, sorted by class

g W:

multiply_full_rows  multiplies the rows with too many entries for a list, if there are any; the classes
                    are divided among programs, more of them per row if there are few such rows
sum_listed_hidden   adds these parts, and for all other rows the rows of W of the classes in
                    their lists

Only the device knows the number of entries and of full rows, and no call waits for it.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.launch.kernel import (
    kernel,
)


@kernel
def list_entries(
    slopes, listed, target, classes, values, counts, columns, groups, stride,
    LONGEST: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The entries of a row are those of the listed groups of columns, and that of the target.

    The rest of a list has the class `columns`, which does not exist. A row with more than LONGEST
    entries, or with NaN, has an empty list and a count above LONGEST.
    """
    row = tl.program_id(0).to(tl.int64)
    slopes += row * stride
    listed += row * (groups + 1)
    classes += row * LONGEST
    values += row * LONGEST
    found = tl.load(listed + groups)
    wanted = tl.load(target + row).to(tl.int64)
    known = (wanted >= 0) & (wanted < columns)
    own = tl.load(slopes + wanted, mask=known, other=0.0).to(tl.float32)
    count = found * 0 + (LONGEST + 1)
    if (found <= LONGEST) & (own == own):
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
            tl.store(classes + entry, column, mask=here)
            tl.store(values + entry, slope, mask=here)
            count += tl.sum(lives, axis=0)
            met += tl.sum(((lives != 0) & (column == wanted)).to(tl.int32), axis=0)
        if (own != 0.0) & (met == 0):
            if count < LONGEST:
                tl.store(classes + count, wanted.to(tl.int32))
                tl.store(values + count, own)
            count += 1
    tl.debug_barrier()
    entry = tl.arange(0, LONGEST)
    used = tl.where(count <= LONGEST, count, 0)
    tl.store(classes + entry, entry * 0 + columns, mask=entry >= used)
    tl.store(counts + row, count)


@kernel
def number_full_rows(counts, full, rows, LONGEST: tl.constexpr, WIDTH: tl.constexpr):
    """One program: the number of rows with too many entries for a list, and then their row numbers."""
    row = tl.arange(0, WIDTH)
    count = tl.load(counts + row, mask=row < rows, other=0)
    left = (count > LONGEST).to(tl.int32)
    tl.store(full, tl.sum(left, axis=0))
    tl.store(full + 1 + tl.cumsum(left, 0) - left, row, mask=left != 0)


@kernel
def sum_listed_weights(
    starts, order, values, hidden, out, width, hidden_stride,
    LONGEST: tl.constexpr, D: tl.constexpr, AT_ONCE: tl.constexpr,
):  # fmt: skip
    """out[c] += sum of value * hidden[row] over the entries of class c in the lists of all rows."""
    c = tl.program_id(0)
    d = tl.program_id(1) * D + tl.arange(0, D)
    begin = tl.load(starts + c)
    end = tl.load(starts + c + 1)
    if begin < end:
        totals = tl.zeros([AT_ONCE, D], tl.float32)
        for start in range(begin, end, AT_ONCE):
            number = start + tl.arange(0, AT_ONCE)
            here = number < end
            place = tl.load(order + number, mask=here, other=0)
            value = tl.load(values + place, mask=here, other=0.0).to(tl.float32)
            inside = here[:, None] & (d < width)[None, :]
            h_places = (place // LONGEST)[:, None] * hidden_stride + d[None, :]
            h = tl.load(hidden + h_places, mask=inside, other=0.0)
            totals += value[:, None] * h.to(tl.float32)
        total = tl.sum(totals, axis=0)
        places = c.to(tl.int64) * width + d
        total += tl.load(out + places, mask=d < width, other=0.0).to(tl.float32)
        tl.store(out + places, total, mask=d < width)


@triton.jit
def _shares(count, across, programs, M: tl.constexpr):
    """(number of tiles of M full rows, number of programs that share the classes of each)."""
    down = tl.cdiv(count, M)
    return down, tl.maximum(programs // (down * across), 1)


@kernel
def multiply_full_rows(
    slopes, weight, full, parts, classes, width, stride, weight_stride,
    M: tl.constexpr, D: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """parts[share, tile of rows] = g W over the share's classes. There are programs for all tiles."""
    count = tl.load(full)
    if count > 0:
        across = tl.cdiv(width, D)
        down, shares = _shares(count, across, tl.num_programs(0), M)
        size = tl.cdiv(tl.cdiv(classes, shares), K) * K
        tile = tl.program_id(0) % (down * across)
        share = tl.program_id(0) // (down * across)
        if share < shares:
            m = (tile // across) * M + tl.arange(0, M)
            d = (tile % across) * D + tl.arange(0, D)
            k = tl.arange(0, K)
            row = tl.load(full + 1 + m, mask=m < count, other=0).to(tl.int64)
            begin = share * size
            end = tl.minimum(begin + size, classes)
            g_places = slopes + row[:, None] * stride + (begin + k)[None, :]
            w_places = weight + (begin + k).to(tl.int64)[:, None] * weight_stride + d[None, :]
            total = tl.zeros([M, D], tl.float32)
            for start in range(begin, end, K):
                here = k < end - start
                g = tl.load(g_places, mask=here[None, :], other=0.0)
                w = tl.load(w_places, mask=here[:, None] & (d < width)[None, :], other=0.0)
                total = tl.dot(g, w, total, input_precision="ieee")
                g_places += K
                w_places += K * weight_stride
            places = (share * (down * M) + m).to(tl.int64)[:, None] * width + d[None, :]
            tl.store(parts + places, total, mask=(m < count)[:, None] & (d < width)[None, :])


@kernel
def sum_listed_hidden(
    classes, values, counts, full, parts, weight, out, programs, width, weight_stride, out_stride,
    LONGEST: tl.constexpr, D: tl.constexpr, AT_ONCE: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Program i takes row i, if it has a list, and the i-th of the rows that have none.

    M rows and N columns are a tile of `multiply_full_rows`.
    """
    row = tl.program_id(0).to(tl.int64)
    d = tl.program_id(1) * D + tl.arange(0, D)
    count = tl.load(counts + row)
    if count <= LONGEST:
        totals = tl.zeros([AT_ONCE, D], tl.float32)
        for start in range(0, count, AT_ONCE):
            entry = start + tl.arange(0, AT_ONCE)
            here = entry < count
            c = tl.load(classes + row * LONGEST + entry, mask=here, other=0).to(tl.int64)
            value = tl.load(values + row * LONGEST + entry, mask=here, other=0.0).to(tl.float32)
            inside = here[:, None] & (d < width)[None, :]
            w = tl.load(weight + c[:, None] * weight_stride + d[None, :], mask=inside, other=0.0)
            totals += value[:, None] * w.to(tl.float32)
        tl.store(out + row * out_stride + d, tl.sum(totals, axis=0), mask=d < width)
    too_full = tl.load(full)
    if row < too_full:
        down, shares = _shares(too_full, tl.cdiv(width, N), programs, M)
        total = tl.zeros([D], tl.float32)
        for share in range(shares):
            place = (share * (down * M) + row) * width
            total += tl.load(parts + place + d, mask=d < width, other=0.0)
        row = tl.load(full + 1 + row).to(tl.int64)
        tl.store(out + row * out_stride + d, total, mask=d < width)
