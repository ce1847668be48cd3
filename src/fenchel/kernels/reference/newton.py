"""The root finder of all maps with a threshold: Newton's method in a bracket, for many rows at once."""

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

    `evaluate(t)` returns the value and the slope. Newton's method starts at `lower`; from there it never
    overshoots if the function is convex. A step that leaves the bracket or does not halve the value is
    replaced by bisection. A row ends when its value is at rounding level, when a step does not change the
    point, or when the bracket has no number inside; a row that evaluates to NaN ends at once.

    Checking whether all rows have ended synchronizes with the device. If `steps` is given and the rows
    are not on the CPU, that many steps are taken without a check; rows that have ended do not change.
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
