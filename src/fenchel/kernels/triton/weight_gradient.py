"""The gradients of an output layer from chunks of rows whose gradients g are mostly zero."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from fenchel.kernels.triton.launch.alpha import NEAR_SOFTMAX
from fenchel.kernels.triton.launch.long_row_shapes import groups_shape
from fenchel.kernels.triton.launch.tile_shapes import fits_loss_tile
from fenchel.kernels.triton.launch.whole_numbers import ceiling, power_of_two
from fenchel.kernels.triton.output_layer.full_rows import add_all_rows, add_full_rows
from fenchel.kernels.triton.output_layer.sparse_hidden import multiply_full_rows, use_lists
from fenchel.kernels.triton.output_layer.sparse_weight import list_rows, name_full_rows, sum_classes

HALF = (torch.bfloat16, torch.float16)  # their product is so fast that reading the sum counts
LONGEST = 512  # entries of a row that are listed; a row with more is multiplied
SUMS = 2  # the lists of so many parts of all rows are summed, one part after the other
BLOCK, AT_ONCE = 2048, 2  # columns of a program of the weight's sum, and entries read before adding
HIDDEN_BLOCK, HIDDEN_AT_ONCE = 1024, 8  # the same for the hidden states
SHARING = 128  # programs, about as many as run at once, that share the classes of full rows
PROGRAMS = 1024  # mostly there is nothing to multiply, and starting them is all the cost


class Product(NamedTuple):
    """A program's tile of a product: rows and columns, and the depth of what is on chip at a time."""

    rows: int
    columns: int
    depth: int
    limits: dict[str, int]


TILE = Product(128, 128, 32, {"num_warps": 8, "num_stages": 4, "maxnreg": 128})  # of gᵀh
DESCRIBED_TILE = Product(128, 128, 64, {"num_warps": 4, "num_stages": 3})  # by descriptors,
DESCRIBED_PROGRAMS = 264  # by so many programs, two for each multiprocessor
DESCRIBED_BYTES = 16  # of which a descriptor wants addresses to be multiples
HIDDEN_TILE = Product(128, 256, 32, {"num_warps": 8, "num_stages": 4})  # of g W
LARGE_HIDDEN_TILE = HIDDEN_TILE._replace(depth=64)


def worth_listing(hidden: Tensor, classes: int, target: Tensor, alpha: float | Tensor) -> bool:
    """Whether rows are long, with class indices and an α that leaves little support."""
    by_index = not target.dtype.is_floating_point
    fits = hidden.dtype in HALF and hidden.stride(1) == 1
    return _leaves_scores_out(alpha) and by_index and fits and not fits_loss_tile(classes)


def _leaves_scores_out(alpha: float | Tensor) -> bool:
    """Whether one α for all rows is likely to leave many scores of a long row without support."""
    return not isinstance(alpha, Tensor) and NEAR_SOFTMAX.value <= alpha - 1 <= 1


def is_large(device: torch.device) -> bool:
    """Whether a GPU has 200 kB on chip for a program, and an engine that copies blocks there."""
    return device.type != "cuda" or torch.cuda.get_device_capability(device)[0] in (9, 10)


def describable(matrix: Tensor) -> bool:
    """Whether a descriptor can tell where its rows are, and there is an engine that copies by it."""
    step = matrix.stride(0) * matrix.element_size()
    aligned = matrix.data_ptr() % DESCRIBED_BYTES == 0 and step % DESCRIBED_BYTES == 0
    return is_large(matrix.device) and aligned


class SparseWeightGradient:
    """Σ g hᵀ over all rows, written to `out`; the g of class indices `target` come in chunks of rows.

    A chunk has at most `rows` of them and is listed in parts; `room` is for what `entmax_loss_in_place`
    says of a part. The lists serve the gradient in `hidden` too.
    """

    def __init__(self, out: Tensor, hidden: Tensor, target: Tensor, rows: int) -> None:
        self.out, self.hidden, self.target = out.zero_(), hidden, target.contiguous()
        self.shape = groups_shape(out.shape[0])
        window = max(rows, ceiling(hidden.shape[0], SUMS))
        self.classes = self._numbers(window, LONGEST)
        self.values = hidden.new_empty(window, LONGEST)
        self.counts, self.full = self._numbers(rows), self._numbers(rows + 1)
        self.begin = 0  # of the window

    def _numbers(self, *shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.int32, device=self.out.device)

    def room(self, rows: int) -> Tensor:
        return self._numbers(rows, self.shape.groups + 1)

    def list_part(self, slopes: Tensor, listed: Tensor | None, first: int, offset: int) -> None:
        """A part of a chunk: its first row among all, and in the chunk."""
        rows, columns = slopes.shape
        here = slice(first - self.begin, first - self.begin + rows)
        list_rows[(rows,)](
            slopes, listed, self.target[first : first + rows],
            self.classes[here], self.values[here], self.counts[offset : offset + rows],
            columns, self.shape.groups, slopes.stride(0),
            LONGEST=LONGEST, GROUP=self.shape.size, BLOCK=min(16, LONGEST), num_warps=4,
        )  # fmt: skip

    def add(self, slopes: Tensor, first: int, by_hidden: Tensor | None, weight: Tensor) -> None:
        """A chunk whose parts have been listed, from its first row on; g W is written if it is wanted."""
        rows = slopes.shape[0]
        name_full_rows[(1,)](
            self.counts, self.full, rows, LONGEST=LONGEST, WIDTH=power_of_two(rows), num_warps=4
        )
        if by_hidden is not None:
            self._multiply(slopes, first, by_hidden, weight)
        self._add_full(slopes, self.hidden[first : first + rows])

    def _multiply(self, slopes: Tensor, first: int, by_hidden: Tensor, weight: Tensor) -> None:
        """g W of the full rows in shares, and of all others by their lists."""
        rows, (columns, width) = slopes.shape[0], weight.shape
        tile = LARGE_HIDDEN_TILE if is_large(slopes.device) else HIDDEN_TILE
        across = ceiling(width, tile.columns)
        programs = max(SHARING, ceiling(rows, tile.rows) * across)
        shared = programs // across * tile.rows, width
        shares = torch.empty(shared, dtype=torch.float32, device=slopes.device)
        multiply_full_rows[(programs,)](
            slopes, weight, self.full, shares, columns, width, slopes.stride(0), weight.stride(0),
            M=tile.rows, D=tile.columns, K=tile.depth, **tile.limits,
        )  # fmt: skip
        block = min(power_of_two(width), HIDDEN_BLOCK)
        here = slice(first - self.begin, first - self.begin + rows)
        use_lists[(rows, ceiling(width, block))](
            self.classes[here], self.values[here], self.counts, self.full, shares, weight,
            by_hidden, programs, width, weight.stride(0), by_hidden.stride(0),
            LONGEST=LONGEST, D=block, AT_ONCE=HIDDEN_AT_ONCE, M=tile.rows, N=tile.columns,
            num_warps=4,
        )  # fmt: skip

    def _add_full(self, slopes: Tensor, hidden: Tensor) -> None:
        """gᵀh of the full rows."""
        (rows, columns), width = slopes.shape, hidden.shape[1]
        described = self.out.dtype in HALF and describable(slopes) and describable(hidden)
        if described:
            self._add_all(slopes, hidden)
        tiles = ceiling(columns, TILE.rows) * ceiling(width, TILE.columns)
        add_full_rows[(min(tiles, PROGRAMS),)](
            slopes, hidden, self.full, self.out, rows, rows - described, columns, width,
            slopes.stride(0), hidden.stride(0),
            V=TILE.rows, D=TILE.columns, K=TILE.depth, **TILE.limits,
        )  # fmt: skip

    def _add_all(self, slopes: Tensor, hidden: Tensor) -> None:
        """The same if all are."""
        (rows, columns), width, tile = slopes.shape, hidden.shape[1], DESCRIBED_TILE
        tiles = ceiling(columns, tile.rows) * ceiling(width, tile.columns)
        add_all_rows[(min(tiles, DESCRIBED_PROGRAMS),)](
            TensorDescriptor.from_tensor(slopes, [tile.depth, tile.rows]),
            TensorDescriptor.from_tensor(hidden, [tile.depth, tile.columns]),
            self.full, self.out, rows, columns, width,
            V=tile.rows, D=tile.columns, K=tile.depth, **tile.limits,
        )  # fmt: skip

    def finish(self, stop: int) -> None:
        """The rows before `stop` have been added: sum the lists, if no more of them fit or come."""
        rows = stop - self.begin
        if stop < self.hidden.shape[0] and rows + self.counts.shape[0] <= self.classes.shape[0]:
            return
        classes, width = self.out.shape
        ordered, order = torch.sort(self.classes[:rows].view(-1), stable=True)
        edges = torch.arange(classes + 1, dtype=torch.int32, device=self.out.device)
        starts = torch.searchsorted(ordered, edges, out_int32=True)
        block = min(power_of_two(width), BLOCK)
        sum_classes[(classes, ceiling(width, block))](
            starts, order, self.values, self.hidden[self.begin :], self.out, width,
            self.hidden.stride(0), LONGEST=LONGEST, D=block, AT_ONCE=AT_ONCE, num_warps=8,
        )  # fmt: skip
        self.begin = stop
