"""Weights p^(2 - alpha) for alpha > 2: the digits of a float32 in the range of a float64."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tests.kernels.interpreted import DEVICE, MARKS, defining_kernels

with defining_kernels():
    import triton
    import triton.language as tl

    from fenchel.kernels.triton.entmax.backward import power_weight_float64

    @triton.jit
    def weights(p, out, eps, SIZE: tl.constexpr):
        place = tl.arange(0, SIZE)
        e = eps + 0.0
        tl.store(out + place, power_weight_float64(tl.load(p + place), e))


pytestmark = MARKS

SIZE = 1024
SATURATES = 2.0**1000


def _weights(p: Tensor, alpha: float) -> Tensor:
    out = torch.empty(SIZE, dtype=torch.float64, device=DEVICE)
    weights[(1,)](p.to(DEVICE), out, alpha - 1, SIZE)  # pyright: ignore[reportArgumentType]
    return out.cpu()


@pytest.mark.parametrize("alpha", [2.1, 2.5, 3.0, 4.0, 8.0])
def test_weights_hold_seven_digits_down_to_the_smallest_number(alpha: float) -> None:
    p = torch.cat([torch.rand(SIZE // 2), torch.exp2(-149 * torch.rand(SIZE // 2))]).clamp_min(
        2e-45
    )
    e = torch.tensor(alpha - 1).double()  # as a float32 holds it
    expected = p.double() ** (1 - e)
    error = (_weights(p, alpha) / expected - 1).abs()
    assert error[expected < SATURATES / 4].max() <= 4e-7
    assert (_weights(p, alpha)[expected > SATURATES * 4] >= SATURATES / 4).all()


def test_the_weight_of_zero_is_zero_and_that_of_nan_is_nan() -> None:
    p = torch.zeros(SIZE)
    p[1], p[2] = math.nan, 1.0
    weight = _weights(p, 3.0)
    assert weight[1].isnan()
    assert weight[2] == 1.0
    assert weight[0] == 0.0
    assert weight[3:].eq(0).all()
