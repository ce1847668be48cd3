"""The prox of total variation of every chain of neighbours of an image, for fusedmax2d."""

from __future__ import annotations

from fenchel.kernels.cpu.launch.compilation import sequential
from fenchel.kernels.cpu.launch.memory import TENSORS, advance, bytes_at, load, store
from fenchel.kernels.cpu.launch.sharing import for_each_row, matrix_row
from fenchel.kernels.cpu.structured.total_variation import prox


@sequential
def _chain_row(arguments, row, strength, columns, workspace):
    x, z = matrix_row(arguments, 0, row, columns), matrix_row(arguments, 1, row, columns)
    jumps = advance(bytes_at(arguments, TENSORS + 2), row * columns)
    present = advance(bytes_at(arguments, TENSORS + 3), row * columns)
    count = 0
    while count < columns and load(present, count) != 0:
        count += 1
    for i in range(columns):
        store(jumps, i, 0)
        store(z, i, load(x, i))
    if count > 1:
        prox(x, count, strength, z, jumps, workspace)


def chain_rows(arguments):
    """z and the jumps of every chain, whose present entries come first."""
    for_each_row(arguments, _chain_row)
