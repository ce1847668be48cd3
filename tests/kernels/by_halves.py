"""Triton's interpreter, made to reduce by halves as the threads of a GPU do.

By itself it adds in numpy's order, which rounds more often than threads do, and goes through any other
reduction entry by entry, in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = list[NDArray[Any]]


def reduce_by_halves() -> None:
    """Change the interpreter for good; Triton must have been told to interpret before it is imported."""
    from triton.runtime.interpreter import ReduceOps

    ReduceOps.generic_reduce = _any_reduction
    ReduceOps.sum = _sum


def _any_reduction(self: Any, inputs: tuple[Any, ...]) -> list[Any]:
    def combined(a: Arrays, b: Arrays) -> Arrays:
        pairs = (
            self.to_tensor(half, given.dtype)
            for halves in (a, b)
            for half, given in zip(halves, inputs, strict=True)
        )
        result = self.combine_fn.fn(*pairs)
        parts = result if isinstance(result, tuple) else (result,)
        return [part.handle.data for part in parts]

    return _reduced(self, inputs, combined)


def _sum(self: Any, given: Any) -> Any:
    return _reduced(self, (given,), lambda a, b: [a[0] + b[0]])[0]


def _reduced(
    self: Any, inputs: tuple[Any, ...], combined: Callable[[Arrays, Arrays], Arrays]
) -> list[Any]:
    arrays = [each.handle.data for each in inputs]
    axis, dimensions = self.axis, arrays[0].ndim
    if axis is None:
        arrays, axis = [each.reshape(-1) for each in arrays], 0
    while arrays[0].shape[axis] > 1:
        halves = [np.split(each, 2, axis) for each in arrays]
        arrays = combined([first for first, _ in halves], [second for _, second in halves])
    if not self.keep_dims:
        arrays = [each.squeeze(axis) for each in arrays]
    elif self.axis is None:
        arrays = [each.reshape((1,) * dimensions) for each in arrays]
    return [self.to_tensor(each, given.dtype) for each, given in zip(arrays, inputs, strict=True)]
