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
    from fenchel.kernels.triton.entmax import backward, long_rows, near_softmax
    from fenchel.kernels.triton.entmax_loss import (
        alpha_gradient,
        saved_for_backward,
    )
    from fenchel.kernels.triton.entmax_loss import backward as loss_backward
    from fenchel.kernels.triton.entmax_loss import near_softmax as loss_near_softmax
    from fenchel.kernels.triton.launch import tile_shapes
    from fenchel.kernels.triton.launch.tile_shapes import ceil_div, next_power_of_two
    from fenchel.kernels.triton.linear_entmax_loss import weight_gradient

ACCURACY = 2e-7
IGNORED = -100


def stream_short_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that stream over rows take those that others would hold."""
    for name in ("MAX_TILE_COLUMNS", "MAX_POWER_TILE_COLUMNS"):
        monkeypatch.setattr(tile_shapes, name, 4)
    monkeypatch.setattr(tile_shapes, "SOFTMAX_PART_COLUMNS", 4)
    monkeypatch.setattr(tile_shapes, "MAX_PARTS_AT_ONCE", 2)
    monkeypatch.setattr(backward, "MAX_BACKWARD_TILE_COLUMNS", 4)
    monkeypatch.setattr(backward, "BACKWARD_BLOCK_COLUMNS", 16)
    monkeypatch.setattr(tile_shapes, "MAX_LOSS_TILE_COLUMNS", 4)
    monkeypatch.setattr(
        near_softmax, "near_softmax_tile", lambda *_: tile_shapes.Tile(2, 1, 4, 1, 2)
    )
    monkeypatch.setattr(
        loss_near_softmax, "near_softmax_loss_tile", lambda: tile_shapes.Tile(4, 1, 4, 1)
    )
    for module in (long_rows, saved_for_backward, loss_backward, alpha_gradient, weight_gradient):
        monkeypatch.setattr(module, "groups_shape", _small_groups)


def _small_groups(columns: int) -> tile_shapes.Groups:
    groups = ceil_div(columns, 4)
    return tile_shapes.Groups(4, groups, next_power_of_two(groups), 4, 1, 2, 1)


def tensor(*shape: int, scale: float = 1.0) -> Tensor:
    return (torch.randn(shape, dtype=torch.float64) * scale).float().to(DEVICE)


def per_row(count: int) -> Tensor:
    """One alpha a row, on both sides of 1 and of 2."""
    return torch.linspace(0.7, 3.0, count, dtype=torch.float64, device=DEVICE).unsqueeze(-1)


def error(actual: Tensor, expected: Tensor) -> float:
    return (actual.double() - expected.double()).abs().max().item()
