"""How two results are compared: tolerances follow from the data, never from taste."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.catalogue import ACCURACY

GPU_ACCURACY = 2e-7  # of probabilities in float32
CPU_ACCURACY = 2**-51  # two roundings in float64, in which the CPU kernels compute half precision


def accuracy(dtype: torch.dtype, size: float = 1.0) -> float:
    """How far an entry up to `size` may be from exact arithmetic: the promise, or one rounding."""
    return ACCURACY.get(dtype, torch.finfo(dtype).eps) * max(size, 1.0)


def assert_within(actual: Tensor, expected: Tensor, tolerance: float) -> None:
    torch.testing.assert_close(
        actual.double(), expected.double(), rtol=0, atol=tolerance, equal_nan=True
    )


def ulps_apart(actual: Tensor, expected: Tensor) -> Tensor:
    """The distances of two half-precision results, in units in the last place."""
    return (
        actual.contiguous().view(torch.int16).int() - expected.contiguous().view(torch.int16)
    ).abs()


def assert_rounded_once(actual: Tensor, exact: Tensor) -> None:
    """Half precision is the exact result rounded, or a neighbour of it.

    It may also err by as much as the arithmetic inside: an entry at the very edge of the support is
    then not exactly zero, and bfloat16 can represent what is left of it.
    """
    inside = GPU_ACCURACY if actual.is_cuda else CPU_ACCURACY
    near = (actual.double() - exact.double()).abs() <= inside
    assert bool(((ulps_apart(actual, exact.to(actual.dtype)) <= 1) | near).all())


def assert_as_accurate_as(oracle: Tensor, actual: Tensor, exact: Tensor) -> None:
    """The error is at most twice the oracle's in the same dtype, plus one rounding of the result."""
    exact = exact.double()
    error = (actual.double() - exact).abs().max()
    allowed = 2 * (oracle.double() - exact).abs().max()
    rounding = torch.finfo(actual.dtype).eps * exact.abs().max()
    assert error <= allowed + rounding, f"error {error:.3g}, allowed {allowed + rounding:.3g}"
