"""Numbers times one number that the device holds: in place, and rounded once."""

from __future__ import annotations

# A kernel is launched with options that its parameters do not name.
# pyright: reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false
import triton.language as tl
from torch import Tensor

from fenchel.kernels.triton.configuration import ceiling
from fenchel.kernels.triton.kernel import kernel

BLOCK, WARPS = 4096, 8


@kernel
def scale_block(numbers, factor, count, K: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * K + tl.arange(0, K)
    scaled = tl.load(numbers + place, mask=place < count).to(tl.float32) * tl.load(factor)
    tl.store(numbers + place, scaled, mask=place < count)


def scale(numbers: Tensor, factor: Tensor) -> Tensor:
    """`numbers` are contiguous, and so is what is returned: themselves."""
    count = numbers.numel()
    if count > 0:
        scale_block[(ceiling(count, BLOCK),)](numbers, factor, count, K=BLOCK, num_warps=WARPS)
    return numbers
