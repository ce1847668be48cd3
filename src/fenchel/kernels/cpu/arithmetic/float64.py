"""exp, log, powers and the scaled erfc in float64, in forms that loops can vectorize."""

from __future__ import annotations

import math

from llvmlite import ir
from numba import types

from fenchel.kernels.cpu.launch.compilation import inlined
from fenchel.kernels.cpu.launch.memory import llvm_intrinsic

LOG2_E = 1.4426950408889634
LN_2_HIGH, LN_2_LOW = 0.6931471803691238, 1.9082149292705877e-10
ROUND_TO_INTEGER = 6755399441055744.0  # 1.5 · 2^52: adding it leaves an integer in the low bits
SMALLEST_EXPONENT = -708.0
LN_2 = 0.6931471805599453
ROUND_TO_INTEGER_BITS, SQRT_HALF_BITS = 0x4338000000000000, 0x3FE6A09E667F3BCD
MANTISSA_BITS = 52

# e^r for |r| ≤ ½ log 2: the reciprocals of the factorials
(F2, F3, F4, F5, F6, F7, F8, F9, F10, F11, F12) = (
    0.5, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040, 1 / 40320, 1 / 362880,
    1 / 3628800, 1 / 39916800, 1 / 479001600,
)  # fmt: skip

# (1 + z) e^{z²/2} erfc(z/√2) as a polynomial in (z − 5)/(z + 5): the Chebyshev interpolant, whose
# relative error is below 1e-16.
MIDDLE = 5.0
(M0, M1, M2, M3, M4, M5, M6, M7) = (
    0.9230316597000755459, -0.1831045636680178737, 0.0620607368519273836, 0.02000470477044149311,
    -0.05280208593261525929, 0.04907392648780369735, -0.03034083080505029182,
    0.01304400133023841369,
)  # fmt: skip
(M8, M9, M10, M11, M12, M13, M14, M15) = (
    -0.00335214468894843116, 0.00001558323019149491893, 0.000364668289499767313,
    -0.0001072153057408449036, -0.00001979219342576881072, 0.00001812002343266285454,
    -1.406967384511775442e-7, -2.615536548798669898e-6,
)  # fmt: skip
(M16, M17, M18, M19, M20, M21, M22, M23) = (
    2.557609890792522157e-7, 3.932688526272903761e-7, -5.257575193755797205e-8,
    -6.240294422295333785e-8, 7.256136479838972982e-9, 9.00145078495972748e-9,
    -5.646654443028240959e-10, -7.977267718138408552e-10,
)  # fmt: skip


@llvm_intrinsic
def _times_power_of_two(typingctx, number, rounded):
    """number · 2^n, where n is in the low bits of `rounded`."""

    def codegen(context, builder, signature, args):
        kind = ir.IntType(64)
        bits = builder.shl(builder.bitcast(args[1], kind), kind(MANTISSA_BITS))
        return builder.bitcast(builder.add(builder.bitcast(args[0], kind), bits), ir.DoubleType())

    return types.float64(types.float64, types.float64), codegen


@llvm_intrinsic
def _split_exponent(typingctx, number):
    """(n, m) with number = 2^n m and √½ ≤ m < √2, for a normal positive number."""

    def codegen(context, builder, signature, args):
        kind, real = ir.IntType(64), ir.DoubleType()
        bits = builder.bitcast(args[0], kind)
        exponent = builder.ashr(builder.sub(bits, kind(SQRT_HALF_BITS)), kind(MANTISSA_BITS))
        mantissa = builder.sub(bits, builder.shl(exponent, kind(MANTISSA_BITS)))
        # Adding an integer to the bits of ROUND_TO_INTEGER adds it to the number.
        shifted = builder.bitcast(builder.add(exponent, kind(ROUND_TO_INTEGER_BITS)), real)
        parts = [builder.fsub(shifted, real(ROUND_TO_INTEGER)), builder.bitcast(mantissa, real)]
        return context.make_tuple(builder, signature.return_type, parts)

    return types.UniTuple(types.float64, 2)(types.float64), codegen


@inlined
def power64(x, exponent):
    """x^exponent for x > 0; the exponents that parameters of 2 and 3/2 lead to need no function call."""
    if exponent == 1.0:
        return x
    if exponent == 2.0:
        return x * x
    return 1.0 if exponent == 0.0 else math.pow(x, exponent)


@inlined
def rough_log64(x):
    """log x for a normal x > 0, to 1e-9."""
    n, m = _split_exponent(x)
    r = (m - 1.0) / (m + 1.0)
    s = r * r
    series = 1.0 + s * (1 / 3 + s * (1 / 5 + s * (1 / 7 + s * (1 / 9 + s * (1 / 11)))))
    return n * LN_2 + 2.0 * r * series


@inlined
def log64(x):
    """log x for a normal x > 0, to the last bits."""
    n, m = _split_exponent(x)
    r = (m - 1.0) / (m + 1.0)
    s = r * r
    q = s * s
    low = (1 / 3 + s * (1 / 5)) + q * ((1 / 7 + s * (1 / 9)) + q * (1 / 11 + s * (1 / 13)))
    high = (1 / 15 + s * (1 / 17)) + q * (1 / 19 + s * (1 / 21))
    series = low + (q * q * q) * high
    return n * LN_2_HIGH + (2.0 * r + (2.0 * r * (s * series) + n * LN_2_LOW))


@inlined
def exp64(x):
    """e^x for x ≤ 700, zero below −708."""
    inside = x if x > SMALLEST_EXPONENT else SMALLEST_EXPONENT
    rounded = inside * LOG2_E + ROUND_TO_INTEGER
    n = rounded - ROUND_TO_INTEGER
    r = (inside - n * LN_2_HIGH) - n * LN_2_LOW
    s = r * r
    q = s * s
    low = (F2 + r * F3) + s * (F4 + r * F5) + q * ((F6 + r * F7) + s * (F8 + r * F9))
    low = low + (q * q) * ((F10 + r * F11) + s * F12)
    power = _times_power_of_two(1.0 + (r + s * low), rounded)
    return power if x > SMALLEST_EXPONENT else 0.0


@inlined
def scaled_erfc(z):
    """e^{z²/2} erfc(z/√2) for z ≥ 0."""
    inverse = 1.0 / ((z + MIDDLE) * (1.0 + z))
    t = (z - MIDDLE) * (1.0 + z) * inverse
    t2 = t * t
    t4 = t2 * t2
    t8 = t4 * t4
    a = (M0 + t * M1) + t2 * (M2 + t * M3) + t4 * ((M4 + t * M5) + t2 * (M6 + t * M7))
    b = (M8 + t * M9) + t2 * (M10 + t * M11) + t4 * ((M12 + t * M13) + t2 * (M14 + t * M15))
    c = (M16 + t * M17) + t2 * (M18 + t * M19) + t4 * ((M20 + t * M21) + t2 * (M22 + t * M23))
    return (a + t8 * (b + t8 * c)) * ((z + MIDDLE) * inverse)
