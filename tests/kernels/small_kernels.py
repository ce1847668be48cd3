"""Kernels for rows of a few numbers, and such rows: the interpreter runs one Python operation an element,
so tiles and the lengths from which other kernels take over are shrunk to reach every branch all the
same.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.kernels.interpreted import DEVICE, defining_kernels

with defining_kernels():
    from fenchel.kernels.triton import entmax, entmax_loss, weight_gradient
    from fenchel.kernels.triton.launch import long_row_shapes, tile_shapes
    from fenchel.kernels.triton.launch.whole_numbers import ceiling, power_of_two
    from fenchel.kernels.triton.losses import forward, kept
    from fenchel.kernels.triton.rows import long_rows

ACCURACY = 2e-7
IGNORED = -100


def stream_short_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that stream over rows take those that others would hold."""
    for name in ("LONGEST_TILE", "LONGEST_POWER_TILE"):
        monkeypatch.setattr(tile_shapes, name, 4)
    monkeypatch.setattr(long_row_shapes, "SOFTMAX_BLOCK", 4)
    monkeypatch.setattr(long_row_shapes, "MOST_PARTS", 2)
    monkeypatch.setattr(entmax, "LONGEST_BACKWARD", 4)
    monkeypatch.setattr(entmax, "BACKWARD_BLOCK", 16)
    monkeypatch.setattr(tile_shapes, "LONGEST_LOSS_TILE", 4)
    monkeypatch.setattr(entmax, "near_rows_shape", lambda *_: tile_shapes.Tile(2, 1, 4, 1, 2))
    monkeypatch.setattr(forward, "near_loss_shape", lambda: tile_shapes.Tile(4, 1, 4, 1))
    for module in (long_rows, kept, entmax_loss, weight_gradient):
        monkeypatch.setattr(module, "groups_shape", _small_groups)


def _small_groups(columns: int) -> long_row_shapes.Groups:
    groups = ceiling(columns, 4)
    return long_row_shapes.Groups(4, groups, power_of_two(groups), 4, 1, 2, 1)


def tensor(*shape: int, scale: float = 1.0) -> Tensor:
    return (torch.randn(shape, dtype=torch.float64) * scale).float().to(DEVICE)


def per_row(count: int) -> Tensor:
    """One alpha a row, on both sides of 1 and of 2."""
    return torch.linspace(0.7, 3.0, count, dtype=torch.float64, device=DEVICE).unsqueeze(-1)


def error(actual: Tensor, expected: Tensor) -> float:
    return (actual.double() - expected.double()).abs().max().item()
