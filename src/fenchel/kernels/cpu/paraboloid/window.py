"""Integrals of a Gaussian through a parabolic window: `reference/paraboloid_window` in Numba."""

from __future__ import annotations

import math

from fenchel.kernels.cpu.arithmetic.float64 import exp64, scaled_erfc
from fenchel.kernels.cpu.launch.compilation import inlined
from fenchel.kernels.reference.paraboloid_window import DENSITY, TERMS


@inlined
def closed_form(b, y, x):
    """T, W₁, Z₁ and V of `reference/paraboloid_window`, times exp(−½x²)."""
    side = -1.0 if y < 0.0 else 1.0
    y = abs(y)
    upper, lower = b - y, b + y
    distance = abs(upper)
    base = -0.5 * x * x
    at_upper, at_lower = exp64(base - 0.5 * upper * upper), exp64(base - 0.5 * lower * lower)
    tails = 0.5 * at_upper * scaled_erfc(distance)
    beyond = 0.5 * at_lower * scaled_erfc(lower)
    whole = exp64(base)
    q0 = tails - beyond if upper < 0.0 else whole - (tails + beyond)
    at_upper, at_lower = DENSITY * at_upper, DENSITY * at_lower
    q1 = y * q0 + (at_lower - at_upper)
    ends = b * (at_upper + at_lower)
    mass = (b * b - 1.0) * q0 + ends - y * q1
    lever = -2.0 * q1
    twist = y * lever + mass - 2.0 * (q0 - ends)
    return mass, side * lever, side * (y * mass + lever), twist


C0, C1, C2, C3, C4, C5 = (
    4 / (math.factorial(2 * n) * (2 * n + 1) * (2 * n + 3)) for n in range(TERMS)
)


@inlined
def _term(y, below, hermite, order, factor, cube, fifth, mass, lever, moment, twist):
    mass += factor * hermite * cube
    above = y * hermite - order * below
    lever -= factor * above * cube
    ratio = factor / (order + 5.0)
    moment += ratio * above * fifth
    beyond = y * above - (order + 1.0) * hermite
    twist -= ratio * beyond * fifth
    return above, beyond, mass, lever, moment, twist


@inlined
def expansion(b, y, x):
    """The same for a narrow window, expanded at its middle."""
    square = b * b
    cube, fifth = b * square, b * square * square
    below, h, m, w, z, v = _term(y, 0.0, 1.0, 0.0, C0, cube, fifth, 0.0, 0.0, 0.0, 0.0)
    cube, fifth = fifth, fifth * square
    below, h, m, w, z, v = _term(y, below, h, 2.0, C1, cube, fifth, m, w, z, v)
    cube, fifth = fifth, fifth * square
    below, h, m, w, z, v = _term(y, below, h, 4.0, C2, cube, fifth, m, w, z, v)
    cube, fifth = fifth, fifth * square
    below, h, m, w, z, v = _term(y, below, h, 6.0, C3, cube, fifth, m, w, z, v)
    cube, fifth = fifth, fifth * square
    below, h, m, w, z, v = _term(y, below, h, 8.0, C4, cube, fifth, m, w, z, v)
    cube, fifth = fifth, fifth * square
    below, h, m, w, z, v = _term(y, below, h, 10.0, C5, cube, fifth, m, w, z, v)
    density = DENSITY * exp64(-0.5 * (y * y + x * x))
    return density * m, density * w, density * z, density * v
