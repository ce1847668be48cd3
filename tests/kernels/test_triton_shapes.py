"""Rows of any length are cut into blocks that a program takes, and as many of them as a grid has."""

from __future__ import annotations

import pytest

from tests.kernels.interpreted import defining_kernels

with defining_kernels():
    from fenchel.kernels.triton.launch.addressing import Rows
    from fenchel.kernels.triton.launch.tile_shapes import (
        ceil_div,
        gradient_tile,
        groups_shape,
        parts_shape,
    )

MOST_PROGRAMS = 65535  # along the second axis, on every device
MOST_ENTRIES = 2**20  # of a tensor in Triton


@pytest.mark.parametrize("columns", [40_000, 2**26, 2**26 + 1, 2**28 + 1, 2**30, 2**31 - 1])
def test_the_longest_rows_fit_a_grid(columns: int) -> None:
    shape = groups_shape(columns)
    assert shape.size * shape.groups >= columns
    for block in (shape.block, shape.listed):
        assert 1 <= block * shape.size <= MOST_ENTRIES
        assert ceil_div(shape.groups, block) <= MOST_PROGRAMS
    parts = parts_shape(columns)
    assert parts.block * parts.count >= columns
    assert parts.block <= MOST_ENTRIES
    assert parts.count <= MOST_PROGRAMS
    tile = gradient_tile(Rows(2, columns, 1, 2, 1))
    assert tile.width <= MOST_ENTRIES
    assert ceil_div(columns, tile.width) <= MOST_PROGRAMS
