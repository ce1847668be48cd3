"""g W for gradients g of which most rows have few entries that are not zero: kernels.

multiply_full_rows  multiplies the rows that are too full for a list, if there are any; the classes are
                    shared out among programs, as many of them to a row as there are few such rows;
use_lists           adds up these shares, and the rows of W that the lists of all other rows name.

How many rows are full is known to the device alone, and nothing waits for it.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.launch.kernel import kernel


@triton.jit
def _shares(count, across, programs, M: tl.constexpr):
    """(tiles of M full rows, how many programs share the classes of each)."""
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
def use_lists(
    classes, values, counts, full, parts, weight, out, programs, width, weight_stride, out_stride,
    LONGEST: tl.constexpr, D: tl.constexpr, AT_ONCE: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Program i takes the i-th row, if it has a list, and the i-th of the rows that have none.

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
