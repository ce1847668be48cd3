"""Powers, exp and log in float32, in forms that loops can vectorize.

The polynomials minimize the largest relative error, which is below 3e-8 (2e-9 for powers of two) before
rounding.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from fenchel.kernels.cpu.launch.compilation import inlined
from fenchel.kernels.cpu.launch.memory import llvm_intrinsic

LOG2_E, LN_2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)
LOG2_E_REST = np.float32(1.4426950408889634 - float(LOG2_E))
SMALLEST_EXPONENT = np.float32(-125)  # 2^-126 is the smallest normal float32
ROUND_TO_INTEGER = np.float32(12582912)  # 1.5 · 2^23: adding it leaves an integer in the low bits
LARGEST_EXPONENT = np.float32(127)
ZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)

SQRT_HALF_BITS = 0x3F3504F3
MANTISSA_BITS = 23
EXPONENT_BIAS = 127
INT32 = ir.IntType(32)

# 2^r = 1 + r E(r) for |r| <= 1/2
E0, E1, E2 = map(np.float32, (0.693147203, 0.240226479, 0.0555033216))
E3, E4, E5 = map(np.float32, (0.0096184386, 0.00133990035, 0.000153532579))
# (e^z - 1)/z for |z| <= 1/2
R1, R2, R3 = map(np.float32, (0.500000043, 0.166666684, 0.0416653039))
R4, R5, R6 = map(np.float32, (0.00833305213, 0.0013997783, 0.000199968289))
# log2(1 + f) = f L(f) for sqrt(1/2) <= 1 + f <= sqrt(2)
L0, L1, L2, L3 = map(np.float32, (1.442695, -0.721347347, 0.480910643, -0.360703682))
L4, L5, L6 = map(np.float32, (0.287916247, -0.238944831, 0.215715623))
L7, L8 = map(np.float32, (-0.207269687, 0.125836899))


def _call_llvm(builder, name, args):
    kind = ir.FunctionType(ir.FloatType(), [ir.FloatType()] * len(args))
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)


@llvm_intrinsic
def nearest_integer(typingctx, number):
    """A float32 rounded to the nearest integer."""

    def codegen(context, builder, signature, args):
        return _call_llvm(builder, "llvm.rint.f32", args)

    return types.float32(types.float32), codegen


@llvm_intrinsic
def fused_multiply_add(typingctx, factor, other, summand):
    """factor * other + summand, rounded once to float32."""

    def codegen(context, builder, signature, args):
        return _call_llvm(builder, "llvm.fma.f32", args)

    return types.float32(types.float32, types.float32, types.float32), codegen


@llvm_intrinsic
def times_power_of_two(typingctx, number, rounded):
    """number * 2^n for a number near one, where n = rounded - ROUND_TO_INTEGER."""

    def codegen(context, builder, signature, args):
        shifted = builder.shl(builder.bitcast(args[1], INT32), INT32(MANTISSA_BITS))
        bits = builder.add(builder.bitcast(args[0], INT32), shifted)
        return builder.bitcast(bits, ir.FloatType())

    return types.float32(types.float32, types.float32), codegen


@llvm_intrinsic
def power_of_two(typingctx, exponent):
    """2^exponent for an integer between -126 and 127, given as a float32."""

    def codegen(context, builder, signature, args):
        whole = builder.fptosi(args[0], INT32)
        bits = builder.shl(builder.add(whole, INT32(EXPONENT_BIAS)), INT32(MANTISSA_BITS))
        return builder.bitcast(bits, ir.FloatType())

    return types.float32(types.float32), codegen


@llvm_intrinsic
def split_exponent(typingctx, number):
    """(e, m) with number = m 2^e and sqrt(1/2) <= m < sqrt(2), for a normal positive float32."""

    def codegen(context, builder, signature, args):
        bits = builder.bitcast(args[0], INT32)
        exponent = builder.ashr(builder.sub(bits, INT32(SQRT_HALF_BITS)), INT32(MANTISSA_BITS))
        mantissa = builder.sub(bits, builder.shl(exponent, INT32(MANTISSA_BITS)))
        parts = [
            builder.sitofp(exponent, ir.FloatType()),
            builder.bitcast(mantissa, ir.FloatType()),
        ]
        return context.make_tuple(builder, signature.return_type, parts)

    return types.UniTuple(types.float32, 2)(types.float32), codegen


@inlined
def _exp2_fraction(r):
    return ONE + r * (E0 + r * (E1 + r * (E2 + r * (E3 + r * (E4 + r * E5)))))


@inlined
def exp2(x):
    """2^x for x < 127; zero below the smallest normal number."""
    inside = x if x > SMALLEST_EXPONENT else SMALLEST_EXPONENT
    rounded = inside + ROUND_TO_INTEGER
    power = times_power_of_two(_exp2_fraction(inside - (rounded - ROUND_TO_INTEGER)), rounded)
    return power if x >= SMALLEST_EXPONENT else ZERO


@inlined
def exp32(x):
    """e^x for x < 88. x log2 e is kept in two parts, so the relative error does not grow with x."""
    whole = x * LOG2_E
    inside = whole if whole > SMALLEST_EXPONENT else SMALLEST_EXPONENT
    rounded = inside + ROUND_TO_INTEGER
    fraction = fused_multiply_add(x, LOG2_E, ROUND_TO_INTEGER - rounded) + x * LOG2_E_REST
    return (
        times_power_of_two(_exp2_fraction(fraction), rounded)
        if whole >= SMALLEST_EXPONENT
        else ZERO
    )


@inlined
def _log2_in_binade(exponent, f):
    high = L4 + f * (L5 + f * (L6 + f * (L7 + f * L8)))
    return exponent + f * (L0 + f * (L1 + f * (L2 + f * (L3 + f * high))))


@inlined
def log2(x):
    """log2 of a normal x > 0; undefined otherwise."""
    exponent, mantissa = split_exponent(x)
    return _log2_in_binade(exponent, mantissa - ONE)


@inlined
def log2_1p(x):
    """log2(1 + x), accurate near zero, for x > -1; undefined otherwise."""
    exponent, mantissa = split_exponent(ONE + x)
    return _log2_in_binade(exponent, x if exponent == ZERO else mantissa - ONE)


@inlined
def power_near_one(x, less_one, exponent):
    """x^exponent for a float32 x > 0; near one, `less_one` is a more accurate value of x - 1."""
    binary, mantissa = split_exponent(x)
    fraction = less_one if binary == ZERO else mantissa - ONE
    return exp2(_log2_in_binade(binary, fraction) * exponent)


@inlined
def power32(x, exponent):
    binary, mantissa = split_exponent(x)
    fraction = _log2_in_binade(ZERO, mantissa - ONE) * exponent
    whole = nearest_integer(binary * exponent + fraction)
    inside = whole if whole < LARGEST_EXPONENT else LARGEST_EXPONENT
    inside = inside if inside > SMALLEST_EXPONENT else SMALLEST_EXPONENT
    return _exp2_fraction(fused_multiply_add(binary, exponent, -whole) + fraction) * power_of_two(
        inside
    )


@inlined
def expm1_ratio32(x):
    series = ONE + x * (R1 + x * (R2 + x * (R3 + x * (R4 + x * (R5 + x * R6)))))
    return series if abs(x) < HALF else (exp2(x * LOG2_E) - ONE) / x
