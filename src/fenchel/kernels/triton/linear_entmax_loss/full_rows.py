"""out += g^T h over the rows of a chunk that have too many entries for lists: a matrix product.

add_full_rows  some rows, whose numbers are given
add_all_rows   all rows, on GPUs with a copy engine for tensor descriptors, which load blocks of g and h.
               A program takes many tiles and loads the blocks of the next one while it adds the
               current one.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false
import triton
import triton.language as tl

from fenchel.kernels.triton.launch.kernel import (
    kernel,
)


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


@kernel
def add_full_rows(
    slopes, hidden, full, out, rows, most, classes, width, stride, hidden_stride,
    V: tl.constexpr, D: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """`full` has the number of full rows, then their numbers; at most `most` are added."""
    count = tl.load(full)
    if (count > 0) & (count <= most):
        across = tl.cdiv(width, D)
        for tile in range(tl.program_id(0), tl.cdiv(classes, V) * across, tl.num_programs(0)):
            v = (tile // across) * V + tl.arange(0, V)
            d = (tile % across) * D + tl.arange(0, D)
            places = v.to(tl.int64)[:, None] * width + d[None, :]
            inside = (v < classes)[:, None] & (d < width)[None, :]
            total = tl.load(out + places, mask=inside, other=0.0).to(tl.float32)
            if count == rows:
                total = _add_all(
                    total, slopes, hidden, v, d, count, classes, width, stride, hidden_stride, K,
                )  # fmt: skip
            else:
                total = _add_some(
                    total, slopes, hidden, full + 1, v, d, count, classes, width, stride,
                    hidden_stride, K,
                )  # fmt: skip
            tl.store(out + places, total, mask=inside)


@kernel
def add_all_rows(
    slopes, hidden, full, out, rows, classes, width,
    V: tl.constexpr, D: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """`slopes` and `hidden` are descriptors of blocks (K, V) and (K, D)."""
    if tl.load(full) == rows:
        across = tl.cdiv(width, D)
        tiles = tl.cdiv(classes, V) * across
        for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
            first = (tile // across) * V
            begin = (tile % across) * D
            total = tl.zeros([V, D], tl.float32)
            for start in range(0, rows, K):
                g = slopes.load([start, first])
                h = hidden.load([start, begin])
                total = tl.dot(tl.trans(g), h, total, input_precision="ieee")
            v = first + tl.arange(0, V)
            d = begin + tl.arange(0, D)
            places = v.to(tl.int64)[:, None] * width + d[None, :]
            inside = (v < classes)[:, None] & (d < width)[None, :]
            total += tl.load(out + places, mask=inside, other=0.0).to(tl.float32)
            tl.store(out + places, total, mask=inside)
