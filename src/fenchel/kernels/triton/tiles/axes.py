"""The axes of a tile.

A tile has J * K columns of R rows, in three axes: J runs inside a thread, K across threads, and what
threads K leaves free go to R. Which of J and R comes first decides that, and Triton 3.6 and 3.9
decide differently. Row values keep the axes, with J = K = 1; a tile of one row has plain scalars,
which every thread holds.
"""

from __future__ import annotations

# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

_VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])
ROW_AXIS: tl.constexpr = tl.constexpr(0 if _VERSION < (3, 7) else 1)
SLAB_AXIS: tl.constexpr = tl.constexpr(1 if _VERSION < (3, 7) else 0)


@triton.jit
def along_slabs(vector):
    """A vector as a tile whose only long axis is J."""
    if SLAB_AXIS == 0:
        return vector[:, None, None]
    else:
        return vector[None, :, None]


@triton.jit
def along_rows(vector):
    """A vector with one value a row as a row value."""
    if ROW_AXIS == 0:
        return vector[:, None, None]
    else:
        return vector[None, :, None]
