"""One root finder for every map that is a threshold: safeguarded Newton, row by row, to the last bit."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from torch import Tensor


def solve_decreasing(
    evaluate: Callable[[Tensor], tuple[Tensor, Tensor]],
    lower: Tensor,
    upper: Tensor,
    *,
    steps: int | None = None,
) -> Tensor:
    """The root of a decreasing function in [lower, upper], for many rows at once.

    `evaluate(t)` returns the value and the slope. Newton starts at `lower`, from where it never
    overshoots if the function is convex. A step that leaves the bracket, or that did
    not halve the value, is replaced by a bisection, so every row ends: at a value that is rounding,
    at a step too small to move, or with a bracket that holds no further number. A row that
    evaluates to NaN ends at once.

    To look whether all have ended makes a device wait. `steps`, if given, is how many are taken
    without a look wherever the rows are not on the CPU; more than a row needs leave it as it is.
    """
    looks = steps is None or lower.device.type == "cpu"
    rounding = 4 * torch.finfo(lower.dtype).eps
    point = lower
    previous = torch.full_like(lower, float("inf"))
    active = torch.ones_like(lower, dtype=torch.bool)
    for _ in itertools.count() if steps is None or looks else range(steps):
        if looks and not bool(active.any()):
            break
        value, slope = evaluate(point)
        lower = torch.where(value > 0, point, lower)
        upper = torch.where(value < 0, point, upper)
        newton = point - value / slope
        middle = lower + (upper - lower) / 2
        slow = value.abs() * 2 > previous
        trusted = (newton >= lower) & (newton <= upper) & ~slow
        step = torch.where(trusted, newton, middle)
        exhausted = (middle <= lower) | (middle >= upper)
        done = ~(value.abs() > rounding) | (step == point) | exhausted
        active = active & ~done
        point = torch.where(active, step, point)
        previous = value.abs()
    return point
