"""The targets of the loss, and its terms, none of which is negative: (N.27) to (N.29).

A target is a class index per row, possibly smoothed, or a row of probabilities. Kernels read it from
their arguments 1 to 4: the tensor, whether it has probabilities, the class index that means "ignore
this row", and the label smoothing s, by which class k stands for q = (1 - s) e_k + s/C.

With t = 1 + e (x - A) = p^e, the loss is a sum of divergences of q from p and, where p = 0, of slack:
    D = (t/alpha) [q expm1(e (log q - log p))/e + p - q],   slack = q (-t)_+/e.
An entry with q = 0 has D = p^alpha/alpha. A class y has q_y = 1, and with l = log p_y and
delta = sum_{i != y} p_i = 1 - p_y its own D is (1/alpha) [-expm1(e l)/e - delta p_y^e].
A smoothed class adds s (x_y - mean x) + Omega(q).
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from numba import float64
from torch import Tensor

from fenchel.kernels.cpu.arithmetic.elementary import exp, expm1_ratio, log, log1p
from fenchel.kernels.cpu.launch.compilation import inlined, reducing
from fenchel.kernels.cpu.launch.memory import (
    TENSORS,
    advance,
    floats_at,
    integer_at,
    integers_at,
    load,
    real,
)
from fenchel.kernels.cpu.shared.columns import VECTOR
from fenchel.kernels.cpu.solver.alpha_above_2 import entry_above_2
from fenchel.kernels.cpu.solver.entries import (
    coefficients,
    entmax15_entry,
    entmax_entry,
    epsilon_of,
    sparsemax_entry,
)

MEAN_COLUMNS = 1024  # columns summed in the precision of the row, before a float64 total


def target_words(
    target: Tensor, ignore_index: int, smoothing: float
) -> tuple[Tensor, int, int, Tensor]:
    """The arguments from which a kernel reads the target."""
    return target, int(target.dtype.is_floating_point), ignore_index, _in_memory(smoothing)


@lru_cache(maxsize=64)
def _in_memory(number: float) -> Tensor:
    return torch.tensor([number], dtype=torch.float64, device="cpu")


@inlined
def is_soft(arguments):
    """Whether the target is a row of probabilities."""
    return integer_at(arguments, TENSORS + 2) != 0


@inlined
def class_of(arguments, row):
    """The class index of a row."""
    return load(integers_at(arguments, TENSORS + 1), row)


@inlined
def is_ignored(arguments, row):
    """Whether the target of the row is `ignore_index`."""
    ignored = integer_at(arguments, TENSORS + 3)
    return not is_soft(arguments) and class_of(arguments, row) == ignored


@inlined
def smoothing_of(arguments):
    """The label smoothing."""
    return load(floats_at(arguments, TENSORS + 4), 0)


@reducing
def _sum_powers(entry, data, vectors, row):
    mass, power = real(data, 0.0), real(data, 0.0)
    for i in range(vectors * VECTOR):
        p, _, t = entry(load(data, i), row)
        mass += p
        power += p * t
    return mass, power


@inlined
def _sum_powers_above_2(data, vectors, largest, threshold, rest, e):
    mass, power = 0.0, 0.0
    for i in range(vectors * VECTOR):
        p, _ = entry_above_2(load(data, i), largest, threshold, rest, e, 1.0 / e)
        mass += p
        power += p**e * p
    return mass, power


@inlined
def sum_powers(data, vectors, largest, offset, rest, alpha):
    """(sum of p, sum of p^alpha) of `vectors` vectors of columns."""
    if alpha > 2.0:
        e = alpha - 1.0
        return _sum_powers_above_2(data, vectors, float64(largest), offset, rest, e)
    row = coefficients(largest, offset, rest, alpha)
    if alpha == 2.0:
        mass, power = _sum_powers(sparsemax_entry, data, vectors, row)
    elif alpha == 1.5:
        mass, power = _sum_powers(entmax15_entry, data, vectors, row)
    else:
        mass, power = _sum_powers(entmax_entry, data, vectors, row)
    return float64(mass), float64(power)


@inlined
def target_term(u, delta, alpha):
    """D of the class itself plus its slack, where u = x_y - A and delta = 1 - p_y."""
    e = epsilon_of(alpha)
    if u == -math.inf:
        return math.inf
    if e * u <= -1.0:
        return (1.0 / alpha - (1.0 + e * u)) / e
    length = math.log1p(-delta) if delta < 0.5 else math.log1p(e * u) / e
    own = -length * expm1_ratio(e * length) - delta * math.exp(e * length)
    return max(0.0, own) / alpha


@inlined
def _soft_term(x, q, row):
    """alpha times D plus slack of an entry with target probability q."""
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
def sum_soft_terms(data, target, vectors, row):
    """alpha times the loss of `vectors` vectors of columns; infinite if q > 0 where the score is -inf."""
    total = real(data, 0.0)
    for i in range(vectors * VECTOR):
        x, q = load(data, i), load(target, i)
        term = _soft_term(x, q, row)
        absent = x == real(x, -math.inf)
        limit = real(x, math.inf) if q > real(x, 0.0) else real(x, 0.0)
        total += limit if absent else term
    return total


@reducing
def _sum_below(data, count, pivot, share):
    """share * sum (pivot - x). Scores near finfo.min have a mean, but their sum overflows."""
    total = real(data, 0.0)
    for i in range(count):
        total += (pivot - load(data, i)) * share
    return total


@inlined
def _omega_term(q, alpha):
    """One term of Omega(q) = sum q l phi1(e l)/alpha with l = log q."""
    length = math.log(q) if q > 0.0 else 0.0
    return q * length * expm1_ratio(epsilon_of(alpha) * length) / alpha


@inlined
def smoothing_term(scores, columns, label, alpha, smoothing):
    """s (x_y - mean x) + Omega(q), which label smoothing adds to the loss of class y."""
    uniform = smoothing / columns
    total, own, share = 0.0, load(scores, label), real(scores, uniform)
    for start in range(0, columns, MEAN_COLUMNS):
        count = min(MEAN_COLUMNS, columns - start)
        total += float64(_sum_below(advance(scores, start), count, own, share))
    omega = _omega_term(1.0 - smoothing + uniform, alpha)
    omega += (columns - 1) * _omega_term(uniform, alpha)
    return total + omega
