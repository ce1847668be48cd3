"""The integral of a Gaussian over a paraboloid on the unit disk, with its slopes, on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.cpu.disk.chords import BLOCK
from fenchel.kernels.cpu.disk.pairs import SLOPES, pair_rows, pairs_workspace
from fenchel.kernels.cpu.launch.compilation import Kernel
from fenchel.kernels.cpu.launch.threads import launch

_pairs = Kernel(pair_rows)


def paraboloid(linear: Tensor, offset: Tensor, angles: int) -> tuple[Tensor, Tensor]:
    """The integral (…) and its slopes (…, 6); see the reference."""
    shape, dtype = offset.shape[:-1], offset.dtype
    linear, offset = (
        tensor.to(torch.float64).reshape(-1, size).contiguous()
        for tensor, size in ((linear.flatten(-2), 4), (offset, 2))
    )
    pairs = len(offset)
    value, slopes = offset.new_empty(pairs), offset.new_empty(pairs, SLOPES)
    blocks = offset.new_empty(1).expand(-(-pairs // BLOCK), BLOCK * angles)  # nodes, a row a block
    workspace = pairs_workspace(angles)
    launch(_pairs, blocks, 0.0, workspace, linear, offset, value, slopes, pairs, angles)
    return value.view(shape).to(dtype), slopes.view(*shape, SLOPES).to(dtype)
