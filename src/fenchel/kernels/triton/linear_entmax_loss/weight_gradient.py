"""The gradients of an output layer from chunks of rows whose gradients g are mostly zero."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton.language as tl

# A kernel is launched with options that its parameters do not name.
# pyright: reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    NEAR_SOFTMAX_EPS,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    ceil_div,
    fits_loss_tile,
    groups_shape,
    next_power_of_two,
)
from fenchel.kernels.triton.linear_entmax_loss.full_rows import (
    add_all_rows,
    add_full_rows,
)
from fenchel.kernels.triton.linear_entmax_loss.listed_rows import (
    list_entries,
    multiply_full_rows,
    number_full_rows,
    sum_listed_hidden,
    sum_listed_weights,
)

SCALE_BLOCK, SCALE_WARPS = 4096, 8
# Few programs: the factor is mostly 1 (the loss is differentiated as it is), and nothing is scaled.
MAX_SCALE_PROGRAMS = 1056
HALF_DTYPES = (
    torch.bfloat16,
    torch.float16,
)  # their product is so fast that reading the sum counts
MAX_LISTED_ENTRIES = 512  # entries of a row that are listed; a row with more is multiplied
LIST_PARTS = 2  # parts of all rows; the lists of a part are summed together
WEIGHT_BLOCK, WEIGHT_ENTRIES_AT_ONCE = (
    2048,
    2,
)  # columns of a program of the weight's sum, and entries read before adding
HIDDEN_BLOCK, HIDDEN_ENTRIES_AT_ONCE = 1024, 8  # the same for the hidden states
MIN_FULL_PROGRAMS = (
    128  # programs, about as many as run at once, that share the classes of full rows
)
MAX_FULL_PROGRAMS = 1024  # mostly there is nothing to multiply, and only starting them takes time
DESCRIPTOR_PROGRAMS = 264  # programs of a product by descriptors, two per multiprocessor
DESCRIPTOR_ALIGNMENT_BYTES = 16  # the addresses of a descriptor must be multiples of this


@kernel
def scale_blocks(numbers, factor, count, K: tl.constexpr):
    by = tl.load(factor)
    if by != 1.0:
        for block in range(tl.program_id(0), tl.cdiv(count, K), tl.num_programs(0)):
            place = tl.cast(block, tl.int64) * K + tl.arange(0, K)
            scaled = tl.load(numbers + place, mask=place < count).to(tl.float32) * by
            tl.store(numbers + place, scaled, mask=place < count)


def scale(numbers: Tensor, factor: Tensor) -> Tensor:
    """Scale contiguous `numbers` in place, and return them."""
    count = numbers.numel()
    if count > 0:
        programs = min(ceil_div(count, SCALE_BLOCK), MAX_SCALE_PROGRAMS)
        scale_blocks[(programs,)](numbers, factor, count, K=SCALE_BLOCK, num_warps=SCALE_WARPS)
    return numbers


class Product(NamedTuple):
    """The tile of a product: rows and columns, and the depth that is on chip at a time."""

    rows: int
    columns: int
    depth: int
    limits: dict[str, int]


TILE = Product(128, 128, 32, {"num_warps": 8, "num_stages": 4, "maxnreg": 128})  # of gᵀh


DESCRIPTOR_TILE = Product(128, 128, 64, {"num_warps": 4, "num_stages": 3})  # of gᵀh, by descriptors


HIDDEN_TILE = Product(128, 256, 32, {"num_warps": 8, "num_stages": 4})  # of g W


LARGE_HIDDEN_TILE = HIDDEN_TILE._replace(depth=64)


def sparse_weight_gradient(
    out: Tensor, hidden: Tensor, weight: Tensor, target: Tensor, alpha: float | Tensor, rows: int
) -> SparseWeightGradient | None:
    """The sum of the listed entries, if they are likely to be few; else None."""
    if worth_listing(hidden, out.shape[0], target, alpha) and weight.stride(1) == 1:
        return SparseWeightGradient(out, hidden, target, rows)
    return None


def worth_listing(hidden: Tensor, classes: int, target: Tensor, alpha: float | Tensor) -> bool:
    """Whether rows are long, with class indices and an α with a small support."""
    by_index = not target.dtype.is_floating_point
    fits = hidden.dtype in HALF_DTYPES and hidden.stride(1) == 1
    return _is_sparse_alpha(alpha) and by_index and fits and not fits_loss_tile(classes)


def _is_sparse_alpha(alpha: float | Tensor) -> bool:
    """Whether α is a number for which most scores of a long row are off the support."""
    return not isinstance(alpha, Tensor) and NEAR_SOFTMAX_EPS.value <= alpha - 1 <= 1


def is_hopper_or_later(device: torch.device) -> bool:
    """Whether a GPU has 200 kB of shared memory per program, and an engine that copies blocks there."""
    return device.type != "cuda" or torch.cuda.get_device_capability(device)[0] in (9, 10)


def fits_descriptor(matrix: Tensor) -> bool:
    """Whether a tensor descriptor can address the rows, and the GPU has the copy engine for it."""
    step = matrix.stride(0) * matrix.element_size()
    aligned = (
        matrix.data_ptr() % DESCRIPTOR_ALIGNMENT_BYTES == 0
        and step % DESCRIPTOR_ALIGNMENT_BYTES == 0
    )
    return is_hopper_or_later(matrix.device) and aligned


class SparseWeightGradient:
    """Σ g hᵀ over all rows, written to `out`; the g of class indices `target` come in chunks of rows.

    A chunk has at most `rows` of them and is listed in parts, from the `support_groups` that
    `entmax_loss_in_place` has written. The lists serve the gradient in `hidden` too.
    """

    def __init__(self, out: Tensor, hidden: Tensor, target: Tensor, rows: int) -> None:
        self.out, self.hidden, self.target = out.zero_(), hidden, target.contiguous()
        self.shape = groups_shape(out.shape[0])
        window = max(rows, ceil_div(hidden.shape[0], LIST_PARTS))
        self.classes = self._numbers(window, MAX_LISTED_ENTRIES)
        self.values = hidden.new_empty(window, MAX_LISTED_ENTRIES)
        self.counts, self.full = self._numbers(rows), self._numbers(rows + 1)
        self.begin = 0  # of the window

    def _numbers(self, *shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.int32, device=self.out.device)

    def empty_support_groups(self, rows: int) -> Tensor:
        return self._numbers(rows, self.shape.groups + 1)

    def list_part(self, slopes: Tensor, listed: Tensor | None, first: int, offset: int) -> None:
        """A part of a chunk, by its first row among all rows and in the chunk."""
        rows, columns = slopes.shape
        here = slice(first - self.begin, first - self.begin + rows)
        list_entries[(rows,)](
            slopes, listed, self.target[first : first + rows],
            self.classes[here], self.values[here], self.counts[offset : offset + rows],
            columns, self.shape.groups, slopes.stride(0),
            LONGEST=MAX_LISTED_ENTRIES, GROUP=self.shape.size, BLOCK=min(16, MAX_LISTED_ENTRIES),
            num_warps=4,
        )  # fmt: skip

    def add(self, slopes: Tensor, first: int, by_hidden: Tensor | None, weight: Tensor) -> None:
        """Add a chunk whose parts have been listed, from its first row; g W is written if required."""
        rows = slopes.shape[0]
        number_full_rows[(1,)](
            self.counts,
            self.full,
            rows,
            LONGEST=MAX_LISTED_ENTRIES,
            WIDTH=next_power_of_two(rows),
            num_warps=4,
        )
        if by_hidden is not None:
            self._multiply(slopes, first, by_hidden, weight)
        self._add_full(slopes, self.hidden[first : first + rows])

    def _multiply(self, slopes: Tensor, first: int, by_hidden: Tensor, weight: Tensor) -> None:
        """g W of the full rows, divided among programs, and of all others by their lists."""
        rows, (columns, width) = slopes.shape[0], weight.shape
        tile = LARGE_HIDDEN_TILE if is_hopper_or_later(slopes.device) else HIDDEN_TILE
        across = ceil_div(width, tile.columns)
        programs = max(MIN_FULL_PROGRAMS, ceil_div(rows, tile.rows) * across)
        shared = programs // across * tile.rows, width
        shares = torch.empty(shared, dtype=torch.float32, device=slopes.device)
        multiply_full_rows[(programs,)](
            slopes, weight, self.full, shares, columns, width, slopes.stride(0), weight.stride(0),
            M=tile.rows, D=tile.columns, K=tile.depth, **tile.limits,
        )  # fmt: skip
        block = min(next_power_of_two(width), HIDDEN_BLOCK)
        here = slice(first - self.begin, first - self.begin + rows)
        sum_listed_hidden[(rows, ceil_div(width, block))](
            self.classes[here], self.values[here], self.counts, self.full, shares, weight,
            by_hidden, programs, width, weight.stride(0), by_hidden.stride(0),
            LONGEST=MAX_LISTED_ENTRIES, D=block, AT_ONCE=HIDDEN_ENTRIES_AT_ONCE,
            M=tile.rows, N=tile.columns, num_warps=4,
        )  # fmt: skip

    def _add_full(self, slopes: Tensor, hidden: Tensor) -> None:
        """gᵀh of the full rows."""
        (rows, columns), width = slopes.shape, hidden.shape[1]
        described = (
            self.out.dtype in HALF_DTYPES and fits_descriptor(slopes) and fits_descriptor(hidden)
        )
        if described:
            self._add_all(slopes, hidden)
        tiles = ceil_div(columns, TILE.rows) * ceil_div(width, TILE.columns)
        add_full_rows[(min(tiles, MAX_FULL_PROGRAMS),)](
            slopes, hidden, self.full, self.out, rows, rows - described, columns, width,
            slopes.stride(0), hidden.stride(0),
            V=TILE.rows, D=TILE.columns, K=TILE.depth, **TILE.limits,
        )  # fmt: skip

    def _add_all(self, slopes: Tensor, hidden: Tensor) -> None:
        """The same if all rows are full."""
        (rows, columns), width, tile = slopes.shape, hidden.shape[1], DESCRIPTOR_TILE
        tiles = ceil_div(columns, tile.rows) * ceil_div(width, tile.columns)
        add_all_rows[(min(tiles, DESCRIPTOR_PROGRAMS),)](
            TensorDescriptor.from_tensor(slopes, [tile.depth, tile.rows]),
            TensorDescriptor.from_tensor(hidden, [tile.depth, tile.columns]),
            self.full, self.out, rows, columns, width,
            V=tile.rows, D=tile.columns, K=tile.depth, **tile.limits,
        )  # fmt: skip

    def finish(self, stop: int) -> None:
        """Sum the lists of the rows before `stop`, if the memory is full or no more rows follow."""
        rows = stop - self.begin
        if stop < self.hidden.shape[0] and rows + self.counts.shape[0] <= self.classes.shape[0]:
            return
        classes, width = self.out.shape
        ordered, order = torch.sort(self.classes[:rows].view(-1), stable=True)
        edges = torch.arange(classes + 1, dtype=torch.int32, device=self.out.device)
        starts = torch.searchsorted(ordered, edges, out_int32=True)
        block = min(next_power_of_two(width), WEIGHT_BLOCK)
        sum_listed_weights[(classes, ceil_div(width, block))](
            starts, order, self.values, self.hidden[self.begin :], self.out, width,
            self.hidden.stride(0), LONGEST=MAX_LISTED_ENTRIES, D=block, AT_ONCE=WEIGHT_ENTRIES_AT_ONCE,
            num_warps=8,
        )  # fmt: skip
        self.begin = stop
