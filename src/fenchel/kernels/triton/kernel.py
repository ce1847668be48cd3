"""What the host launches is a `kernel`; what kernels call is a `triton.jit` function."""

from __future__ import annotations

from typing import Any

import triton
from triton import knobs
from triton.runtime.jit import JITFunction


class Kernel(JITFunction):
    """A kernel that multiplies and adds in one instruction where it can.

    The times and the errors in the last bit are measured so; Triton asks for the choice from 3.9 on.
    """

    def run(self, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        return super().run(*args, grid=grid, warmup=warmup, enable_fp_fusion=True, **options)


def kernel(function: Any) -> Any:
    """Compile the function when it is launched, or interpret it where Triton does."""
    return triton.jit(function) if knobs.runtime.interpret else Kernel(function)
