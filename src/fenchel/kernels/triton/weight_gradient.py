"""The gradient of an output layer's weight from chunks of rows whose gradients are mostly zero."""

from __future__ import annotations

# A kernel is launched with options that its parameters do not name.
# pyright: reportCallIssue=false
import torch
from torch import Tensor

from fenchel.kernels.triton.configuration import (
    LONGEST_LOSS_TILE,
    ceiling,
    groups_shape,
    power_of_two,
)
from fenchel.kernels.triton.sparse_weight import (
    add_full_rows,
    list_rows,
    move_rows,
    place_rows,
    sum_classes,
)

HALF = (torch.bfloat16, torch.float16)  # their product is so fast that reading the sum counts
LONGEST = 512  # entries of a row that are listed; a row with more is multiplied
SHARE = 64  # entries of the pool, for each row that there is
TILE = 128  # classes, and columns of the weight, of one program's product
PROGRAMS = 1024  # mostly there is nothing to multiply, and starting them is all the cost


def worth_listing(hidden: Tensor, classes: int, target: Tensor, alpha: float | Tensor) -> bool:
    """Whether rows are long, with class indices and an α that leaves little support."""
    sparse = not isinstance(alpha, Tensor) and 1 < alpha <= 2
    by_index = not target.dtype.is_floating_point
    fits = hidden.dtype in HALF and hidden.stride(1) == 1
    return sparse and by_index and fits and classes > LONGEST_LOSS_TILE


class SparseWeightGradient:
    """Σ g hᵀ over all rows, written to `out`; the g of class indices `target` come in chunks of rows.

    A chunk has at most `rows` of them and is listed in parts of at most `part`; `listed` is what
    `entmax_loss_in_place` says of a part.
    """

    def __init__(self, out: Tensor, hidden: Tensor, target: Tensor, rows: int, part: int) -> None:
        self.out, self.hidden, self.target = out, hidden, target.contiguous()
        self.shape = groups_shape(out.shape[0])
        self.size = SHARE * hidden.shape[0]
        self.state = torch.zeros(3, dtype=torch.int32, device=out.device)
        self.pool_classes = self._numbers(self.size).fill_(out.shape[0])
        self.pool_rows = self._numbers(self.size)
        self.pool_values = torch.zeros(self.size, dtype=torch.float32, device=out.device)
        self.classes = self._numbers(rows, LONGEST)
        self.values = torch.empty(rows, LONGEST, dtype=torch.float32, device=out.device)
        self.counts, self.places, self.full = (self._numbers(rows) for _ in range(3))
        self.listed = self._numbers(part, self.shape.groups + 1)

    def _numbers(self, *shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.int32, device=self.out.device)

    def list_part(self, slopes: Tensor, first: int, offset: int) -> None:
        """A part of a chunk: its first row among all, and in the chunk."""
        rows, columns = slopes.shape
        here = slice(offset, offset + rows)
        list_rows[(rows,)](
            slopes, self.listed, self.target[first : first + rows],
            self.classes[here], self.values[here], self.counts[here],
            columns, self.shape.groups, slopes.stride(0),
            LONGEST=LONGEST, GROUP=self.shape.size, BLOCK=min(16, LONGEST), num_warps=4,
        )  # fmt: skip

    def add(self, slopes: Tensor, first: int) -> None:
        """A chunk whose parts have been listed, from its first row on."""
        rows, columns = slopes.shape
        place_rows[(1,)](
            self.counts, self.places, self.full, self.state, rows, self.size,
            LONGEST=LONGEST, WIDTH=power_of_two(rows), num_warps=4,
        )  # fmt: skip
        move_rows[(rows,)](
            self.classes, self.values, self.counts, self.places,
            self.pool_classes, self.pool_rows, self.pool_values, first,
            LONGEST=LONGEST, num_warps=4,
        )  # fmt: skip
        hidden = self.hidden[first : first + rows]
        width = hidden.shape[1]
        tiles = ceiling(columns, TILE) * ceiling(width, TILE)
        add_full_rows[(min(tiles, PROGRAMS),)](
            slopes, hidden, self.full, self.state, self.out, rows, columns, width,
            slopes.stride(0), hidden.stride(0),
            V=TILE, D=TILE, K=32, num_warps=8, num_stages=4, maxnreg=128,
        )  # fmt: skip

    def finish(self) -> None:
        classes, width = self.out.shape
        ordered, order = torch.sort(self.pool_classes, stable=True)
        edges = torch.arange(classes + 1, dtype=torch.int32, device=self.out.device)
        starts = torch.searchsorted(ordered, edges, out_int32=True)
        block = min(power_of_two(width), 2048)
        sum_classes[(classes, ceiling(width, block))](
            starts, self.pool_rows[order], self.pool_values[order], self.hidden, self.state,
            self.out, width, self.hidden.stride(0), D=block, num_warps=4,
        )  # fmt: skip
