"""What training does to the matrix products of a device."""

from __future__ import annotations

import torch

from fenchel.training.device import fast_matmul


def test_fast_products_on_the_cpu_are_in_single_precision():
    torch.manual_seed(0)
    a, b = torch.randn(64, 256), torch.randn(256, 48)
    exact = a.double() @ b.double()
    plain = ((a @ b).double() - exact).abs().max()
    with fast_matmul():
        fast = ((a @ b).double() - exact).abs().max()
    assert fast <= 4 * plain
    assert torch.get_float32_matmul_precision() == "highest"
