"""What the host launches is a `kernel`; what kernels call is a `triton.jit` function."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from triton import knobs
from triton.runtime.jit import JITFunction


class Kernel(JITFunction):
    """A kernel that multiplies and adds in one instruction where it can.

    The times and the errors in the last bit are measured so; Triton asks for the choice from 3.9 on.
    """

    def run(self, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        if self.hash is None:
            _make_keys(self)
        compiled = super().run(*args, grid=grid, warmup=warmup, enable_fp_fusion=True, **options)
        # Triton would compare them with the constants of the modules at every launch, for half its time.
        self.used_global_vals = {}
        return compiled


def _make_keys(function: JITFunction) -> None:
    """Make the key under which a function is stored when compiled, after those of all that it calls.

    In Triton 3.6 a key depends on which of these have one already: after other kernels, the same kernel
    would be sought under another key, and compiled again.
    """
    for name in function.fn.__code__.co_names:
        called = function.fn.__globals__.get(name, getattr(tl, name, None))
        if isinstance(called, JITFunction) and called.hash is None:
            _make_keys(called)
    _ = function.cache_key


def kernel(function: Any) -> Any:
    """Compile the function when it is launched, or interpret it where Triton does."""
    return triton.jit(function) if knobs.runtime.interpret else Kernel(function)
