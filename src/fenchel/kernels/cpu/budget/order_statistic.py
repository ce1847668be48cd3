"""The m-th largest number of a list, by counting instead of sorting.

Floats are ordered like integers made of their bits. The bracket of these integers is halved and shrunk to
numbers of the list until one is left: at most 32 or 64 vectorized passes, usually a dozen.
"""

from __future__ import annotations

import math

from llvmlite import ir
from numba import types

from fenchel.kernels.cpu.launch.compilation import inlined, reducing
from fenchel.kernels.cpu.launch.memory import INT64, advance, llvm_intrinsic, load, maximum, real

COUNTED_TOGETHER = 4096  # the type of the list may not represent larger counts exactly


@llvm_intrinsic
def _to_ordered_integer(typingctx, number):
    """An integer that increases with the number; 0 for both zeros."""

    def codegen(context, builder, signature, args):
        word = ir.IntType(number.bitwidth)
        bits = builder.bitcast(args[0], word)
        negative = builder.icmp_signed("<", bits, word(0))
        smallest = word(1 << (number.bitwidth - 1))
        order = builder.select(negative, builder.sub(smallest, bits), bits)
        return order if number.bitwidth == 64 else builder.sext(order, INT64)

    return types.int64(number), codegen


@llvm_intrinsic
def _from_ordered_integer(typingctx, model, order):
    """The inverse of `_to_ordered_integer`, in the type of `model`."""

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
    """The count of numbers >= `level`, their minimum negated, and the maximum of the others."""
    nothing, one, zero = real(numbers, -math.inf), real(numbers, 1.0), real(numbers, 0.0)
    size, above, below = zero, nothing, nothing
    for i in range(count):
        x = load(numbers, i)
        size += one if x >= level else zero
        above = maximum(above, -x if x >= level else nothing)
        below = maximum(below, nothing if x >= level else x)
    return size, above, below


@inlined
def order_statistic(numbers, count, rank):
    """The number of this rank; the largest has rank 1. No number may be NaN."""
    low, high = real(numbers, -math.inf), real(numbers, math.inf)
    while low < high:
        a, b = _to_ordered_integer(low), _to_ordered_integer(high)
        level = _from_ordered_integer(low, (a | b) - ((a ^ b) >> 1))  # their mean, rounded up
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
