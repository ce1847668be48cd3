"""The terms of the entmax loss of a row, none of which is negative.

With t = 1 + e (x - A) = p^e, the loss is a sum of divergences of q from p and, where p = 0, slack:
    D = (t/alpha) [q expm1(e (log q - log p))/e + p - q],   slack = q (-t)_+/e.
An entry with q = 0 has D = p^alpha/alpha. A class index y has q_y = 1, and with l = log p_y and
delta = sum_{i != y} p_i = 1 - p_y its own D is (1/alpha) [-expm1(e l)/e - delta p_y^e].
A smoothed class adds s (x_y - mean x) + Omega(q) to that.
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.arithmetic.elementary import exp, expm1_ratio, log, log1p
from fenchel.kernels.cpu.arithmetic.entries import (
    coefficients,
    entmax15_entry,
    entmax_entry,
    exponent_of,
    sparsemax_entry,
)
from fenchel.kernels.cpu.columns.whole_vectors import LANES
from fenchel.kernels.cpu.launch.compilation import reducing, scalar, sequential
from fenchel.kernels.cpu.launch.memory import advance, load, real
from fenchel.kernels.cpu.search.steep import steep_entry

SUM_RUN = 1024  # columns summed in the row's own precision


@reducing
def _sum_powers(entry, data, groups, row):
    mass, power = real(data, 0.0), real(data, 0.0)
    for i in range(groups * LANES):
        p, _, t = entry(load(data, i), row)
        mass += p
        power += p * t
    return mass, power


@scalar
def _sum_steep_powers(data, groups, largest, threshold, rest, e):
    mass, power = 0.0, 0.0
    for i in range(groups * LANES):
        p, _ = steep_entry(load(data, i), largest, threshold, rest, e, 1.0 / e)
        mass += p
        power += p**e * p
    return mass, power


@sequential
def sum_powers(data, groups, largest, offset, rest, alpha):
    """(sum of p, sum of p^alpha) of `groups` multiples of LANES columns."""
    if alpha > 2.0:
        e = alpha - 1.0
        return _sum_steep_powers(data, groups, float64(largest), offset, rest, e)
    row = coefficients(largest, offset, rest, alpha)
    if alpha == 2.0:
        mass, power = _sum_powers(sparsemax_entry, data, groups, row)
    elif alpha == 1.5:
        mass, power = _sum_powers(entmax15_entry, data, groups, row)
    else:
        mass, power = _sum_powers(entmax_entry, data, groups, row)
    return float64(mass), float64(power)


@scalar
def target_term(u, delta, alpha):
    """D of the class itself, plus its slack; u = x_y - A."""
    e = exponent_of(alpha)
    if u == -math.inf:
        return math.inf
    if e * u <= -1.0:
        return (1.0 / alpha - (1.0 + e * u)) / e
    length = math.log1p(-delta) if delta < 0.5 else math.log1p(e * u) / e
    own = -length * expm1_ratio(e * length) - delta * math.exp(e * length)
    return max(0.0, own) / alpha


@scalar
def _soft_term(x, q, row):
    """alpha D, plus alpha times the slack, of an entry with probability q."""
    pivot, high, low, _, _, e, inverse = row
    zero, one = real(x, 0.0), real(x, 1.0)
    v = (((x - pivot) - high) - low) * e
    inside = v > -one
    log_p = log1p(v) * inverse
    t = one + v if inside else zero
    p = exp(log_p) if inside else zero
    log_q = log(q)
    z = e * (log_q - log_p)
    near = t * q * (log_q - log_p) * expm1_ratio(z)
    far = q * (exp(e * log_q) - t) * inverse
    change = near if inside and abs(z) <= real(x, 0.5) else far
    slack = zero if inside else -q * (one + e) * (one + v) * inverse
    term = change + t * (p - q) + slack
    return (term if term > zero else zero) if q > zero else p * t


@reducing
def sum_soft_terms(data, target, groups, row):
    """alpha times the loss of `groups` multiples of LANES columns; infinite if q > 0 at -inf."""
    total = real(data, 0.0)
    for i in range(groups * LANES):
        x, q = load(data, i), load(target, i)
        term = _soft_term(x, q, row)
        absent = x == real(x, -math.inf)
        limit = real(x, math.inf) if q > real(x, 0.0) else real(x, 0.0)
        total += limit if absent else term
    return total


@reducing
def _sum_less(data, count, pivot, share):
    """share * sum (pivot - x), as a part of a mean: scores at finfo.min have one, but no sum."""
    total = real(data, 0.0)
    for i in range(count):
        total += (pivot - load(data, i)) * share
    return total


@scalar
def _omega_term(q, alpha):
    """One class's part of Omega(q) = sum q l phi1(e l)/alpha with l = log q."""
    length = math.log(q) if q > 0.0 else 0.0
    return q * length * expm1_ratio(exponent_of(alpha) * length) / alpha


@sequential
def smoothing_term(scores, columns, label, alpha, smoothing):
    """s (x_y - mean x) + Omega(q), which a smoothed class y adds to its loss."""
    uniform = smoothing / columns
    total, own, share = 0.0, load(scores, label), real(scores, uniform)
    for start in range(0, columns, SUM_RUN):
        count = min(SUM_RUN, columns - start)
        total += float64(_sum_less(advance(scores, start), count, own, share))
    omega = _omega_term(1.0 - smoothing + uniform, alpha)
    omega += (columns - 1) * _omega_term(uniform, alpha)
    return total + omega
