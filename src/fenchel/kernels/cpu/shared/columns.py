"""Columns of a row in whole vectors: copies and padding, the largest score, lists of columns.

Loops run over multiples of VECTOR columns, so that the compiler makes them of whole SIMD vectors. Lists
are made by comparing a vector at a time and walking over the set bits.
"""

from __future__ import annotations

import math

from llvmlite import ir
from numba import types

from fenchel.kernels.cpu.launch.compilation import inlined
from fenchel.kernels.cpu.launch.memory import (
    INT64,
    advance,
    llvm_intrinsic,
    load,
    maximum,
    real,
    store,
)

VECTOR = 32  # columns
BOUND_ROUNDING = 2.0**-21  # relative: a bound rounded to float32 is at most this much too high


@inlined
def fill(data, count, value):
    """Set `count` numbers to `value`."""
    number = real(data, value)
    for i in range(count):
        store(data, i, number)


@inlined
def copy(source, target, count):
    """Copy `count` numbers."""
    for i in range(count):
        store(target, i, load(source, i))


@inlined
def pad(data, start, value):
    """Fill up to a multiple of VECTOR; returns the number of vectors."""
    padded = (start + VECTOR - 1) // VECTOR
    for i in range(start, padded * VECTOR):
        store(data, i, value)
    return padded


@inlined
def load_tail(row, columns, tail, padding):
    """Copy the columns after the last multiple of VECTOR, padded; returns 1 if there are any, else 0."""
    start = columns // VECTOR * VECTOR
    for i in range(columns - start):
        store(tail, i, load(row, start + i))
    return pad(tail, columns - start, padding)


@inlined
def largest_of_vectors(data, vectors):
    """The largest score of `vectors` vectors of columns; NaN if there is one."""
    largest = real(data, -math.inf)
    for i in range(vectors * VECTOR):
        largest = maximum(largest, load(data, i))
    return largest


@inlined
def largest_of_row(row, columns):
    """The largest score of a row; NaN if there is one."""
    largest = largest_of_vectors(row, columns // VECTOR)
    for i in range(columns // VECTOR * VECTOR, columns):
        largest = maximum(largest, load(row, i))
    return largest


def _bits(builder, data, element, comparison, threshold):
    """One bit for each of VECTOR numbers, the first in the lowest bit."""
    kind = ir.FloatType() if element == types.float32 else ir.DoubleType()
    vector = ir.VectorType(kind, VECTOR)
    numbers = builder.load(builder.bitcast(data, vector.as_pointer()), align=element.bitwidth // 8)
    splat = ir.Constant(vector, ir.Undefined)
    splat = builder.insert_element(splat, threshold, ir.IntType(32)(0))
    order = ir.Constant(ir.VectorType(ir.IntType(32), VECTOR), [0] * VECTOR)
    bound = builder.shuffle_vector(splat, splat, order)
    holds = getattr(builder, f"fcmp_{comparison[0]}")(comparison[1], numbers, bound)
    return builder.zext(builder.bitcast(holds, ir.IntType(VECTOR)), INT64)


@llvm_intrinsic
def _bits_above(typingctx, data, threshold):
    """Bit i is set where data[i] > threshold."""

    def codegen(context, builder, signature, args):
        return _bits(builder, args[0], data.dtype, ("ordered", ">"), args[1])

    return types.int64(data, data.dtype), codegen


@llvm_intrinsic
def _bits_nonzero(typingctx, data):
    """Bit i is set where data[i] is not zero, which includes NaN."""

    def codegen(context, builder, signature, args):
        zero = context.get_constant(data.dtype, 0.0)
        return _bits(builder, args[0], data.dtype, ("unordered", "!="), zero)

    return types.int64(data), codegen


@llvm_intrinsic
def _lowest_bit(typingctx, bits):
    """The index of the lowest set bit."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.int64(types.int64), codegen


@inlined
def _append_bits(bits, start, places, filled):
    while bits != 0:
        store(places, filled, start + _lowest_bit(bits))
        filled += 1
        bits &= bits - 1
    return filled


@inlined
def list_above(row, columns, threshold, places):
    """Write the indices of the columns above `threshold` to `places`, in order; returns their number."""
    bound = real(row, threshold)
    whole = columns // VECTOR * VECTOR
    filled = 0
    for start in range(0, whole, VECTOR):
        filled = _append_bits(_bits_above(advance(row, start), bound), start, places, filled)
    for i in range(whole, columns):
        store(places, filled, i)
        filled += 1 if load(row, i) > bound else 0
    return filled


@inlined
def list_nonzero(row, columns, places):
    """Write the indices of the columns that are not zero to `places`, in order; returns their number."""
    whole = columns // VECTOR * VECTOR
    filled = 0
    for start in range(0, whole, VECTOR):
        filled = _append_bits(_bits_nonzero(advance(row, start)), start, places, filled)
    for i in range(whole, columns):
        store(places, filled, i)
        filled += 0 if load(row, i) == real(row, 0.0) else 1
    return filled
