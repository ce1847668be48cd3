"""Two numbers into one, as reductions do it: NaN is larger and smaller than any other number."""

from __future__ import annotations

# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl


@triton.jit
def larger(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def smaller(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def plus(a, b):
    """a + b, rounded as it is in every other thread: each would fuse a product of its own."""
    if a.dtype == tl.float32:
        return tl.inline_asm_elementwise(
            "add.rn.f32 $0, $1, $2;", "=f,f,f", [a, b], dtype=tl.float32, is_pure=True, pack=1
        )
    elif a.dtype == tl.float64:
        return tl.inline_asm_elementwise(
            "add.rn.f64 $0, $1, $2;", "=d,d,d", [a, b], dtype=tl.float64, is_pure=True, pack=1
        )
    else:
        return a + b
