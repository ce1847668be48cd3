"""Chunks of rows that are too full for lists are multiplied: on the GPU, or interpreted without one."""

from __future__ import annotations

import pytest
import torch

from tests.kernels.interpreted import DEVICE, MARKS, defining_kernels

with defining_kernels():
    from fenchel.kernels.triton.linear_entmax_loss import weight_gradient

pytestmark = MARKS

ROWS, CLASSES, WIDTH = 20, 40, 24


@pytest.mark.parametrize("described", [True, False])
@pytest.mark.parametrize("few", [0, 3, ROWS])
def test_full_rows_are_added_to_the_sum(
    few: int, described: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`few` rows have lists: then the others are multiplied, or all of them, or none."""
    tile = weight_gradient.Product(16, 16, 16, {"num_warps": 1})
    monkeypatch.setattr(weight_gradient, "TILE", tile)
    monkeypatch.setattr(weight_gradient, "DESCRIPTOR_TILE", tile)
    monkeypatch.setattr(weight_gradient, "DESCRIPTOR_PROGRAMS", 4)
    if not described:
        monkeypatch.setattr(weight_gradient, "fits_descriptor", lambda _: False)
    hidden = torch.randn(ROWS, WIDTH).to(DEVICE, torch.float16)
    slopes = torch.randn(ROWS, CLASSES).to(DEVICE, torch.float16)
    before = torch.randn(CLASSES, WIDTH).to(DEVICE, torch.float16)
    target = torch.zeros(ROWS, dtype=torch.int64, device=DEVICE)
    out = torch.empty_like(before)
    total = weight_gradient.SparseWeightGradient(out, hidden, target, ROWS)
    out.copy_(before)
    total.counts.fill_(weight_gradient.MAX_LISTED_ENTRIES + 1)
    total.counts[:few] = 0
    total.classes.fill_(CLASSES)
    total.add(slopes, 0, None, before)
    expected = before.double() + slopes[few:].double().t() @ hidden[few:].double()
    torch.testing.assert_close(out.double(), expected, rtol=2**-10, atol=2**-10)


def test_descriptors_want_rows_at_multiples_of_16_bytes() -> None:
    matrix = torch.zeros(3, 16, dtype=torch.float16, device=DEVICE)
    assert weight_gradient.fits_descriptor(matrix) == weight_gradient.is_hopper_or_later(
        matrix.device
    )
    assert not weight_gradient.fits_descriptor(matrix[:, 1:])
    assert not weight_gradient.fits_descriptor(
        torch.zeros(3, 15, dtype=torch.float16, device=DEVICE)
    )
