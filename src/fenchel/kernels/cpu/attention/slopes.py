"""The derivatives of one row of probabilities: (N.19) and (N.20), for a list or a whole row."""

from __future__ import annotations

from fenchel.kernels.cpu.entmax.backward import (
    alpha_term,
    entmax15_weight,
    entmax_weight,
    off_support,
    softmax_weight,
    sparsemax_weight,
)
from fenchel.kernels.cpu.launch.compilation import inlined, outlined, reducing
from fenchel.kernels.cpu.launch.memory import load, real, store

RUN = 256  # entries summed in the precision of the row before a float64 total takes over


@reducing
def _sum_run(weight, grad, p, start, end, exponent, zero):
    """(⟨s, 1⟩, ⟨s, g⟩); NaN if p is."""
    total, dot = zero, zero
    for i in range(start, end):
        share = load(p, i)
        s = zero if off_support(share) else real(zero, weight(share, exponent))
        total += s + (share - share)
        dot += zero if off_support(share) else s * load(grad, i)
    return total, dot


@inlined
def _pull_back(weight, grad, p, out, count, exponent, zero):
    total, dot = 0.0, 0.0
    for start in range(0, count, RUN):
        end = min(start + RUN, count)
        s, sg = _sum_run(weight, grad, p, start, end, exponent, zero)
        total += s
        dot += sg
    mean = real(zero, 0.0 if total == 0.0 else dot / total)
    for i in range(count):
        share = load(p, i)
        value = weight(share, exponent) * (load(grad, i) - mean)
        store(out, i, zero if off_support(share) else value)
    return float(mean)


@outlined
def pull_back(grad, p, out, count, alpha):
    """Write the gradient in the scores to `out`, given that in p; returns ⟨s, g⟩/⟨s, 1⟩."""
    exponent, zero = real(p, 2.0 - alpha), real(p, 0.0)
    if alpha == 2.0:
        mean = _pull_back(sparsemax_weight, grad, p, out, count, exponent, zero)
    elif alpha == 1.5:
        mean = _pull_back(entmax15_weight, grad, p, out, count, exponent, zero)
    elif alpha == 1.0:
        mean = _pull_back(softmax_weight, grad, p, out, count, exponent, zero)
    elif alpha < 2.0:
        mean = _pull_back(entmax_weight, grad, p, out, count, exponent, zero)
    else:  # small p have huge weights, and g - mean nearly cancels there
        mean = _pull_back(entmax_weight, grad, p, out, count, exponent, 0.0)
    return mean


@reducing
def _alpha_run(grad, p, start, end, exponent, mean):
    zero = real(mean, 0.0)
    total = zero
    for i in range(start, end):
        change = real(mean, alpha_term(load(p, i), exponent)) * (mean - load(grad, i))
        total += zero if off_support(load(p, i)) else change
    return total


@outlined
def alpha_slope(grad, p, count, alpha, mean):
    """The gradient in alpha, with the mean that `pull_back` has returned."""
    exponent, result = real(p, 2.0 - alpha), 0.0
    for start in range(0, count, RUN):
        end = min(start + RUN, count)
        if alpha <= 2.0:
            result += _alpha_run(grad, p, start, end, exponent, real(p, mean))
        else:
            result += _alpha_run(grad, p, start, end, exponent, mean)
    return result
