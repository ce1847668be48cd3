"""Columns in multiples of LANES, so that every loop over them is made of whole vectors."""

from __future__ import annotations

from fenchel.kernels.cpu.launch.compilation import scalar, sequential
from fenchel.kernels.cpu.launch.memory import load, real, store

LANES = 32


@sequential
def fill(data, count, value):
    """Set `count` numbers to `value`."""
    number = real(data, value)
    for i in range(count):
        store(data, i, number)


@scalar
def copy(source, target, count):
    """Copy `count` numbers."""
    for i in range(count):
        store(target, i, load(source, i))


@scalar
def pad(data, start, value):
    """Fill up to a multiple of LANES; returns which multiple that is."""
    padded = (start + LANES - 1) // LANES
    for i in range(start, padded * LANES):
        store(data, i, value)
    return padded


@scalar
def load_tail(row, columns, tail, padding):
    """The columns after the last multiple of LANES, padded; 1 if there are any, else 0."""
    start = columns // LANES * LANES
    for i in range(columns - start):
        store(tail, i, load(row, start + i))
    return pad(tail, columns - start, padding)
