"""The scratch memory of a thread: a packed block of queries, lists of candidates, and dense scores."""

from __future__ import annotations

from functools import lru_cache

from fenchel.kernels.cpu.attention.problem import (
    BLOCK,
    CAPACITY,
    DEPTH,
    KEYS,
    PANEL,
    VALUE_DEPTH,
)
from fenchel.kernels.cpu.attention.products import TILE_ROWS
from fenchel.kernels.cpu.entmax.narrow_rows import NARROW_COLUMNS
from fenchel.kernels.cpu.launch.compilation import inlined
from fenchel.kernels.cpu.launch.memory import advance, as_indices, integer_at
from fenchel.kernels.cpu.shared.batch import STATE_SIZE
from fenchel.kernels.cpu.solver.normalizer import normalizer_workspace

STATE_NUMBERS = 2 * STATE_SIZE  # for the float64 state of a batch of rows
FIRST_KEYS = 512  # the scores of so many keys are kept until there is a bound for them


def padded_length(keys):
    """Multiples of PANEL that hold any range of the keys, and lists of all of them."""
    return (keys + PANEL - 1) // PANEL * PANEL + PANEL


padded = inlined(padded_length)


def _list_numbers(block, capacity, depth):
    """Numbers that `lists_of` divides up."""
    panel = PANEL * (TILE_ROWS + FIRST_KEYS + FIRST_KEYS // TILE_ROWS + 2)
    return block * (2 * capacity + depth + 3) + panel + capacity


_numbers_of_lists = inlined(_list_numbers)


@lru_cache(1024)
def workspace_numbers(block: int, capacity: int, keys: int, depth: int, value_depth: int) -> int:
    """Numbers of scratch memory a thread needs."""
    width = padded_length(keys)
    return (
        _list_numbers(block, capacity, depth)
        + PANEL * (3 * width + max(depth, value_depth))
        + NARROW_COLUMNS
        + STATE_NUMBERS
        + normalizer_workspace(width)
    )


@inlined
def lists_of(arguments, workspace):
    """(packed queries, tile, bounds, counts, limits, probabilities, lists of scores, of places)

    After a tile, there is memory for the scores of FIRST_KEYS keys, and for their maxima.
    """
    block, capacity = integer_at(arguments, BLOCK), integer_at(arguments, CAPACITY)
    packed = workspace
    tile = advance(packed, block * integer_at(arguments, DEPTH))
    bounds = advance(tile, PANEL * (TILE_ROWS + FIRST_KEYS + FIRST_KEYS // TILE_ROWS + 2))
    counts = advance(bounds, block)
    limits = advance(counts, block)
    p = advance(limits, block)
    scores = advance(p, capacity)
    places = advance(scores, block * capacity)
    return (
        packed,
        tile,
        bounds,
        as_indices(counts),
        as_indices(limits),
        p,
        scores,
        as_indices(places),
    )


@inlined
def matrices_of(arguments, workspace):
    """(scores, probabilities, a third matrix, packed rows, workspace of the solver)

    The matrices have PANEL rows of `padded(keys)` columns. The third one may hold a batch of rows, and
    the workspace of the solver begins with the state of a batch.
    """
    block, capacity = integer_at(arguments, BLOCK), integer_at(arguments, CAPACITY)
    depth, width = integer_at(arguments, DEPTH), padded(integer_at(arguments, KEYS))
    scores = advance(workspace, _numbers_of_lists(block, capacity, depth))
    p = advance(scores, PANEL * width)
    third = advance(p, PANEL * width)
    packed = advance(third, PANEL * width + NARROW_COLUMNS)
    solver = advance(packed, PANEL * max(depth, integer_at(arguments, VALUE_DEPTH)))
    return scores, p, third, packed, solver
