"""The m-th largest number of a list, found by counting instead of sorting.

Floats are ordered as integers made of their bits are. The bracket of those around the number sought is
halved, and drawn in to numbers of the list, until one is left: at most 32 or 64 vectorised passes,
usually a dozen.
"""

from __future__ import annotations

import math

from llvmlite import ir
from numba import types

from fenchel.kernels.cpu.launch.compilation import reducing, sequential
from fenchel.kernels.cpu.launch.memory import INT64, advance, device, load, maximum, real

COUNTED_TOGETHER = 4096  # in the type of the list, which may not hold larger counts exactly


@device
def _order(typingctx, number):
    """An integer that is larger for a larger number, and 0 for both zeros."""

    def codegen(context, builder, signature, args):
        word = ir.IntType(number.bitwidth)
        bits = builder.bitcast(args[0], word)
        negative = builder.icmp_signed("<", bits, word(0))
        smallest = word(1 << (number.bitwidth - 1))
        order = builder.select(negative, builder.sub(smallest, bits), bits)
        return order if number.bitwidth == 64 else builder.sext(order, INT64)

    return types.int64(number), codegen


@device
def _number(typingctx, model, order):
    """The number of the type of `model` that has this order."""

    def codegen(context, builder, signature, args):
        word = ir.IntType(model.bitwidth)
        bits = args[1] if model.bitwidth == 64 else builder.trunc(args[1], word)
        negative = builder.icmp_signed("<", bits, word(0))
        smallest = word(1 << (model.bitwidth - 1))
        bits = builder.select(negative, builder.sub(smallest, bits), bits)
        return builder.bitcast(bits, context.get_value_type(model))

    return model(model, types.int64), codegen


@reducing
def _split(numbers, count, level):
    """How many are at least `level`, the smallest of these negated, and the largest of the others."""
    nothing, one, zero = real(numbers, -math.inf), real(numbers, 1.0), real(numbers, 0.0)
    size, above, below = zero, nothing, nothing
    for i in range(count):
        x = load(numbers, i)
        size += one if x >= level else zero
        above = maximum(above, -x if x >= level else nothing)
        below = maximum(below, nothing if x >= level else x)
    return size, above, below


@sequential
def ranked(numbers, count, rank):
    """The number of this rank, 1 that of the largest. None may be NaN."""
    low, high = real(numbers, -math.inf), real(numbers, math.inf)
    while low < high:
        a, b = _order(low), _order(high)
        level = _number(low, (a | b) - ((a ^ b) >> 1))  # their mean, rounded up
        size, smallest, largest = 0.0, real(numbers, -math.inf), real(numbers, -math.inf)
        for start in range(0, count, COUNTED_TOGETHER):
            together = min(COUNTED_TOGETHER, count - start)
            found, above, below = _split(advance(numbers, start), together, level)
            size += found
            smallest, largest = maximum(smallest, above), maximum(largest, below)
        if size >= rank:
            low = -smallest
        else:
            high = largest
    return low
