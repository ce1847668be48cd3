"""Probabilities of a stretch of columns, times a number, from the normaliser of their row."""

from __future__ import annotations

from numba import float64

from fenchel.kernels.cpu.arithmetic.entries import (
    coefficients,
    entmax15_entry,
    entmax_entry,
    sparsemax_entry,
)
from fenchel.kernels.cpu.columns.whole_vectors import LANES
from fenchel.kernels.cpu.launch.compilation import scalar, sequential
from fenchel.kernels.cpu.launch.memory import load, real, store
from fenchel.kernels.cpu.search.steep import steep_entry


@scalar
def _write_entries(entry, data, out, groups, row, scale):
    for i in range(groups * LANES):
        p, _, _ = entry(load(data, i), row)
        store(out, i, p * scale)


@scalar
def _write_steep(data, out, groups, pivot, threshold, rest, e, scale):
    for i in range(groups * LANES):
        p, _ = steep_entry(load(data, i), pivot, threshold, rest, e, 1.0 / e)
        store(out, i, p * scale)


@sequential
def write(data, out, groups, pivot, offset, rest, alpha, scale):
    """`scale` p for `groups` multiples of LANES columns; pivot, offset and rest as `solve` has them."""
    if alpha > 2.0:
        e = alpha - 1.0
        _write_steep(data, out, groups, float64(pivot), offset, rest, e, scale)
        return
    row = coefficients(pivot, offset, rest, alpha)
    factor = real(data, scale)
    if alpha == 2.0:
        _write_entries(sparsemax_entry, data, out, groups, row, factor)
    elif alpha == 1.5:
        _write_entries(entmax15_entry, data, out, groups, row, factor)
    else:
        _write_entries(entmax_entry, data, out, groups, row, factor)
