"""Numbers times one number that the device holds: in place, and rounded once."""

from __future__ import annotations

# A kernel is launched with options that its parameters do not name.
# pyright: reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false
import triton.language as tl
from torch import Tensor

from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.launch.whole_numbers import ceiling

BLOCK, WARPS = 4096, 8
# Few programs: a loss is mostly differentiated as it is, by the factor 1, and there is nothing to do.
PROGRAMS = 1056


@kernel
def scale_blocks(numbers, factor, count, K: tl.constexpr):
    by = tl.load(factor)
    if by != 1.0:
        for block in range(tl.program_id(0), tl.cdiv(count, K), tl.num_programs(0)):
            place = tl.cast(block, tl.int64) * K + tl.arange(0, K)
            scaled = tl.load(numbers + place, mask=place < count).to(tl.float32) * by
            tl.store(numbers + place, scaled, mask=place < count)


def scale(numbers: Tensor, factor: Tensor) -> Tensor:
    """`numbers` are contiguous, and so is what is returned: themselves."""
    count = numbers.numel()
    if count > 0:
        programs = min(ceiling(count, BLOCK), PROGRAMS)
        scale_blocks[(programs,)](numbers, factor, count, K=BLOCK, num_warps=WARPS)
    return numbers
