"""Which columns of a row matter: found by comparing a vector at a time and walking over the set bits."""

from __future__ import annotations

from llvmlite import ir
from numba import types

from fenchel.kernels.cpu.columns.whole_vectors import LANES
from fenchel.kernels.cpu.launch.compilation import scalar, sequential
from fenchel.kernels.cpu.launch.memory import INT64, advance, device, load, real, store

ROUNDING = 2.0**-21  # a float32 bound is at most this share of itself above the bound meant


def _bits(builder, data, element, comparison, threshold):
    """One bit for each of LANES numbers, the first lowest."""
    kind = ir.FloatType() if element == types.float32 else ir.DoubleType()
    vector = ir.VectorType(kind, LANES)
    numbers = builder.load(builder.bitcast(data, vector.as_pointer()), align=element.bitwidth // 8)
    splat = ir.Constant(vector, ir.Undefined)
    splat = builder.insert_element(splat, threshold, ir.IntType(32)(0))
    order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    bound = builder.shuffle_vector(splat, splat, order)
    holds = getattr(builder, f"fcmp_{comparison[0]}")(comparison[1], numbers, bound)
    return builder.zext(builder.bitcast(holds, ir.IntType(LANES)), INT64)


@device
def _bits_above(typingctx, data, threshold):
    """Bit i is set where data[i] > threshold."""

    def codegen(context, builder, signature, args):
        return _bits(builder, args[0], data.dtype, ("ordered", ">"), args[1])

    return types.int64(data, data.dtype), codegen


@device
def _bits_nonzero(typingctx, data):
    """Bit i is set where data[i] is not zero; NaN is not."""

    def codegen(context, builder, signature, args):
        zero = context.get_constant(data.dtype, 0.0)
        return _bits(builder, args[0], data.dtype, ("unordered", "!="), zero)

    return types.int64(data), codegen


@device
def _lowest_bit(typingctx, bits):
    """The number of the lowest set bit."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.int64(types.int64), codegen


@scalar
def _append_bits(bits, start, places, filled):
    while bits != 0:
        store(places, filled, start + _lowest_bit(bits))
        filled += 1
        bits &= bits - 1
    return filled


@sequential
def list_above(row, columns, threshold, places):
    """Write the columns above `threshold` to `places`, in order; returns how many there are."""
    bound = real(row, threshold)
    whole = columns // LANES * LANES
    filled = 0
    for start in range(0, whole, LANES):
        filled = _append_bits(_bits_above(advance(row, start), bound), start, places, filled)
    for i in range(whole, columns):
        store(places, filled, i)
        filled += 1 if load(row, i) > bound else 0
    return filled


@sequential
def list_nonzero(row, columns, places):
    """Write the columns that are not zero to `places`, in order; returns how many there are."""
    whole = columns // LANES * LANES
    filled = 0
    for start in range(0, whole, LANES):
        filled = _append_bits(_bits_nonzero(advance(row, start)), start, places, filled)
    for i in range(whole, columns):
        store(places, filled, i)
        filled += 0 if load(row, i) == real(row, 0.0) else 1
    return filled
