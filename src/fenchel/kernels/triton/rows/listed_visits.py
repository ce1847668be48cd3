"""Visits to the listed groups of a long row: sums over what is loaded anew every time."""

from __future__ import annotations

# ruff: noqa: RET505, SIM109 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import fast_reciprocal
from fenchel.kernels.triton.arithmetic.entries import FARTHEST, entry, exact_powers, rough_powers
from fenchel.kernels.triton.arithmetic.fine_powers import summed_powers
from fenchel.kernels.triton.arithmetic.two_floats import two_sum
from fenchel.kernels.triton.launch.alpha import COARSE, GENERAL, POWER, SHARP, SPARSEMAX
from fenchel.kernels.triton.rows.groups import listed_tile, listed_zeros
from fenchel.kernels.triton.search.normalizer import slab_sums, step_of_slabs
from fenchel.kernels.triton.search.steep import contribution, fold, nothing, over_row
from fenchel.kernels.triton.search.steps import (
    brings_in,
    halley_step,
    near_step,
    newton_step,
    sharp_strays,
    sharp_touch,
    strays,
)
from fenchel.kernels.triton.tiles.across_threads import row_sums, row_triples
from fenchel.kernels.triton.tiles.axes import SLAB_AXIS
from fenchel.kernels.triton.tiles.within_threads import slab_sum, sum_of_fours


@triton.jit
def listed_visit(data, point, e, KIND: tl.constexpr):
    """F over the listed groups, the step from there and, where powers are needed, whether that may miss
    the root. What comes next is loaded ahead.

    A large entry and many small ones are added in two numbers, unless the slope or half precision hides
    what is rounded off.
    """
    BLOCK: tl.constexpr = data[8].shape[SLAB_AXIS]
    mass = sum_of_fours(listed_zeros(data))
    low, slope, bend = mass, mass, mass
    x = listed_tile(data, 0)[0]
    for start in range(BLOCK, data[3] + BLOCK, BLOCK):
        ahead = listed_tile(data, start)[0]
        z = x - data[7]
        if KIND == GENERAL or KIND == POWER:
            p, s, q = summed_powers(tl.maximum(z, FARTHEST), point, e, KIND)
        elif KIND >= GENERAL:
            t, p, s, q = exact_powers(tl.maximum(z, FARTHEST), point, e, KIND)
            if KIND == SHARP:
                q = s * fast_reciprocal(tl.maximum(t, e * sharp_touch(e)))
        else:
            p, s, _t = entry(z, point, 0.0, e, KIND)
        if KIND == SPARSEMAX or KIND == COARSE:
            mass += sum_of_fours(p)
        else:
            mass, rounded_off = two_sum(mass, sum_of_fours(p))
            low += rounded_off
        slope += sum_of_fours(s)
        if KIND >= GENERAL:
            bend += sum_of_fours(q)
        x = ahead
    if KIND != SPARSEMAX and KIND != COARSE:
        mass = mass.to(tl.float64) + low.to(tl.float64)
    if KIND >= GENERAL:
        return _last_step(mass, slope, bend, point, e, data[3] * data[9].shape[2], KIND)
    else:
        mass, slope = row_sums(mass, slope)
        mass = mass.to(tl.float32)
        return mass, newton_step(mass, slope, e, KIND)


@triton.jit
def _last_step(mass, slope, bend, point, e, count, KIND: tl.constexpr):
    """F, the step, and whether that may miss the root; `count` scores are listed."""
    mass, slope, bend = row_triples(slab_sum(mass), slab_sum(slope), slab_sum(bend))
    mass = mass.to(tl.float32)
    if KIND == SHARP:
        step = tl.where(mass > 0.0, near_step(mass, e, fast_reciprocal(slope)), 0.0)
        misses = sharp_strays(step, slope, bend, e)
    else:
        step = halley_step(mass, slope, bend, point, e, KIND)
        misses = strays(step, slope, bend, e)
    return mass, step, misses | brings_in(step, slope, e, count)


@triton.jit
def rough_listed_visit(data, point, e, KIND: tl.constexpr):
    BLOCK: tl.constexpr = data[8].shape[SLAB_AXIS]
    mass = sum_of_fours(listed_zeros(data))
    slope, bend = mass, mass
    x = listed_tile(data, 0)[0]
    for start in range(BLOCK, data[3] + BLOCK, BLOCK):
        ahead = listed_tile(data, start)[0]
        p, s, q = rough_powers(tl.maximum(x - data[7], FARTHEST), point, e, KIND)
        mass += sum_of_fours(p)
        slope += sum_of_fours(s)
        bend += sum_of_fours(q)
        x = ahead
    mass, slope, bend = slab_sums(mass, slope, bend, KIND)
    return step_of_slabs(mass, slope, bend, point, e, KIND)


@triton.jit
def steep_listed_visit(data, first, second, e, WHAT: tl.constexpr):
    a = listed_zeros(data) + nothing(WHAT)
    b = a
    for start in range(0, data[3], data[8].shape[SLAB_AXIS]):
        c, d = contribution(listed_tile(data, start)[0], first, second, e, WHAT)
        a, b = fold(a, b, c, d, WHAT)
    return over_row(a, b, WHAT)
